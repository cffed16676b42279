"""Whether a method of a module may go by a weight of its own: not where the constructor runs it too early."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts


def weight_in(facts: Facts, c: ast.ClassDef | None, f: ast.FunctionDef | ast.Lambda) -> str | None:
    """A parameter that tells a method where its module is; None where none does.

    `self.graph = self.make_graph()` of a constructor that makes its layers below has none yet; and where its layers are
    above, they are on the CPU still, where a graph stays that is no buffer.
    """
    weight = facts.classes.weight(c)
    init = facts.classes.methods(c).get("__init__") if c is not None else None
    name = getattr(f, "name", "")
    if c is None or weight is None or init is None or not facts.classes.builds(c, name):
        return weight
    reaching = _reaching(facts, c, name)
    calls = [n for n in walk(init, ast.Attribute) if n.attr in reaching and facts.classes.is_self(n.value)]
    layer = weight.split(".")[1]
    made = [n for n in facts.stores_of(layer) if init in facts.scopes.ancestors(n) and facts.classes.is_self(n.value)]
    if not made or any(n.lineno < made[0].lineno for n in calls):
        return None
    alone = facts.classes.callers(c, name) == {"__init__"}
    return None if alone and any(_stays_behind(facts, n) for n in calls) else weight


def where_again(facts: Facts, c: ast.ClassDef, name: str, call: ast.Call) -> str | None:
    """Where a buffer is that `self.total = torch.zeros(3)` of another method takes the place of; None: it may be None
    by then, and no weight tells.
    """
    statements = (facts.scopes.parents.get(n) for n in facts.stores_of(name))
    if not any(_may_be_none(s.value) for s in statements if isinstance(s, ast.Assign)):
        return f"self.{name}.device"
    f = next(facts.scopes.functions_around(call), None)
    weight = weight_in(facts, c, f) if f is not None else None
    return f"{weight}.device" if weight is not None else None


def _may_be_none(e: ast.expr) -> bool:
    if isinstance(e, ast.IfExp):
        return _may_be_none(e.body) or _may_be_none(e.orelse)
    return isinstance(e, ast.Constant) and e.value is None


def _reaching(facts: Facts, c: ast.ClassDef, name: str) -> set[str]:
    """The methods that run one, itself or through others, and that one."""
    seen, new = {name}, {name}
    while new:
        new = {caller for n in new for caller in facts.classes.callers(c, n)} - seen
        seen |= new
    return seen - {"__init__"}


def _stays_behind(facts: Facts, method: ast.Attribute) -> bool:
    """Whether an attribute keeps what the method gives back, and is no buffer."""
    call = facts.scopes.parents.get(method)
    s = facts.scopes.statement_of(method)
    if not isinstance(s, ast.Assign) or not isinstance(call, ast.Call) or call in facts.buffered:
        return False
    value: ast.AST = s.value
    while isinstance(value, (ast.Call, ast.Attribute)) and value is not call:
        value = value.func if isinstance(value, ast.Call) else value.value
    return value is call and any(isinstance(t, ast.Attribute) and facts.classes.is_self(t.value) for t in s.targets)
