"""Objects that a step gives what it computes of its batch: on each rank they hold what that rank's share gave.

`meter.update(out.max().item())`, `seen.append(x.mean())`, `self.worst = loss.item()`: what asks them is asked otherwise
by each rank.
"""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.spelled import spelled
from .reads import stored
from .recipe import DataPass, once_a_pass

DOTTED = (ast.Name, ast.Attribute)


def asks_touched(node: ast.AST, of: set[str]) -> bool:
    """Whether an expression reads such an object, or anything of it: `meter.avg`, `seen[-1]`."""
    return bool(of) and any(isinstance(n, DOTTED) and spelled(n) in of for n in walk(node))


@once_a_pass
def touched(facts: Facts, passing: DataPass) -> set[str]:
    """Their names, as `meter` and `self.meter`."""
    own = (stored(passing.body) | {n.id for n in walk(passing.target, ast.Name)}) - {passing.index}
    found: set[str] = set()
    for n in (n for s in passing.body for n in walk(s)):
        if isinstance(n, (ast.Attribute, ast.Subscript)) and isinstance(n.ctx, ast.Store):
            found.add(spelled(n if isinstance(n, ast.Attribute) else n.value))
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and isinstance(n.func.value, DOTTED):
            given = (*n.args, *n.keywords)
            if any(x.id in own for a in given for x in walk(a, ast.Name)):
                found |= _by_method(facts, n.func)
    return found


def _by_method(facts: Facts, method: ast.Attribute) -> set[str]:
    """What a method that is given such a value may change: its object; of an object's own, what the method sets."""
    of = method.value
    if not facts.classes.is_self(of):
        return set() if facts.names.resolve(method) is not None else {spelled(of)}
    holder = next((up for up in facts.scopes.ancestors(method) if isinstance(up, ast.ClassDef)), None)
    f = facts.classes.methods(holder).get(method.attr) if holder is not None else None
    return {spelled(n) for n in walk(f, ast.Attribute) if isinstance(n.ctx, ast.Store)} if f is not None else set()
