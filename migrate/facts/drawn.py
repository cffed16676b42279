"""Batches that are drawn by hand, `x, y = next(it)`, and what gives them: `it = iter(loader)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import is_static
from .nodes import walk
from .spelled import spelled

if TYPE_CHECKING:
    from .script import Facts

GIVE = ("iter", "enumerate", "cycle", "itertools.cycle")  # batches as the loader has them


def draw_of(call: ast.Call) -> ast.expr | None:
    """What a call draws from: the `it` of `next(it)`, `it.next()` and `it.__next__()`."""
    f = call.func
    if isinstance(f, ast.Name) and f.id == "next" and call.args:
        return call.args[0]
    if isinstance(f, ast.Attribute) and f.attr in ("next", "__next__") and not call.args and not call.keywords:
        return f.value
    return None


def gives_batches(facts: Facts, call: ast.Call) -> bool:
    """Whether a call is `iter(loader)` or `cycle(loader)`, of Python's or of the file's own."""
    return bool(call.args) and (spelled(call.func) in GIVE or _hands_out(facts, call))


def _hands_out(facts: Facts, call: ast.Call) -> bool:
    """Whether a generator of this file gives what it draws from its first argument, as that has it."""
    if "yield" not in facts.text.text:
        return False
    f: ast.AST | None = facts.devices.function_of(call)
    c = facts.devices.own_movers.class_of(call.func.value) if isinstance(call.func, ast.Attribute) else None
    if c is not None and isinstance(call.func, ast.Attribute):
        f = facts.classes.methods(c).get(call.func.attr)
    own = [a.arg for a in f.args.args][c is not None and not is_static(f) :] if isinstance(f, ast.FunctionDef) else []
    if f is None or not own:
        return False
    source = own[0]
    drawn = {_named(n.target) for n in walk(f, ast.For) if _is(n.iter, source)} - {""}
    yields = [n for n in walk(f) if isinstance(n, (ast.Yield, ast.YieldFrom))]
    plain = (_is(n.value, source) if isinstance(n, ast.YieldFrom) else _named(n.value) in drawn for n in yields)
    return bool(yields) and all(plain)


def _is(node: ast.expr | None, name: str) -> bool:
    return _named(node) == name


def _named(node: ast.expr | None) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def makers(facts: Facts, iterator: ast.expr) -> list[ast.Call]:
    """The `iter(loader)` that make an iterator; none where one of its values is anything else."""
    values = [iterator] if isinstance(iterator, ast.Call) else _given(facts).get(spelled(iterator), [])
    made = [v for v in values if isinstance(v, ast.Call) and gives_batches(facts, v)]
    return made if len(made) == len(values) else []


def _given(facts: Facts) -> dict[str, list[ast.expr | None]]:
    """What the file's names and attributes are given; None for what does not show."""
    if "given by assignments" not in facts.answers:
        found: dict[str, list[ast.expr | None]] = {}
        for s in facts.walk(ast.Assign):
            for target in s.targets:
                parts: list[ast.expr] = [target]
                values: list[ast.expr | None] = [s.value]
                if isinstance(target, (ast.Tuple, ast.List)):
                    parts = target.elts
                    fits = isinstance(s.value, (ast.Tuple, ast.List)) and len(s.value.elts) == len(parts)
                    values = [*s.value.elts] if fits else [None] * len(parts)  # type: ignore[attr-defined]
                for part, value in zip(parts, values, strict=True):
                    found.setdefault(spelled(part), []).append(value)
        facts.answers["given by assignments"] = found
    given: dict[str, list[ast.expr | None]] = facts.answers["given by assignments"]
    return given


def drawn_by(facts: Facts, statement: ast.AST) -> list[ast.Call]:
    """The `iter(loader)` that give what a statement draws by hand."""
    calls = (c for c in walk(statement, ast.Call))
    return [m for c in calls if (it := draw_of(c)) is not None for m in makers(facts, it)]


def distributions(facts: Facts, node: ast.expr) -> list[ast.Call]:
    """The `Normal(mean, 1)` of torch.distributions that an expression is; none where it may be anything else."""
    made = [node]
    if isinstance(node, ast.Name):
        scope = facts.scopes.scope_of(node).lookup(node.id)
        made = (facts.devices.assigned(node.id, scope) if scope is not None else None) or []
    elif isinstance(node, ast.Attribute) and "distributions" in facts.text.text:  # self.prior
        made = facts.devices.attribute_values.get(node.attr, [])
    calls = [m for m in made if isinstance(m, ast.Call)]
    known = all((facts.names.resolve(m.func) or "").startswith("torch.distributions.") for m in calls)
    return calls if known and len(calls) == len(made) else []
