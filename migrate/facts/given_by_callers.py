"""What the uses of a function give one of its parameters: by a call, by `map`, and through a decorator of the file.

def on_device(f):
    def wrapped(model, *args):
        return f(model, *(a.to(device) for a in args))
    return wrapped

`args` is what the functions that it decorates are called with.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import argument
from .nodes import walk_own
from .whole_data import starred

if TYPE_CHECKING:
    from .script import Facts

Function = ast.FunctionDef | ast.Lambda


def given_by_callers(facts: Facts, f: Function, name: str) -> list[ast.expr | None]:
    """An expression for each value that the uses of a function show for a parameter; None where one does not."""
    bound = facts.classes.holder(f) is not None
    uses = [u for u in facts.classes.uses_of(f) if f not in facts.scopes.ancestors(u)]
    if isinstance(f, ast.FunctionDef):
        uses += _decorated_calls(facts, f)
    return [v for u in uses for v in _given(facts, u, f, name, bound)]


def _given(facts: Facts, use: ast.AST, f: Function, name: str, bound: bool) -> list[ast.expr | None]:
    if not isinstance(use, ast.Call):
        return _mapped(facts, use, f, name, bound)
    positional = [a.arg for a in (*f.args.posonlyargs, *f.args.args)][bound:]
    if f.args.vararg is not None and f.args.vararg.arg == name:
        return [*use.args[len(positional) :]]
    if f.args.kwarg is not None and f.args.kwarg.arg == name:
        own = {*positional, *(a.arg for a in f.args.kwonlyargs)}
        return [k.value for k in use.keywords if k.arg not in own]
    return [argument(use, f, name, bound) or starred(use)]


def _mapped(facts: Facts, use: ast.AST, f: Function, name: str, bound: bool) -> list[ast.expr | None]:
    """`map(to, (x, y))`: the elements of what it goes through."""
    call, positional = facts.scopes.parents.get(use), [a.arg for a in (*f.args.posonlyargs, *f.args.args)][bound:]
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "map"):
        return [None]
    place = 1 + positional.index(name) if name in positional else len(call.args)
    source = call.args[place] if call.args[0] is use and place < len(call.args) else None
    return [*source.elts] if isinstance(source, (ast.Tuple, ast.List)) else [source]


def _decorated_calls(facts: Facts, f: ast.FunctionDef) -> list[ast.AST]:
    """The calls of what is decorated by the function of this file that makes this one, and returns it."""
    maker = facts.scopes.parents.get(f)
    if not isinstance(maker, ast.FunctionDef) or not _returns(maker, f.name):
        return []
    above = facts.scopes.parents.get(maker)
    if isinstance(above, ast.FunctionDef) and _returns(above, maker.name):  # @on_device("cuda")
        maker = above
    return [
        use
        for decorated in facts.walk(ast.FunctionDef)
        if any(_name(d) == maker.name for d in decorated.decorator_list)
        for read in facts.scopes.reads(decorated.name, facts.scopes.scope_of(decorated))
        if isinstance(use := facts.scopes.parents.get(read), ast.Call) and use.func is read
    ]


def _returns(f: ast.FunctionDef, name: str) -> bool:
    returned = (n.value for n in walk_own(f.body) if isinstance(n, ast.Return))
    return any(isinstance(v, ast.Name) and v.id == name for v in returned)


def _name(decorator: ast.expr) -> str:
    func = decorator.func if isinstance(decorator, ast.Call) else decorator
    return func.id if isinstance(func, ast.Name) else ""
