"""Networks that an object of the script keeps, `ModelEMA(net).ema`: they go to the Module's device with it."""

from __future__ import annotations

import ast

from ..facts.kept_copies import kept_copies
from ..facts.scopes import Scope
from ..facts.script import Facts
from .chunks import Binder, Variable, Variables
from .own_device import OWN


def kept_networks(facts: Facts, binder: Binder, variables: Variables) -> list[str]:
    """`self.averaged.ema.to(self.device)`, of what the constructor is given."""
    if "deepcopy" not in facts.text.text and not facts.copies_elsewhere:
        return []
    keeping = {c.name: kept for c in facts.walk(ast.ClassDef) if (kept := kept_copies(facts, c))}
    found = []
    for n in variables.constructor:
        if Variable("", n) not in variables.attributes:
            continue  # a device, which is the Module's own
        made = made_values(facts, n, binder.trunk_scope)
        may_miss = len(made) > 1 or any(_is_asked(facts, v) for v in made)
        for attributes in (_attributes(facts, v, keeping) for v in made if isinstance(v, ast.Call)):
            own = f"self.{variables.attributes[Variable('', n)]}"
            lines = [f"{own}.{a}.to({OWN})" for a in attributes]
            found += [f"if {own} is not None:", *(f"    {line}" for line in lines)] if lines and may_miss else lines
    return list(dict.fromkeys(found))


def made_values(facts: Facts, name: str, scope: Scope, depth: int = 0) -> list[ast.expr]:
    """What a name is given, a parameter by the calls of its function too."""
    statements = [facts.scopes.statement_of(s) for s in scope.stores.get(name, ())]
    values = [v for s in statements if (v := getattr(s, "value", None)) is not None]
    given = (facts.devices.given(scope, name) or []) if name in scope.params and depth < 4 else []
    for v in given:
        if isinstance(v, ast.Name) and (home := facts.scopes.scope_of(v).lookup(v.id)) is not None:
            values += made_values(facts, v.id, home, depth + 1)
        else:
            values.append(v)
    return values


def _is_asked(facts: Facts, value: ast.expr) -> bool:
    """Whether a value is given under a condition."""
    return isinstance(facts.scopes.parents.get(facts.scopes.statement_of(value)), (ast.If, ast.Try))


def _attributes(facts: Facts, made: ast.Call, keeping: dict[str, dict[str, ast.expr]]) -> list[str]:
    """Where an object that a call makes keeps copies, of a class of this file or of one that it imports."""
    if isinstance(made.func, ast.Name) and made.func.id in keeping:
        return list(keeping[made.func.id])
    return facts.copies_elsewhere.get((facts.names.resolve(made.func) or "").rpartition(".")[2], [])
