"""Networks that an object of the script keeps, `ModelEMA(net).ema`: they go to the Module's device with it."""

from __future__ import annotations

import ast

from ..facts.kept_copies import kept_copies
from ..facts.script import Facts
from .chunks import Binder, Variable, Variables
from .own_device import OWN


def kept_networks(facts: Facts, binder: Binder, variables: Variables) -> list[str]:
    """`self.averaged.ema.to(self.device)`, of what the constructor is given."""
    if "deepcopy" not in facts.text.text:
        return []
    classes = {c.name: c for c in facts.walk(ast.ClassDef)}
    found = []
    for n in variables.constructor:
        made = [facts.scopes.statement_of(s) for s in binder.trunk_scope.stores.get(n, ())]
        values = [getattr(s, "value", None) for s in made]
        called = {v.func.id for v in values if isinstance(v, ast.Call) and isinstance(v.func, ast.Name)}
        may_miss = len(made) > 1 or any(isinstance(facts.scopes.parents.get(s), ast.If | ast.Try) for s in made)
        for name in sorted(called & classes.keys()):
            own = f"self.{variables.attributes[Variable('', n)]}"
            lines = [f"{own}.{a}.to({OWN})" for a in kept_copies(facts, classes[name])]
            found += [f"if {own} is not None:", *(f"    {line}" for line in lines)] if lines and may_miss else lines
    return found
