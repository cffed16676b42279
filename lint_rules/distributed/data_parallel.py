"""PTM412: DataParallel copies the model to every device at every step, from one process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.text import Text

from ..edits import Edit, Repair
from ..file import File
from ..rule import Finding, Rule


class DataParallel(Rule):
    code = "PTM412"
    name = "data-parallel"
    why = (
        "DataParallel runs all devices from one process: it copies the model at every step, is bound by one "
        "interpreter and cannot leave the machine. torch's own documentation recommends DistributedDataParallel, "
        "even for one node."
    )
    fix = "unsafe"
    see = "https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html"
    calls = ("DataParallel", "data_parallel")

    BAD = """
        import torch
        model = torch.nn.DataParallel(model)
        """
    GOOD = """
        import torch
        model = torch.nn.parallel.DistributedDataParallel(model)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func)
        if full in ("torch.nn.DataParallel", "torch.nn.parallel.data_parallel"):
            repair = _unwrapped(call, file) if full == "torch.nn.DataParallel" and ".module" not in file.text else None
            text = "DataParallel; run one process a device instead (ptrun --devices N)"
            yield self.finding(call, text, file, repair)


def _unwrapped(call: ast.Call, file: File) -> Repair | None:
    """The model itself; not where the code reaches through the wrapper with `.module`."""
    model = call.args[0] if call.args else None
    if not isinstance(model, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        return None
    holder = file.nodes.parents.get(call)
    if isinstance(holder, ast.Assign) and [ast.unparse(t) for t in holder.targets] == [ast.unparse(model)]:
        around = file.nodes.parents[holder]
        block = next(b for b in (getattr(around, f, ()) for f in ("body", "orelse", "finalbody")) if holder in b)
        return lambda text: [_without(holder, len(block) == 1, text)]
    return lambda text: [Edit(*text.span(call), text.get(model))]


def _without(statement: ast.stmt, alone: bool, text: Text) -> Edit:
    """`model = model` says nothing: its line goes, or is a `pass` where a block needs one or others share it."""
    start, stop = text.span(statement)
    first, last = text.line_span(statement.lineno, statement.end_lineno or statement.lineno)
    rest = text.text[stop:last].strip()
    if alone or text.text[first:start].strip() or (rest and not rest.startswith("#")):
        return Edit(start, stop, "pass")
    return Edit(first, last, "")
