"""Batches that a loop over steps draws by hand, from an iterator that it makes anew when that is at its end.

`try: x = next(it)` / `except StopIteration: it = iter(loader); x = next(it)` at the top of a loop over steps is a loop
over the loader in a loop that goes on: the same batches in the same order, with the loader's epochs as epochs.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ...facts.nodes import walk
from ...facts.operands import negated
from ...facts.script import Facts
from ..nodes import is_call_of, walk_here
from ..splice import Splice, indent
from .bars import is_steady
from .draws import ends_with_it, is_quiet, of_builtin
from .edits import Edits, block_lines
from .free import free_at
from .loops import nearest_loop


@dataclass(frozen=True)
class _Drawn:
    """A loop over steps that draws: where its iterator is made, of what, what it draws and does at the end of it."""

    loop: ast.While | ast.For
    made: ast.stmt
    loader: str
    target: str
    ending: list[ast.stmt]


def draw_in_a_loop(facts: Facts) -> str | None:
    """The text with one such loop as two; None where there is none."""
    loops: list[ast.While | ast.For] = [*facts.walk(ast.While), *facts.walk(ast.For)]
    for loop in loops:
        if isinstance(loop.body[0], ast.Try) and any(is_call_of(n, "backward") for n in walk(loop, ast.Call)):
            drawn = _drawn(facts, loop)
            if drawn is not None and (lines := _lines(facts, drawn)) is not None:
                edits = Edits(facts)
                edits.replace_lines(drawn.made.lineno, drawn.made.end_lineno or drawn.made.lineno, [])
                edits.replace_lines(loop.lineno, loop.end_lineno or loop.lineno, indent(lines, facts.text.margin(loop)))
                return edits.done()
    return None


def _drawn(facts: Facts, loop: ast.While | ast.For) -> _Drawn | None:
    first = loop.body[0]
    handler = ends_with_it(first)
    if handler is None or not isinstance(first, ast.Try) or loop.orelse or facts.text.margin(loop).strip():
        return None
    if len(loop.body) < 2 or len(first.body) != 1 or len(handler.body) < 2 or handler.name:
        return None
    draw, again, anew = first.body[0], handler.body[-1], handler.body[-2]
    name, made = _drawn_from(draw), _made(anew)
    if name is None or made is None or made[0] != name or _plain(draw) != _plain(again):
        return None
    before = _made_before(facts, loop, _plain(anew))
    scope = facts.scopes.scope_of(draw)
    owns = len(scope.stores.get(name, ())) == 2 and len(list(facts.scopes.reads(name, scope))) == 2
    if before is None or not owns or name in scope.globals or not all(map(_is_simple, handler.body[:-2])):
        return None
    assert isinstance(draw, ast.Assign)
    return _Drawn(loop, before, made[1], facts.text.get(draw.targets[0]), handler.body[:-2])


def _drawn_from(s: ast.stmt) -> str | None:
    """`it` in `x = next(it)`."""
    call = s.value if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    only = of_builtin(call, "next") if isinstance(call, ast.Call) and len(call.args) == 1 else None
    return only.id if isinstance(only, ast.Name) else None


def _made(s: ast.stmt) -> tuple[str, str] | None:
    """`it` and `loader` in `it = iter(loader)`."""
    if not isinstance(s, ast.Assign) or len(s.targets) != 1 or not isinstance(s.targets[0], ast.Name):
        return None
    of = of_builtin(s.value, "iter")
    return (s.targets[0].id, ast.unparse(of)) if isinstance(of, (ast.Name, ast.Attribute)) else None


def _plain(s: ast.stmt) -> str:
    """The text of an assignment, whether it is annotated or not."""
    return ast.unparse(ast.Assign(s.targets, s.value, lineno=0)) if isinstance(s, ast.Assign) else ast.unparse(s)


def _made_before(facts: Facts, loop: ast.stmt, text: str) -> ast.stmt | None:
    """The statement that makes the iterator right above the loop, or above what draws nothing and gives no loader."""
    block = facts.scopes.block_of(loop)
    for s in reversed(block[: block.index(loop)]):
        if _plain(s) == text:
            return None if Splice(facts.text).shares_a_line(s) else s
        gives_none = isinstance(s, ast.Assign) and isinstance(s.value, (ast.Constant, ast.Call))
        if not gives_none or not is_quiet(facts, s):
            return None
    return None


def _is_simple(s: ast.stmt) -> bool:
    return isinstance(s, (ast.Assign, ast.AugAssign, ast.Expr))


def _lines(facts: Facts, drawn: _Drawn) -> list[str] | None:
    """The two loops; None where a step is left in a way that they have no form of."""
    loop, unit = drawn.loop, facts.indentation
    goes_on = _goes_on(facts, loop)
    own = [n for n in walk_here(loop) if isinstance(n, (ast.Break, ast.Continue)) and nearest_loop(facts, n) is loop]
    if goes_on is None or (goes_on[0] and any(isinstance(n, ast.Continue) for n in own)):
        return None
    test, begins, steps = goes_on
    ended = free_at(facts, loop, "ended")
    leaves = {facts.text.span(n): _left(facts, n, ended) for n in own if isinstance(n, ast.Break)}
    body = [*block_lines(facts, loop.body[1:], leaves), *steps]
    if test:
        body += [f"if {negated(test)}:", f"{unit}{ended} = True", f"{unit}break"]
    rounds = [f"for {drawn.target} in {drawn.loader}:", *indent(body, unit)]
    ending = block_lines(facts, drawn.ending, {})
    if not (test or leaves):
        return ["while True:", *indent([*rounds, *ending], unit)]
    if ending:
        rounds += [f"if not {ended}:", *indent(ending, unit)]
    begun = f"{ended} = {negated(test)}" if test else f"{ended} = False"
    return [*begins, begun, f"while not {ended}:", *indent(rounds, unit)]


def _goes_on(facts: Facts, loop: ast.While | ast.For) -> tuple[str, list[str], list[str]] | None:
    """What is asked before each step ("" where nothing is), what counts the steps before the first and after each."""
    if isinstance(loop, ast.While):
        always = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
        return ("" if always else facts.text.get(loop.test), [], [])
    counted, target = loop.iter, loop.target
    ranged = isinstance(counted, ast.Call) and isinstance(counted.func, ast.Name) and counted.func.id == "range"
    if not ranged or not isinstance(target, ast.Name) or counted.keywords or len(counted.args) > 2:  # type: ignore
        return None
    args: list[ast.expr] = counted.args  # type: ignore[attr-defined]
    scope, inside = facts.scopes.scope_of(loop), set(walk(loop))
    seen = [*facts.scopes.reads(target.id, scope), *scope.stores.get(target.id, ())]
    if not is_steady(facts, args) or not inside.issuperset(seen) or len(scope.stores.get(target.id, ())) > 1:
        return None
    first = facts.text.get(args[0]) if len(args) == 2 else "0"
    return f"{target.id} < {facts.text.get(args[-1])}", [f"{target.id} = {first}"], [f"{target.id} += 1"]


def _left(facts: Facts, n: ast.Break, ended: str) -> str:
    between = "; " if Splice(facts.text).shares_a_line(n) else "\n" + facts.text.margin(n)
    return f"{ended} = True{between}break"
