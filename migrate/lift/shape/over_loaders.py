"""A loop that draws every batch of a loader by hand is a loop over the loader.

    batches = iter(loader)                    batches = iter(loader)
    for i in range(len(loader)):              while (batch := next(batches, None)) is not None:
        x, y = next(batches)                      x, y = batch

The last batch is the last in both; nothing else draws from the iterator.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ...facts.nodes import walk
from ...facts.script import Facts
from ..loaders import is_loader, values_of
from ..nodes import walk_here
from ..reads import stored
from ..splice import Splice
from .draws import ends_with_it, is_quiet, of_builtin
from .edits import Edits
from .free import free_at
from .hoist import comes_first
from .loops import nearest_loop

Loop = ast.For | ast.While
PLAIN = ast.Name | ast.Attribute | ast.Subscript
# whose own generators may do something behind the last batch, which a draw by hand does not come to
GENERATORS = ("Sampler", "IterableDataset")


@dataclass(frozen=True)
class _Drawn:
    """`made` is `batches = iter(loader)`, `draw` the one call of next(), `taken` the statement that it stands in."""

    loop: Loop
    made: ast.Assign
    loader: ast.expr
    draw: ast.Call
    taken: ast.stmt


def draw_by_the_loop(facts: Facts) -> str | None:
    """The text with one such loop over its loader; None where there is none."""
    if "next(" not in facts.text.text or "iter(" not in facts.text.text:
        return None
    for s in facts.walk(ast.Assign):
        drawn = _drawn(facts, s)
        if drawn is not None and (text := _written(facts, drawn)) is not None:
            return text
    return None


def _drawn(facts: Facts, s: ast.Assign) -> _Drawn | None:
    """What draws from the iterator that a statement makes, where one loop below does and nothing else."""
    loader, target = of_builtin(s.value, "iter"), s.targets[0]
    if not isinstance(loader, PLAIN) or len(s.targets) != 1 or not isinstance(target, ast.Name):
        return None
    scope = facts.scopes.scope_of(s)
    reads = list(facts.scopes.reads(target.id, scope))
    draw = facts.scopes.parents.get(reads[0]) if len(reads) == 1 and len(scope.stores.get(target.id, ())) == 1 else None
    if not isinstance(draw, ast.Call) or of_builtin(draw, "next") is not reads[0]:
        return None
    loop = nearest_loop(facts, draw)
    if not isinstance(loop, Loop) or loop.orelse or target.id in scope.globals:
        return None
    block = facts.scopes.block_of(s)
    if loop not in block or Splice(facts.text).shares_a_line(s):
        return None
    between = block[block.index(s) + 1 : block.index(loop)]
    if not all(is_quiet(facts, n) for n in between) or stored(between) & {n.id for n in walk(loader, ast.Name)}:
        return None
    return _Drawn(loop, s, loader, draw, facts.scopes.statement_of(draw))


def _written(facts: Facts, drawn: _Drawn) -> str | None:
    loop = drawn.loop
    if isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and loop.test.value:
        return _until_it_ends(facts, drawn)
    if not is_loader(facts, drawn.loader):
        return None
    if isinstance(loop, ast.While) and any(n is drawn.draw for n in walk(loop.test)):
        return _named(facts, drawn)
    if _goes_on_behind(facts):
        return None
    if isinstance(loop, ast.While):
        return _while_below(facts, drawn)
    return _counted(facts, drawn) if _is_length(facts, loop.iter, drawn.loader) else None


def _goes_on_behind(facts: Facts) -> bool:
    """Whether a loader may draw, or do, something behind its last batch: a loop that counts stops one step before it.

    A generator that is given to it goes on there (torch's RandomSampler asks it for one permutation more).
    """
    given = any(k.arg == "generator" for c in facts.walk(ast.Call) for k in c.keywords)
    bases = (ast.unparse(b) for c in facts.walk(ast.ClassDef) for b in c.bases)
    there = any(re.search(r"\bgenerator\s*=|Sampler\)|IterableDataset\)", o.text) for o in facts.others)
    return given or there or any(b.endswith(GENERATORS) for b in bases)


def _is_length(facts: Facts, counted: ast.expr, loader: ast.expr) -> bool:
    """`range(len(loader))`"""
    if not (isinstance(counted, ast.Call) and isinstance(counted.func, ast.Name) and counted.func.id == "range"):
        return False
    return len(counted.args) == 1 and not counted.keywords and _counts(facts, counted.args[0], loader)


def _counts(facts: Facts, n: ast.expr, loader: ast.expr) -> bool:
    """`len(loader)`, or a name of it."""
    if isinstance(n, ast.Name):
        scope = facts.scopes.scope_of(n).lookup(n.id)
        values = values_of(facts, n.id, scope) if scope is not None and n.id not in scope.params else []
        return len(values) == 1 and isinstance(values[0], ast.Call) and _counts(facts, values[0], loader)
    length = isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "len" and len(n.args) == 1
    return length and ast.unparse(n.args[0]) == ast.unparse(loader)  # type: ignore[attr-defined]


def _counted(facts: Facts, drawn: _Drawn) -> str | None:
    loop = drawn.loop
    assert isinstance(loop, ast.For)
    if not isinstance(loop.target, ast.Name):
        return None
    scope = facts.scopes.scope_of(loop)
    is_read = any(facts.scopes.reads(loop.target.id, scope))
    return _over(facts, drawn, loop.target.id if is_read else "")


def _over(facts: Facts, drawn: _Drawn, index: str = "") -> str | None:
    """The loop over the loader, its batch by the name that the draw gave it; `index`: and its number by that."""
    loop, taken = drawn.loop, drawn.taken
    if taken not in loop.body or not all(is_quiet(facts, s) for s in loop.body[: loop.body.index(taken)]):
        return None
    if facts.is_fixed(drawn.draw) or Splice(facts.text).shares_a_line(taken):
        return None
    above = loop.body[: loop.body.index(taken)]
    edits = Edits(facts)
    if isinstance(taken, ast.Assign) and taken.value is drawn.draw and len(taken.targets) == 1:
        if len(loop.body) == 1 or stored([taken]) & {n.id for s in above for n in walk(s, ast.Name)}:
            return None
        edits.replace_lines(taken.lineno, taken.end_lineno or taken.lineno, [])
        return _headed(facts, drawn, edits, facts.text.get(taken.targets[0]), index)
    if not comes_first(facts, taken, drawn.draw):
        return None
    name = free_at(facts, loop, "batch")
    edits.replace_node(drawn.draw, name)
    return _headed(facts, drawn, edits, name, index)


def _headed(facts: Facts, drawn: _Drawn, edits: Edits, target: str, index: str = "") -> str:
    loop, loader = drawn.loop, facts.text.get(drawn.loader)
    part = f"({target})" if "," in target and not target.startswith(("(", "[")) else target
    head = f"for {index}, {part} in enumerate({loader}):" if index else f"for {target} in {loader}:"
    start, _ = facts.text.span(loop)
    stop = _end_of_head(facts, loop)
    edits.replace(start, stop, head)
    edits.replace_lines(drawn.made.lineno, drawn.made.end_lineno or drawn.made.lineno, [])
    return edits.done()


def _end_of_head(facts: Facts, loop: Loop) -> int:
    """Where the colon of a loop's head ends."""
    last = loop.iter if isinstance(loop, ast.For) else loop.test
    _, at = facts.text.span(last)
    return facts.text.text.index(":", at) + 1


def _until_it_ends(facts: Facts, drawn: _Drawn) -> str | None:
    """`try: x = next(it)` / `except StopIteration: break`, at the top of a loop without an end."""
    loop = drawn.loop
    first = loop.body[0]
    handler = ends_with_it(first)
    if not isinstance(first, ast.Try) or handler is None or len(loop.body) < 2:
        return None
    if len(handler.body) != 1 or not isinstance(handler.body[0], ast.Break):
        return None
    taken, *more = first.body
    if more or not (isinstance(taken, ast.Assign) and taken.value is drawn.draw and len(taken.targets) == 1):
        return None
    if len(drawn.draw.args) != 1:
        return None
    edits = Edits(facts)
    edits.replace_lines(first.lineno, first.end_lineno or first.lineno, [])
    return _headed(facts, drawn, edits, facts.text.get(taken.targets[0]))


def _named(facts: Facts, drawn: _Drawn) -> str | None:
    """`while (batch := next(it, None)) is not None:`, of a batch that nothing reads below the loop."""
    loop, test = drawn.loop, drawn.loop.test  # type: ignore[union-attr]
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot)):
        return None
    named, none = test.left, test.comparators[0]
    without = [*drawn.draw.args[1:], none]
    if not (isinstance(named, ast.NamedExpr) and named.value is drawn.draw and len(without) == 2):
        return None
    if not all(isinstance(n, ast.Constant) and n.value is None for n in without):
        return None
    inside, scope = set(walk(loop)), facts.scopes.scope_of(loop)
    if not inside.issuperset(facts.scopes.reads(named.target.id, scope)):
        return None
    return _headed(facts, drawn, Edits(facts), named.target.id)


def _while_below(facts: Facts, drawn: _Drawn) -> str | None:
    """`while i < len(loader):` with `i += 1` in every step, which goes on counting."""
    loop, test = drawn.loop, drawn.loop.test  # type: ignore[union-attr]
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Lt)):
        return None
    if not isinstance(test.left, ast.Name) or not _counts(facts, test.comparators[0], drawn.loader):
        return None
    name, block = test.left.id, facts.scopes.block_of(loop)
    between = block[max(block.index(drawn.made) - 1, 0) : block.index(loop)]
    begins = [s for s in between if isinstance(s, ast.Assign) and name in stored([s])]
    zero = len(begins) == 1 and isinstance(begins[0].value, ast.Constant) and begins[0].value.value == 0
    adds = [s for s in loop.body if _adds_one(s, name)]
    stores = [n for n in walk(loop, ast.Name) if n.id == name and isinstance(n.ctx, ast.Store)]
    goes_on = [n for n in walk_here(loop) if isinstance(n, ast.Continue) and nearest_loop(facts, n) is loop]
    if not zero or len(adds) != 1 or len(stores) != 1 or goes_on:
        return None
    return _over(facts, drawn)


def _adds_one(s: ast.stmt, name: str) -> bool:
    plain = isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name) and isinstance(s.op, ast.Add)
    return plain and s.target.id == name and isinstance(s.value, ast.Constant) and s.value.value == 1  # type: ignore
