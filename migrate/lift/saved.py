"""Saves of a lifted loop, which rank 0 does alone: `torch.save(x, path)`, or the `with` that opens what it saves to."""

from __future__ import annotations

import ast

from ..facts.alone import rank_zero_alone
from ..facts.nodes import walk
from ..facts.own_files import saves_its_own
from ..facts.script import Facts
from .shown import is_print
from .splice import Splice

# what the values of a checkpoint are put together with: any rank may do it, or leave it
GATHERS = ("state_dict", "cpu", "detach", "clone", "item", "items", "copy", "deepcopy", "dict", "list", "len", "float")


def saves(facts: Facts, s: ast.Expr | ast.With) -> bool:
    """Whether a statement saves, or opens what the one statement in it saves to."""
    if isinstance(s, ast.With):
        return _opens_for_saving(facts, s)
    around = facts.scopes.parents.get(s)
    return _is_save(facts, s.value) and not (isinstance(around, ast.With) and _opens_for_saving(facts, around))


def guarded_save(facts: Facts, splice: Splice, s: ast.stmt) -> dict[tuple[int, int], str]:
    """The condition above such a statement, and the margin of its further lines, by their places in the text."""
    if splice.shares_a_line(s) or rank_zero_alone(facts, s):
        return {}  # the call itself becomes one of rank 0, or is one
    start, _ = facts.text.span(s)
    margin, unit = facts.text.margin(s), facts.indentation
    found = {(start, start): f"if self.trainer.is_global_zero:\n{margin}{unit}"}
    inside = {n for c in walk(s) if isinstance(c, (ast.Constant, ast.JoinedStr)) for n in _further_lines(c)}
    for line in _further_lines(s):  # they move in with it
        a, b = facts.text.line_span(line, line)
        if line not in inside and facts.text.text[a:b].startswith(margin) and facts.text.text[a:b].strip():
            found[(a + len(margin), a + len(margin))] = unit
    return found


def _is_save(facts: Facts, value: ast.expr) -> bool:
    saved = isinstance(value, ast.Call) and facts.names.resolve(value.func) == "torch.save"
    return saved and not saves_its_own(facts, value)  # type: ignore[arg-type]


def _opens_for_saving(facts: Facts, s: ast.With) -> bool:
    """`with open(path, "wb") as f:` around saves, and prints: on rank 0 alone, or ranks cut each other's file."""
    opened = [i.context_expr for i in s.items]
    if not all(isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and c.func.id == "open" for c in opened):
        return False
    body = [x for x in s.body if not _gathers(facts, s, x)]
    values = [x.value for x in body if isinstance(x, ast.Expr)]
    others = [v for v in values if not _is_save(facts, v)]
    shown = all(isinstance(v, ast.Call) and is_print(v) for v in others)
    return len(values) == len(body) and len(others) < len(body) and shown


def _gathers(facts: Facts, holder: ast.With, s: ast.stmt) -> bool:
    """`state = optimizer.state_dict()`, which nothing reads but what stands in the same `with`."""
    names = [t for t in s.targets if isinstance(t, ast.Name)] if isinstance(s, ast.Assign) else []
    if not isinstance(s, ast.Assign) or len(names) != len(s.targets):
        return False
    calls = [c.func for c in walk(s.value, ast.Call)]
    if any((f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")) not in GATHERS for f in calls):
        return False
    homes = [(n.id, facts.scopes.scope_of(n).lookup(n.id)) for n in names]
    reads = [r for name, home in homes if home is not None for r in facts.scopes.reads(name, home)]
    return all(holder in facts.scopes.ancestors(r) for r in reads)


def _further_lines(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
