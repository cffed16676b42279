"""T1, told of: `self.table.cuda()` of a class of another file, no module, that moves by its own cuda() what it makes.

The call goes with all others; nothing that the runtime places has such an object's tensors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.batch_functions import is_own
from ..facts.nodes import walk
from ..facts.other_files import found_there
from ..facts.own_movers import MOVERS
from ..facts.script import Facts
from ..report import Note

SAYS = "which nothing moves now: that stays where it is made"


def own_moves(facts: Facts, code: str) -> Iterator[Note]:
    """Such calls, which go."""
    for call in facts.walk(ast.Call) if facts.others else ():
        moved = facts.devices.moved(call)
        if not isinstance(moved, (ast.Name, ast.Attribute)) or not facts.placed.by_runtime(moved):
            continue
        assert isinstance(call.func, ast.Attribute)
        method = call.func.attr
        names = dict.fromkeys(f"`{n}`" for made in _made(facts, moved) for n in _left(facts, made, method))
        if names:
            line, column, _, _ = facts.text.key(call)
            says = f"`{facts.short(call)}` removed: the class's own {method}() moves {' and '.join(names)}, {SAYS}"
            yield Note(line, column + 1, code, says)


def _made(facts: Facts, node: ast.Name | ast.Attribute) -> list[ast.Call]:
    """The calls that a name or an attribute of an object's own is given."""
    if isinstance(node, ast.Name):
        scope = facts.scopes.scope_of(node).lookup(node.id)
        values = facts.devices.assigned(node.id, scope) or [] if scope is not None else []
    else:
        stores = [a for a in facts.attributes.get(node.attr, ()) if ast.unparse(a) == ast.unparse(node)]
        ups = [facts.scopes.parents.get(a) for a in stores if not isinstance(a.ctx, ast.Load)]
        values = [up.value for up in ups if isinstance(up, ast.Assign)]
    return [v for v in values if isinstance(v, ast.Call)]


def _left(facts: Facts, made: ast.Call, method: str) -> list[str]:
    """The tensors that such an object makes and its method moves."""
    found = found_there(facts, made.func)
    there, c = found[1:] if found is not None else (facts, None)
    if not isinstance(c, ast.ClassDef) or c in there.classes.modules:
        return []
    own = there.classes.methods(c).get(method)
    calls = [n.func for n in walk(own, ast.Call)] if own is not None else []
    moved = [f.value for f in calls if isinstance(f, ast.Attribute) and f.attr in MOVERS]
    names = [m.attr for m in moved if is_own(m)]
    return [f"self.{name}" for name in names if _is_tensor(there, c, name)]


def _is_tensor(there: Facts, c: ast.ClassDef, name: str) -> bool:
    """Whether the class makes a tensor of an attribute."""
    ups = [there.scopes.parents.get(n) for n in walk(c, ast.Attribute) if n.attr == name]
    values = [up.value for up in ups if isinstance(up, ast.Assign)]
    return any(there.tensors.made(v) for v in values)
