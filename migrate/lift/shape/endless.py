"""A generator that goes over a loader again and again is the loader's iterator, made anew at its end.

    def cycle(loader):                        data = DataLoader(...)
        while True:                           batches = iter(data)
            yield from loader                 for step in range(n):
                                                  try:
    data = cycle(DataLoader(...))                     x, y = next(batches)
    for step in range(n):                         except StopIteration:
        x, y = next(data)                             batches = iter(data)
                                                      x, y = next(batches)

What draws so is written as two loops by iterators.py.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..loaders import is_loader
from ..nodes import is_call_of, local_function
from ..reads import stored
from ..splice import Splice, indent
from .draws import is_quiet, of_builtin
from .edits import Edits
from .free import free_at
from .hoist import comes_first
from .loops import nearest_loop


def draw_from_an_iterator(facts: Facts) -> str | None:
    """The text with one such generator as an iterator; None where there is none."""
    if "next(" not in facts.text.text or "yield" not in facts.text.text:
        return None
    for s in facts.walk(ast.Assign):
        loader = _gone_over(facts, s.value)
        if loader is not None and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
            draw = _only_draw(facts, s, s.targets[0].id)
            if draw is not None and (text := _written(facts, s, loader, draw)) is not None:
                return text
    return None


def _gone_over(facts: Facts, made: ast.expr) -> ast.expr | None:
    """The loader that a call of such a generator goes over."""
    f = local_function(facts, made.func) if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else None
    if not isinstance(f, ast.FunctionDef) or not isinstance(made, ast.Call) or f.decorator_list or made.keywords:
        return None
    body = f.body[1:] if isinstance(f.body[0], ast.Expr) and isinstance(f.body[0].value, ast.Constant) else f.body
    only = body[0] if len(body) == 1 else None
    plain = not (f.args.defaults or f.args.kwonlyargs or f.args.vararg or f.args.kwarg or f.args.posonlyargs)
    if not isinstance(only, ast.While) or only.orelse or len(only.body) != 1 or not plain:
        return None
    if not (isinstance(only.test, ast.Constant) and only.test.value) or len(made.args) != 1:
        return None
    source = _yielded_whole(only.body[0])
    loader = made.args[0]
    return loader if source == f.args.args[0].arg and is_loader(facts, loader) else None


def _yielded_whole(s: ast.stmt) -> str | None:
    """The name of what `for batch in loader: yield batch`, or `yield from loader`, goes over."""
    source: ast.expr | None = None
    if isinstance(s, ast.Expr) and isinstance(s.value, ast.YieldFrom):
        source = s.value.value
    elif isinstance(s, ast.For) and len(s.body) == 1 and not s.orelse and isinstance(s.body[0], ast.Expr):
        given = s.body[0].value
        if isinstance(given, ast.Yield) and given.value is not None:
            source = s.iter if ast.unparse(given.value).strip("()") == ast.unparse(s.target).strip("()") else None
    return source.id if isinstance(source, ast.Name) else None


def _only_draw(facts: Facts, made: ast.Assign, name: str) -> ast.Call | None:
    """The one call of next() that reads the generator."""
    scope = facts.scopes.scope_of(made)
    reads = list(facts.scopes.reads(name, scope))
    if len(reads) != 1 or len(scope.stores.get(name, ())) != 1 or name in scope.globals:
        return None
    draw = facts.scopes.parents.get(reads[0])
    if not isinstance(draw, ast.Call) or len(draw.args) != 1:
        return None
    return draw if of_builtin(draw, "next") is reads[0] else None


def _written(facts: Facts, made: ast.Assign, loader: ast.expr, draw: ast.Call) -> str | None:
    loop, taken = nearest_loop(facts, draw), facts.scopes.statement_of(draw)
    if not isinstance(loop, ast.For | ast.While) or loop.orelse or nearest_loop(facts, loop) or taken not in loop.body:
        return None
    first, above = loop.body[0], loop.body[: loop.body.index(taken)]
    steps = any(is_call_of(n, "backward") for n in walk(loop, ast.Call))
    if not steps or facts.scopes.scope_of(loop) is not facts.scopes.scope_of(made):
        return None
    if not all(is_quiet(facts, s) for s in above) or facts.is_fixed(draw):
        return None
    if any(map(Splice(facts.text).shares_a_line, (loop, taken, first))):
        return None
    whole = taken if isinstance(taken, ast.Assign) and taken.value is draw and len(taken.targets) == 1 else None
    if stored([whole] if whole else []) & {n.id for s in above for n in walk(s, ast.Name)}:
        return None
    if whole is None and not comes_first(facts, taken, draw):
        return None
    name, batches, edits = made.targets[0].id, free_at(facts, loop, "batches"), Edits(facts)  # type: ignore
    target = facts.text.get(whole.targets[0]) if whole else free_at(facts, loop, "batch")
    anew, drawn, unit = f"{batches} = iter({name})", f"{target} = next({batches})", facts.indentation
    lines = ["try:", f"{unit}{drawn}", "except StopIteration:", f"{unit}{anew}", f"{unit}{drawn}"]
    edits.replace_node(made.value, facts.text.get(loader))
    edits.replace_lines(loop.lineno, loop.lineno - 1, [f"{facts.text.margin(loop)}{anew}"])
    inside = indent(lines, facts.text.margin(first))
    if whole is first:
        edits.replace_lines(first.lineno, first.end_lineno or first.lineno, inside)
        return edits.done()
    edits.replace_lines(first.lineno, first.lineno - 1, inside)
    if whole is not None:
        edits.replace_lines(whole.lineno, whole.end_lineno or whole.lineno, [])
    else:
        edits.replace_node(draw, target)
    return edits.done()
