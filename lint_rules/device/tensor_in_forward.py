"""PTM104: a tensor made in forward without a device is made on the CPU, wherever the module is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.nodes import walk

from ..about.classes import BATCH_METHODS
from ..about.movers import moved_by_function
from ..edits import Repair, with_argument
from ..file import File, argument, last_part
from ..rule import Finding, Rule

FACTORIES = {
    "zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "logspace", "eye",
    "tensor", "normal", "tril_indices", "triu_indices",
}  # fmt: skip
LEGACY = {"Tensor", "FloatTensor", "LongTensor", "IntTensor", "DoubleTensor", "BoolTensor", "ByteTensor"}
# attributes that a parameter is read by where it is a tensor
USES = {"size", "shape", "view", "device", "dtype", "dim", "new_zeros", "float", "mean", "sum", "unsqueeze", "reshape"}
# what may stand around a factory call and give a value that is not a tensor on the CPU
MOVED = {"to", "cuda", "cpu", "type_as", "item", "tolist", "numpy", "xpu"}
NUMBERS = {"item", "tolist", "numpy", "cpu"}
# what may be given such a tensor as it is
ELSEWHERE = {"int", "float", "bool", "to", "to_device", "print", "len", "range", "move_to_device", "cuda", "copy_"}
LENGTHS = "pack_padded_sequence"  # takes them on the CPU alone


class TensorInForward(Rule):
    code = "PTM104"
    name = "tensor-in-forward-on-cpu"
    why = (
        "Without `device=` a new tensor is on the CPU: forward fails on any other device, or copies at every step. "
        "Make it where the inputs are (`device=x.device`, `x.new_zeros(...)`), or register it as a buffer."
    )
    fix = "unsafe"
    calls = tuple(sorted(FACTORIES | LEGACY))

    BAD = (
        """
        import torch
        class Net(torch.nn.Module):
            def forward(self, x):
                mask = torch.ones(x.size(0), x.size(1))
                return self.layer(x * mask)
        """,
    )
    GOOD = (
        """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mask", torch.ones(3))
            def forward(self, x):
                noise = torch.randn(3, device=x.device)
                other = torch.zeros_like(x) + x.new_zeros(3)
                h = torch.zeros(3)
                h = h.to(x.device)
                a, b = torch.zeros(3), torch.ones(3)
                h = h + a.to(x.device) + b.to(x.device)
                if torch.rand(1).item() > 0.5:
                    return x * torch.tensor(0.5)
                self.noise.copy_(torch.randn(3))
                return torch.arange(3).to(x) + torch.zeros(2).type_as(x)
        """,
        """
        import torch
        class Net(torch.nn.Module):
            def forward(self, x):
                lengths = torch.tensor([len(row) for row in x])
                return torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        """,
        """
        import torch
        def put(*tensors):
            return [t.to(device) for t in tensors]
        class Net(torch.nn.Module):
            def forward(self, x):
                x, mask = put(x, torch.ones(x.size(0), 1))
                return self.layer(x * mask)
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func) or ""
        if not full.startswith("torch.") or full.count(".") != 1:
            return
        method = file.classes.method_of(call)
        if method is None or not file.classes.is_module(call):
            return
        if method.name == "__init__" or file.classes.reached_from(method, BATCH_METHODS) is None:
            return
        if file.nodes.function_of(call) is None:
            return  # the default of a parameter
        if any(k.arg in ("device", "out", None) for k in call.keywords):  # sizes with a star tell no device
            return
        if _is_scalar(call) or _is_moved(call, file) or self._moved_later(call, method, file):
            return
        if _keeps_device(call, method) or _moved_by_callers(method, file):
            return
        yield self.finding(
            call,
            f"`{file.source(call)}` in {method.name} is made on the CPU; give it `device=`",
            file,
            _like_input(call, method),
        )

    def _moved_later(self, call: ast.Call, method: ast.AST, file: File) -> bool:
        """`h = torch.zeros(3)` and then `h.to(...)`, `h.cuda()` or a device comparison in the same function."""
        names = _given_to(call, file)
        if not names:
            return False
        alone = set(names)  # computed from it and from numbers, which a batch has no part in
        for assign in sorted((n for n in walk(method, ast.Assign)), key=lambda n: n.lineno):
            read = list(walk(assign.value, ast.Name))
            for found in (names, alone):
                others = found is alone and any(n.id not in alone and file.resolve(n) is None for n in read)
                if not others and any(n.id in found for n in read):
                    found.update(t.id for t in assign.targets if isinstance(t, ast.Name))
        if any(_is_length(n, names, file) for n in walk(method)):
            return True
        return any(
            n.attr in MOVED
            and any(inner.id in (alone if n.attr in NUMBERS else names) for inner in walk(n.value, ast.Name))
            for n in walk(method, ast.Attribute)
        )


def _given_to(call: ast.Call, file: File) -> set[str]:
    """The names that are given a tensor, or what is computed from it: `h, c = torch.zeros(3), torch.zeros(3)` too."""
    parents = file.nodes.parents
    value: ast.expr = call
    up = parents[call]
    while isinstance(up, (ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)):
        value, up = up, parents[up]
    if isinstance(up, ast.Tuple) and isinstance(assign := parents[up], ast.Assign):
        place, width = up.elts.index(value), len(up.elts)
        several = [t.elts for t in assign.targets if isinstance(t, ast.Tuple) and len(t.elts) == width]
        targets = [elts[place] for elts in several]
    else:
        targets = up.targets if isinstance(up, ast.Assign) else [up.target] if isinstance(up, ast.AnnAssign) else []
    return {t.id for t in targets if isinstance(t, ast.Name)}


def _is_length(n: ast.AST, names: set[str], file: File) -> bool:
    """`pack_padded_sequence(x, lengths)`, which takes lengths on the CPU alone."""
    if not (
        isinstance(n, ast.Call) and LENGTHS in (last_part(n.func), (file.resolve(n.func) or "").rpartition(".")[2])
    ):
        return False
    lengths = argument(n, 1, "lengths")
    return isinstance(lengths, ast.Name) and lengths.id in names


def _like_input(call: ast.Call, method: ast.FunctionDef | ast.AsyncFunctionDef) -> Repair | None:
    """`device=x.device` of the first parameter that the method uses as a tensor."""
    if last_part(call.func) in LEGACY:
        return None  # these take no device
    for parameter in method.args.args[1:]:
        used = any(
            n.attr in USES and isinstance(n.value, ast.Name) and n.value.id == parameter.arg
            for n in walk(method, ast.Attribute)
        )
        stored = any(n.id == parameter.arg and isinstance(n.ctx, ast.Store) for n in walk(method, ast.Name))
        if used and not stored:
            return with_argument(call, f"device={parameter.arg}.device")
    return None


def _keeps_device(call: ast.Call, method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """`torch.tensor(y)` of a part of the batch (`x, y = batch`) stays where that part is."""
    value = call.args[0] if call.args else None
    if not isinstance(value, ast.Name):
        return False
    return any(
        isinstance(n.value, ast.Name)
        and isinstance(n.targets[0], ast.Tuple)
        and any(isinstance(t, ast.Name) and t.id == value.id for t in n.targets[0].elts)
        for n in walk(method, ast.Assign)
    )


def _moved_by_callers(method: ast.FunctionDef | ast.AsyncFunctionDef, file: File) -> bool:
    """Whether whoever calls a helper moves what it gives: `self.mask(n).to(x.device)`."""
    calls = file.loops.calls_of(method) if method.name not in BATCH_METHODS else []
    return bool(calls) and all(_is_moved(call, file) for call in calls)


def _is_scalar(call: ast.Call) -> bool:
    """A tensor of one number works with tensors of any device."""
    value = call.args[0] if call.args else None
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    return isinstance(value, ast.Constant) and getattr(call.func, "attr", getattr(call.func, "id", "")) == "tensor"


def _is_moved(call: ast.Call, file: File) -> bool:
    """Moved in the same expression, or read as a number there."""
    node: ast.AST = call
    for up in file.nodes.ancestors(call):
        if isinstance(up, ast.Attribute) and up.attr in MOVED:
            return True
        if isinstance(up, ast.Call) and node in up.args and _keeps_elsewhere(up, file):
            return True
        if isinstance(up, ast.Call) and node is not up.func and moved_by_function(up, node, file):
            return True
        if isinstance(up, (ast.If, ast.While, ast.IfExp, ast.Compare, ast.Assert)):
            return True  # decides in Python
        if isinstance(up, ast.stmt):
            return False
        node = up
    return False


def _keeps_elsewhere(up: ast.Call, file: File) -> bool:
    name = up.func.attr if isinstance(up.func, ast.Attribute) else getattr(up.func, "id", "")
    return name == LENGTHS or name in ELSEWHERE
