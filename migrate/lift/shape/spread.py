"""Arguments that a dictionary holds are written in the calls.

given = dict(model=net, lr=args.lr)
train(**given)                            train(model=net, lr=args.lr)
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..nodes import local_function
from ..splice import Splice
from .edits import Edits
from .ranges import is_builtin


def write_arguments(facts: Facts) -> str | None:
    """The text with one such dictionary written out; None where there is none."""
    spread = [k.value for c in facts.walk(ast.Call) for k in c.keywords if k.arg is None]
    for name in spread:
        made = _made(facts, name) if isinstance(name, ast.Name) else None
        if made is not None and isinstance(name, ast.Name) and (text := _written(facts, name, made)) is not None:
            return text
    return None


def _made(facts: Facts, name: ast.Name) -> ast.Assign | None:
    """The one statement that gives the dictionary its name."""
    scope = facts.scopes.scope_of(name).lookup(name.id)
    stores = list(scope.stores.get(name.id, ())) if scope is not None and name.id not in scope.params else []
    s = facts.scopes.parents.get(stores[0]) if len(stores) == 1 else None
    return s if isinstance(s, ast.Assign) and len(s.targets) == 1 and s.targets[0] is stores[0] else None


def _written(facts: Facts, name: ast.Name, made: ast.Assign) -> str | None:
    given = _given(facts, made.value)
    scope = facts.scopes.scope_of(made)
    if not given or Splice(facts.text).shares_a_line(made) or facts.scopes.block_of(made) == [made]:
        return None
    if not all(_is_steady(facts, v, made) for v in given.values()):
        return None
    edits = Edits(facts)
    for read in facts.scopes.reads(name.id, scope):
        keyword = facts.scopes.parents.get(read)
        call = facts.scopes.parents.get(keyword) if isinstance(keyword, ast.keyword) and keyword.arg is None else None
        f = local_function(facts, call.func) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
        if f is None or facts.scopes.scope_of(read) is not scope or facts.is_fixed(read):
            return None
        start, stop = facts.text.span(read)
        stars = facts.text.text.rindex("**", 0, start)
        edits.replace(stars, stop, ", ".join(f"{k}={facts.text.get(v)}" for k, v in given.items()))
    edits.replace_lines(made.lineno, made.end_lineno or made.lineno, [])
    return edits.done()


def _given(facts: Facts, made: ast.expr) -> dict[str, ast.expr]:
    """What the dictionary has, by its keys; nothing where they do not show."""
    if isinstance(made, ast.Dict):
        keys = [k.value for k in made.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
        named = len(set(keys)) == len(made.keys) and all(map(str.isidentifier, keys))
        return dict(zip(keys, made.values, strict=True)) if named else {}
    if not isinstance(made, ast.Call) or not is_builtin(facts, made, "dict") or made.args:
        return {}
    given = {k.arg: k.value for k in made.keywords if k.arg is not None}
    return given if len(given) == len(made.keywords) else {}


def _is_steady(facts: Facts, value: ast.expr, made: ast.Assign) -> bool:
    """Whether a value is the same where the call is: a constant, a name that is given one value, an option of one."""
    for n in walk(value):
        if isinstance(n, ast.Name):
            home = facts.scopes.scope_of(n).lookup(n.id)
            if home is None or len(home.stores.get(n.id, ())) + (n.id in home.params) > 1:
                return False
            if facts.scopes.scope_of(made) is not home and any(n.id in s.stores for s in home.children):
                return False
        elif isinstance(n, ast.Attribute):
            if any(
                not isinstance(a.ctx, ast.Load) and a.lineno > made.lineno for a in facts.attributes.get(n.attr, ())
            ):
                return False
        elif not isinstance(n, (ast.Constant, ast.expr_context, ast.UnaryOp, ast.unaryop)):
            return False
    return True
