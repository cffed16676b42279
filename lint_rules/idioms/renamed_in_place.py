"""PTM606: functions that change their argument end in an underscore since torch 0.4."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import Edit, Repair, renamed
from ..file import File
from ..rule import Finding, Rule

INITS = (
    "uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform",
    "kaiming_normal", "orthogonal", "sparse",
)  # fmt: skip


class RenamedInPlace(Rule):
    code = "PTM606"
    name = "renamed-in-place"
    why = (
        "The names without an underscore are deprecated since torch 0.4: some are gone, the others warn at every call."
    )
    fix = "safe"
    calls = ("clip_grad_norm", *INITS)

    BAD = (
        """
        import torch
        torch.nn.utils.clip_grad_norm(model.parameters(), 1.0)
        """,
        """
        from torch.nn import init
        init.xavier_uniform(layer.weight)
        """,
    )
    GOOD = """
        import torch
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        torch.nn.init.xavier_uniform_(layer.weight)
        noise = torch.normal(mean, std)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func) or ""
        if full == "torch.nn.utils.clip_grad_norm" or full.startswith("torch.nn.init."):
            repair = renamed(call.func, f"{call.func.attr}_") if isinstance(call.func, ast.Attribute) else None
            repair = repair or _imported(call.func, full.rpartition(".")[2], file)
            yield self.finding(call, f"{full} is deprecated; use {full}_", file, repair)


def _imported(func: ast.expr, name: str, file: File) -> Repair | None:
    """`from torch.nn.init import normal`: the import and all uses of the name, where every use is a call."""
    uses = [n for n in file.nodes.of(ast.Name) if isinstance(func, ast.Name) and n.id == func.id]
    imports = [a for node in file.nodes.of(ast.ImportFrom) for a in node.names if a.name == name and a.asname is None]
    called = all(isinstance(c := file.nodes.parents[n], ast.Call) and c.func is n for n in uses)
    if not isinstance(func, ast.Name) or func.id != name or len(imports) != 1 or not called:
        return None
    places: list[ast.AST] = [*uses, imports[0]]
    return lambda text: [Edit(*text.span(place), f"{name}_") for place in places]
