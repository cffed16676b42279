"""PTM411: the state of a wrapped model has names that start with `module.`, and loads nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import appended
from ..file import File, argument, last_part
from ..rule import Finding, Rule
from .written_by_every_rank import is_shared_file

WRAPPERS = {"torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel"}


class WrappedState(Rule):
    code = "PTM411"
    name = "wrapped-state"
    why = (
        "DataParallel and DistributedDataParallel put `module.` before every name of their state. Such a checkpoint "
        "loads into no plain model, and on one device not at all. Save `model.module.state_dict()`."
    )
    fix = "unsafe"
    calls = ("state_dict", "save")

    BAD = """
        import torch
        model = torch.nn.DataParallel(net)
        torch.save(model.state_dict(), "model.pt")
        """
    GOOD = """
        import torch
        model = torch.nn.DataParallel(net)
        torch.save(model.module.state_dict(), "model.pt")
        torch.save(net.state_dict(), "model.pt")
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if not isinstance(call.func, ast.Attribute):
            return
        if call.func.attr == "save":
            yield from self._whole(call, file)
            return
        if not isinstance(call.func.value, (ast.Name, ast.Attribute)):
            return
        wrapping = self._wrapping(call.func.value, file)
        if wrapping is not None and _is_saved(call, file):
            text = f"`{file.source(call.func.value)}` is wrapped on line {wrapping.lineno}"
            text = f"{text}: all names in its state start with `module.`; save `.module`'s"
            yield self.finding(call, text, file, appended(call.func.value, ".module"))

    def _whole(self, call: ast.Call, file: File) -> Iterator[Finding]:
        """`torch.save(model, path)` of a wrapped model."""
        value = call.args[0] if call.args else None
        if file.resolve(call.func) != "torch.save" or not isinstance(value, (ast.Name, ast.Attribute)):
            return
        wrapping = self._wrapping(value, file)
        if wrapping is not None and is_shared_file(argument(call, 1, "f"), file):
            text = f"`{file.source(value)}` is wrapped on line {wrapping.lineno}"
            yield self.finding(call, f"{text}, and saved with its wrapper; save `.module`'s state", file)

    def _wrapping(self, holder: ast.expr, file: File) -> ast.Call | None:
        """The call that wraps what the name holds, in the same function or class."""
        name = last_part(holder)
        if name in ("self", "module", None):
            return None
        scope = file.nodes.class_of(holder) if isinstance(holder, ast.Attribute) else file.nodes.function_of(holder)
        for call in file.calls_named("DataParallel", "DistributedDataParallel"):
            if file.resolve(call.func) not in WRAPPERS:
                continue
            parent = file.nodes.parents.get(call)
            while isinstance(parent, (ast.Attribute, ast.Call, ast.IfExp)):
                parent = file.nodes.parents.get(parent)  # DataParallel(net).cuda()
            if not isinstance(parent, ast.Assign):
                continue
            same = file.source(parent.targets[0]) == file.source(holder) and call.lineno < holder.lineno
            where = file.nodes.class_of(call) if isinstance(holder, ast.Attribute) else file.nodes.function_of(call)
            if same and where is scope:
                return call
        return None


def _is_saved(call: ast.Call, file: File) -> bool:
    """Whether the state goes into a file, directly or in a dictionary."""
    for up in file.nodes.ancestors(call):
        if isinstance(up, ast.Call) and last_part(up.func) in (
            "save",
            "save_checkpoint",
            "save_on_master",
            "save_model",
        ):
            return True
        if isinstance(up, ast.stmt):
            return isinstance(up, ast.Assign) and any(
                isinstance(n, ast.Call) and last_part(n.func) == "save"
                for target in up.targets
                if isinstance(target, ast.Name)
                for n in _calls_with(target.id, file)
            )
    return False


def _calls_with(name: str, file: File) -> list[ast.Call]:
    return [
        c for c in file.nodes.calls.get("save", ()) if any(isinstance(a, ast.Name) and a.id == name for a in c.args)
    ]
