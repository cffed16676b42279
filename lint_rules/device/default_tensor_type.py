"""PTM108: a default for all tensors of the program, set in one place and felt in others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule
from .literal import ACCELERATOR, text_of


class DefaultTensorType(Rule):
    code = "PTM108"
    name = "default-tensor-type"
    why = (
        "A default CUDA tensor type or device changes what every later call makes, in libraries too: samplers and "
        "generators fail, and all processes fill the same card. It is deprecated since torch 2.1; pass `device=`."
    )
    fix = "unsafe"
    settled_by = "old_idioms"
    calls = ("set_default_tensor_type", "set_default_device")

    BAD = (
        """
        import torch
        torch.set_default_tensor_type(torch.DoubleTensor)
        """,
        """
        import torch
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
        """,
        """
        import torch
        torch.set_default_device("cuda")
        """,
        """
        import torch
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.set_default_device(device)
        """,
    )
    GOOD = """
        import torch
        torch.set_default_dtype(torch.float32)
        torch.set_default_device("cpu")
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func)
        if full == "torch.set_default_tensor_type" and not _hands_on(call, file):
            yield self.finding(call, "a default tensor type for the whole program; pass `dtype=` and `device=`", file)
        elif full == "torch.set_default_device" and call.args and _may_be_accelerator(call.args[0], file):
            yield self.finding(call, "a default device for the whole program; pass `device=`", file)


def _may_be_accelerator(node: ast.expr, file: File) -> bool:
    """Whether one is written down there, in a choice or in what a name is given too."""
    if isinstance(node, ast.IfExp):
        return _may_be_accelerator(node.body, file) or _may_be_accelerator(node.orelse, file)
    if isinstance(node, ast.Call) and node.args and file.resolve(node.func) == "torch.device":
        return _may_be_accelerator(node.args[0], file)
    given = file.tensors.assigned(node) if isinstance(node, ast.Name) else []
    if any(v is not None and not isinstance(v, ast.Name) and _may_be_accelerator(v, file) for v in given):
        return True
    return ACCELERATOR.match(text_of(node)) is not None


def _hands_on(call: ast.Call, file: File) -> bool:
    """A helper that sets what it is given, or puts back what was there."""
    given = call.args[0] if call.args else None
    function = file.nodes.function_of(call)
    if not isinstance(given, ast.Name) or function is None:
        return False
    parameters = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    values = file.tensors.assigned(given)
    return given.id in parameters or any(
        isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and v.func.attr == "type" for v in values
    )
