"""PTM105: a tensor kept as a plain attribute does not move with its module, nor is it in the saved state."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.nodes import walk

from ..file import File, is_self
from ..rule import Finding, Rule
from .tensor_in_forward import FACTORIES, LEGACY

# methods that give a tensor for a tensor
CHAIN = {
    "float", "long", "half", "double", "view", "reshape", "unsqueeze", "squeeze", "transpose", "t", "expand", "repeat",
    "clone", "contiguous", "permute", "cuda", "to", "flatten", "exp", "log", "sqrt", "pow", "cumsum", "int", "bool",
    "requires_grad_",
}  # fmt: skip

MOVED_BY_TRAINER = ("example_input_array",)  # https://lightning.ai/docs/pytorch/stable/common/lightning_module.html
OTHERS = {"from_numpy", "as_tensor", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"}
# functions of torch that give a tensor for tensors
COMPUTES = {
    "sin", "cos", "exp", "log", "sqrt", "stack", "cat", "tril", "triu", "abs", "pow", "flip", "cumsum", "outer",
    "clamp", "softmax",
}  # fmt: skip


class TensorAttribute(Rule):
    code = "PTM105"
    name = "tensor-attribute-not-buffer"
    why = (
        "`.to()`, `.state_dict()` and DistributedDataParallel know parameters and buffers only; a tensor in a plain "
        "attribute stays where it was made and is lost when the model is saved. Use `register_buffer`."
    )
    fix = "unsafe"  # the saved state gains a name
    settled_by = "register_buffers"

    BAD = (
        """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.mean = torch.tensor([0.4, 0.5, 0.6]).view(1, 3, 1, 1)
        """,
    )
    GOOD = (
        """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.tensor([0.4, 0.5]))
                self.weight = torch.nn.Parameter(torch.zeros(3))
                self.rates = torch.linspace(0, 1, 5).tolist()
                self.size = torch.zeros(3).size()
        """,
        """
        import torch
        class Data(torch.utils.data.Dataset):
            def __init__(self):
                self.x = torch.zeros(3)
        """,
    )

    def check_file(self, file: File) -> Iterator[Finding]:
        for target, value, assign in file.kept if file.classes.kinds else ():
            if not file.classes.is_module(assign) or not _holds_tensor(value, file):
                continue
            method = file.classes.method_of(assign)
            if method is None or method.name not in ("__init__", "reset_parameters", "build", "setup"):
                continue
            if target.attr in MOVED_BY_TRAINER or _given_anew(target.attr, assign, file):
                continue
            if target.attr not in _registered(file.nodes.class_of(assign)):
                what = "is a tensor that does" if isinstance(value, ast.Call) else "holds tensors that do"
                yield self.finding(assign, f"`self.{target.attr}` {what} not move with the module", file)


def _given_anew(name: str, first: ast.stmt, file: File) -> bool:
    """Whether another method gives the attribute a tensor that comes from elsewhere: the state of a game, a batch."""
    method, holder = file.classes.method_of(first), file.nodes.class_of(first)
    return any(
        target.attr == name
        and file.classes.method_of(statement) is not method
        and file.nodes.class_of(statement) is holder
        and not (isinstance(value, ast.Constant) and value.value is None)
        and not any(n.attr == name for n in walk(value, ast.Attribute))
        for target, value, statement in file.kept
    )


def _holds_tensor(value: ast.expr, file: File) -> bool:
    """A tensor, or a list, tuple or dictionary of nothing else."""
    if isinstance(value, (ast.List, ast.Tuple)):
        return bool(value.elts) and all(_is_tensor(e, file) for e in value.elts)
    if isinstance(value, ast.Dict):
        return bool(value.values) and all(_is_tensor(e, file) for e in value.values)
    return _is_tensor(value.elt if isinstance(value, ast.ListComp) else value, file)


def _is_tensor(node: ast.expr, file: File) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_tensor(node.left, file) or _is_tensor(node.right, file)
    while isinstance(node, ast.Call):
        full = file.resolve(node.func) or ""
        if full.startswith("torch.") and full.count(".") == 1:
            first = node.args[0] if full[6:] in COMPUTES and node.args else None
            parts = first.elts if isinstance(first, (ast.List, ast.Tuple)) else [first]
            computed = all(part is not None and _is_tensor(part, file) for part in parts)
            return full[6:] in FACTORIES | LEGACY | OTHERS or (bool(parts) and computed)
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in CHAIN:
            return False
        node = node.func.value
    return isinstance(node, ast.BinOp) and _is_tensor(node, file)


def _registered(holder: ast.AST | None) -> set[str]:
    """Names that the class registers, or makes parameters of, somewhere."""
    if holder is None:
        return set()
    found = set()
    for n in walk(holder):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr.startswith("register_"):
            if n.args and isinstance(n.args[0], ast.Constant):
                found.add(str(n.args[0].value))
        elif isinstance(n, ast.Call) and n.args and _ends_with_parameter(n.func):
            found.update(a.attr for a in walk(n.args[0], ast.Attribute) if is_self(a.value))
    return found


def _ends_with_parameter(func: ast.AST) -> bool:
    return (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) == "Parameter"
