"""Which expressions of a hot loop are tensors that the device may still compute: losses and what a model gave."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from ptmigrate.migrate.facts.loops import Loops
from ptmigrate.migrate.facts.names import Names
from ptmigrate.migrate.facts.nodes import FUNCTIONS, LOOPS, Nodes
from ptmigrate.migrate.facts.scopes import Comprehension, binding

LOSS_FUNCTION = re.compile(r"(criterion|loss(_?fn|_?func|_?function)?)\w*$|_loss$|^cross_entropy$", re.IGNORECASE)
# methods of a tensor that give a tensor
TENSOR_METHODS = {
    "sum", "mean", "max", "min", "abs", "pow", "sqrt", "exp", "log", "norm", "eq", "ne", "gt", "lt", "ge", "le",
    "float", "isnan", "isinf", "isfinite",
    "long", "double", "half", "int", "bool", "view", "view_as", "reshape", "squeeze", "unsqueeze", "argmax", "argmin",
    "detach", "clone", "to", "cuda", "flatten", "transpose", "permute", "t", "softmax", "log_softmax", "sigmoid", "std",
    "var", "all", "any", "div", "mul", "add", "sub", "contiguous", "type", "topk", "type_as", "masked_fill", "byte",
}  # fmt: skip
# what has a `backward(loss)`
HANDLES = ("accelerator", "fabric", "self", "strategy", "runtime")
TO_HOST = {"item", "cpu", "numpy", "tolist"}
# functions of torch whose result is no tensor on the device
NOT_TENSORS = {
    "is_tensor", "device", "Size", "manual_seed", "load", "save", "no_grad", "from_numpy", "numel", "is_available",
    "finfo", "iinfo", "Generator", "get_default_dtype", "is_floating_point", "is_complex", "typename", "is_nonzero",
}  # fmt: skip


class Tensors:
    def __init__(self, nodes: Nodes, names: Names, loops: Loops) -> None:
        self.nodes = nodes
        self.names = names
        self.loops = loops
        self._by_function: dict[ast.AST, dict[str, list[ast.expr | None]]] = {}

    def is_tensor(self, node: ast.expr, depth: int = 0) -> bool:
        """Whether the expression can only be a tensor on the device, by where it comes from."""
        if depth > 6:
            return False
        if isinstance(node, ast.Name):
            return self._is_tensor_name(node, depth)
        if isinstance(node, ast.Attribute):
            return node.attr == "data" and self.is_tensor(node.value, depth + 1)
        if isinstance(node, ast.Call):
            return self._is_tensor_call(node, depth)
        if isinstance(node, ast.BinOp):
            return self.is_tensor(node.left, depth + 1) or self.is_tensor(node.right, depth + 1)
        if isinstance(node, ast.UnaryOp):
            return not isinstance(node.op, ast.Not) and self.is_tensor(node.operand, depth + 1)
        if isinstance(node, ast.Compare):
            plain = all(isinstance(op, (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops)
            return plain and any(self.is_tensor(v, depth + 1) for v in (node.left, *node.comparators))
        if isinstance(node, ast.Subscript):
            return self.is_tensor(node.value, depth + 1) and not isinstance(node.slice, ast.Constant)
        return False

    def _is_tensor_call(self, call: ast.Call, depth: int) -> bool:
        full = self.names.resolve(call.func)
        if full is not None:
            return self._makes_device_tensor(call, full, depth)
        if isinstance(call.func, ast.Attribute):
            if call.func.attr in TENSOR_METHODS and self.is_tensor(call.func.value, depth + 1):
                return True
            if call.func.attr in TO_HOST:
                return False
        return self.is_loss_call(call) or self.loops.is_model_call(call)

    def _makes_device_tensor(self, call: ast.Call, full: str, depth: int) -> bool:
        if full.startswith("torch.nn.functional."):
            return True
        if not full.startswith("torch.") or full.count(".") != 1 or full[6:] in NOT_TENSORS:
            return False
        return any(self.is_tensor(a, depth + 1) for a in call.args)

    def is_loss_call(self, call: ast.Call) -> bool:
        """`criterion(output, target)`, by the name or by where the name comes from."""
        full = self.names.resolve(call.func)
        if full is not None:
            return (full.startswith("torch.nn.functional.") and "loss" in full) or full.endswith("cross_entropy")
        name = _last(call.func)
        if name is None or len(call.args) + len(call.keywords) < 1:
            return False
        return name in self._criteria

    @cached_property
    def _criteria(self) -> set[str]:
        """Names given a loss of torch.nn."""
        found: set[str] = set()
        for assign in self.nodes.of(ast.Assign):
            value: ast.expr = assign.value
            while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not self._is_loss(value):
                value = value.func.value
            if isinstance(value, ast.Call) and self._is_loss(value):
                found.update(filter(None, (_last(t) for t in assign.targets)))
        for f in self.nodes.functions:
            arguments = (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)
            found.update(
                a.arg for a in arguments if LOSS_FUNCTION.fullmatch(a.arg) and a.arg not in ("loss", "loss_value")
            )
        return found

    def _is_loss(self, call: ast.Call) -> bool:
        full = self.names.resolve(call.func) or ""
        return full.startswith("torch.nn.") and full.endswith("Loss")

    # -- names ------------------------------------------------------------------------------------------------------

    def _is_tensor_name(self, name: ast.Name, depth: int) -> bool:
        values = self.assigned(name)
        if not values:
            return False
        if name.id in self.backwarded_in(self.scope(name)) and not any(isinstance(v, ast.Constant) for v in values):
            return not any(isinstance(v, ast.Call) and _last(v.func) in TO_HOST for v in values)
        return all(v is not None and self.is_tensor(v, depth + 1) for v in values)

    def assigned(self, name: ast.Name) -> list[ast.expr | None]:
        """What the function assigns to a name; None for what is not a plain assignment of one name."""
        scope = self.scope(name)
        if scope not in self._by_function:
            self._by_function[scope] = self._assignments(scope)
        return self._by_function[scope].get(name.id, [])

    def _assignments(self, scope: ast.AST) -> dict[str, list[ast.expr | None]]:
        found: dict[str, list[ast.expr | None]] = {}
        for name in self._stores.get(scope, ()):
            parent = self.nodes.parents[name]
            value: ast.expr | None = None
            if isinstance(parent, ast.Assign) and name in parent.targets:
                value = parent.value
            elif isinstance(parent, ast.Tuple):
                outer = self.nodes.parents[parent]
                if isinstance(outer, ast.Assign) and isinstance(outer.value, ast.Tuple):
                    pairs = zip(parent.elts, outer.value.elts, strict=False)
                    value = next((v for t, v in pairs if t is name), None)
            elif isinstance(parent, ast.AugAssign):
                continue
            found.setdefault(name.id, []).append(value)
        return found

    @cached_property
    def _stores(self) -> dict[ast.AST, list[ast.Name]]:
        found: dict[ast.AST, list[ast.Name]] = {}
        for name in self.nodes.of(ast.Name):
            if name.ctx.__class__ is ast.Store:
                found.setdefault(self.scope(name), []).append(name)
        return found

    def backwarded_in(self, scope: ast.AST) -> set[str]:
        """The names whose backward is called in a function."""
        return self._backwarded.get(scope, set())

    @cached_property
    def _backwarded(self) -> dict[ast.AST, set[str]]:
        found: dict[ast.AST, set[str]] = {}
        for call in (*self.nodes.calls.get("backward", ()), *self.nodes.calls.get("manual_backward", ())):
            if not isinstance(call.func, ast.Attribute):
                continue
            value: ast.AST = call.func.value
            if isinstance(value, ast.Call) and _last(value.func) == "scale" and value.args:
                value = value.args[0]
            elif call.args and (call.func.attr == "manual_backward" or _last(value) in HANDLES):
                value = call.args[0]
            if isinstance(value, ast.Name):
                found.setdefault(self.scope(call), set()).add(value.id)
        for returned in self.nodes.of(ast.Return):
            # a Trainer calls backward on what training_step returns
            scope = self.scope(returned)
            if getattr(scope, "name", "") == "training_step" and returned.value is not None:
                found.setdefault(scope, set()).update(_returned_losses(returned.value))
        return found

    def scope(self, node: ast.AST) -> ast.AST:
        return next((up for up in self.nodes.ancestors(node) if isinstance(up, FUNCTIONS)), self.nodes.tree)

    def comes_from_loader(self, name: ast.Name) -> bool:
        """Whether a name has up to here only been the target of a loop: what the loader gave, still on the host."""
        part: ast.AST | None = None
        child: ast.AST = name
        for up in self.nodes.ancestors(name):
            generator = binding(up, name.id, child, part) if isinstance(up, Comprehension) else None
            if generator is not None:
                return self._is_of_batch(generator.iter)
            if isinstance(up, ast.stmt):
                break
            part, child = child, up
        targets = [n for n in self._stores.get(self.scope(name), ()) if n.id == name.id]
        before = [t for t in targets if t.lineno < name.lineno]
        return bool(before) and all(self._is_loop_target(t) for t in before)

    def _is_of_batch(self, iterable: ast.expr) -> bool:
        """Whether a comprehension goes through what the loader gave: `[t.to(device) for t in batch]`."""
        start = _start(iterable)
        return self.loops.is_loader(iterable) or (isinstance(start, ast.Name) and self.comes_from_loader(start))

    def _is_loop_target(self, name: ast.Name) -> bool:
        child: ast.AST = name
        for up in self.nodes.ancestors(name):
            if isinstance(up, LOOPS):
                return child is getattr(up, "target", None)
            if isinstance(up, ast.stmt):
                # `inputs, labels = batch` hands on what a loop target holds
                value = up.value if isinstance(up, ast.Assign) else None
                return isinstance(value, ast.Name) and value.id != name.id and self.comes_from_loader(value)
            child = up
        return False


def _start(node: ast.expr) -> ast.expr:
    """`batch` of `batch`, `batch["x"]` and `batch.items()`."""
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _returned_losses(value: ast.expr) -> list[str]:
    """`return loss`, `return {"loss": loss}`"""
    if isinstance(value, ast.Name):
        return [value.id]
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return [v.id for k, v in pairs if isinstance(k, ast.Constant) and k.value == "loss" and isinstance(v, ast.Name)]
    return []


def _last(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
