"""The lift as a change of the text: the class where the training function was, the Trainer where the loop was."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..facts.runtime_names import RUNTIME
from ..facts.script import Facts
from ..report import Edit, Note
from .find import find, outline
from .imports import import_edit
from .module import Lifted, ModuleBuilder
from .recipe import CannotLift, Recipe
from .shared import may_stay_global
from .splice import Splice, indent

ATTEMPTS = ((True, True), (False, True), (True, False), (False, False))  # (lift the evaluation, automatic steps)


def lift(
    facts: Facts,
    accelerator: str | None = None,
    places: bool = True,
    by_hand: bool = True,
    imports: Sequence[str] = (),
) -> tuple[str, str, list[Edit], list[Note]]:
    """The lifted text, its plan (module or manual), edits and notes; CannotLift where it is not shown to be right.

    `places`: tensors that the script puts on a device by name go to the Module's own. `by_hand`: whether the Module may
    step its optimizers itself. `imports`: what the text imports of the runtime.
    """
    first: CannotLift | None = None
    tried: list[tuple[bool, bool]] = []
    loops = outline(facts)
    for evaluates, automatic in ATTEMPTS:
        if (evaluates, automatic) in tried:
            continue  # the same recipe once more
        try:
            recipe = find(facts, loops, evaluates, automatic)
            tried += _also(recipe, evaluates, automatic)
            if recipe.optimization.manual and not by_hand:
                raise CannotLift(None, "its steps are by hand")
            lifted = _built(facts, recipe, accelerator, places)
        except CannotLift as why:
            first = first or why.alone
            continue
        plan = "manual" if recipe.optimization.manual else "module"
        return _assemble(facts, recipe, lifted, imports), plan, lifted.edits, lifted.attention
    assert first is not None
    raise first


def _built(facts: Facts, recipe: Recipe, accelerator: str | None, places: bool) -> Lifted:
    """The Module; names that functions share with the loop stay globals where they may."""
    while True:
        try:
            return ModuleBuilder(facts, recipe, accelerator, places).build()
        except CannotLift as why:
            if not why.shared or why.shared in recipe.shared or not may_stay_global(facts, recipe, why.shared):
                raise
            recipe.shared.add(why.shared)


def _also(recipe: Recipe, evaluates: bool, automatic: bool) -> list[tuple[bool, bool]]:
    """The attempts that give the same recipe: there is no evaluation to leave alone, or the step is manual already."""
    alike = [evaluates] if recipe.evaluate is not None else [True, False]
    return [(e, a) for e in alike for a in ([True, False] if recipe.optimization.manual else [automatic])]


def _assemble(facts: Facts, recipe: Recipe, lifted: Lifted, imports: Sequence[str]) -> str:
    splice = Splice(facts.text)
    newline = facts.text.newline
    edits: list[tuple[int, int, str]] = []
    if imports:
        edits.append(import_edit(facts.tree, facts.text, RUNTIME, list(imports)))
    trunk = newline.join(indent(lifted.trunk_lines, facts.text.margin(recipe.epoch_loop)))
    first = facts.text.line_of(facts.text.span(recipe.epoch_loop)[0])
    last = splice.with_inner_comments(recipe.epoch_loop)
    a, b = facts.text.line_span(first, last)
    edits.append((a, b, trunk + (newline if facts.text.text[a:b].endswith(("\n", "\r")) else "")))
    for s in lifted.configured.moved:
        first, last = splice.with_comments(s, _block_floor(recipe, s))
        edits.append((*facts.text.line_span(first, last), ""))
    edits += _without_moves(facts, lifted)
    for line, lines in _bound_first(facts, recipe, lifted.unbound):
        at, _ = facts.text.line_span(line, line)
        edits.append((at, at, newline.join(lines) + newline))
    text = newline.join(lifted.class_lines)
    with_loop = [f for f in lifted.removed if recipe.epoch_loop in facts.scopes.ancestors(f)]  # these go with it
    functions = sorted((f for f in lifted.removed if f not in with_loop), key=lambda f: f.lineno)
    placed = False
    for f in functions:
        first, _ = splice.with_comments(f)
        a, b = facts.text.line_span(first, splice.with_inner_comments(f))
        if not placed and f in facts.tree.body:
            edits.append((a, b, text + newline))
            placed = True
        else:
            edits.append((a, _with_blank_lines(facts, b), ""))
    if not placed:
        edits.append(_before_trunk(facts, recipe, text, newline))
    return _apply(facts.text.text, edits)


def _without_moves(facts: Facts, lifted: Lifted) -> Iterator[tuple[int, int, str]]:
    """The script without the moves of what moves with the Module."""
    idle = lifted.configured.idle
    for s in idle:
        first, last = s.lineno, s.end_lineno or s.lineno
        around = [facts.text.text[slice(*facts.text.line_span(n, n))].strip() for n in (max(first - 1, 1), last + 1)]
        yield *facts.text.line_span(first, last if any(around) else last + 1), ""
    for call in lifted.configured.unmoved:
        if not any(up in idle for up in facts.scopes.ancestors(call)):
            yield *facts.text.method_of(call), ""


def _bound_first(facts: Facts, recipe: Recipe, names: list[str]) -> list[tuple[int, list[str]]]:
    """`name = None` above the statement that may or may not give the name a value: the constructor takes it."""
    found: list[tuple[int, list[str]]] = []
    scope = facts.scopes.scope_of(recipe.epoch_loop)
    blocks = {id(recipe.trunk_body): recipe.trunk_body}
    for up in facts.scopes.ancestors(recipe.epoch_loop):
        for block in (getattr(up, "body", None), getattr(up, "orelse", None)):
            if isinstance(block, list):
                blocks[id(block)] = block
    for name in names:
        if not scope.stores.get(name):  # a global: above all that may give it a value
            found.append(_global_first(facts, name))
            continue
        holder = facts.scopes.statement_of(scope.stores[name][0])
        while not any(holder in block for block in blocks.values()):
            holder = facts.scopes.statement_of(facts.scopes.parents[holder])
        first, _ = Splice(facts.text).with_comments(holder)
        found.append((first, [f"{facts.text.margin(holder)}{name} = None"]))
    return found


def _global_first(facts: Facts, name: str) -> tuple[int, list[str]]:
    """`name = None` at the level of the module, above the first statement there that may give the name a value."""
    holder: ast.AST = facts.scopes.module.stores[name][0]
    while facts.scopes.parents[holder] is not facts.tree:
        holder = facts.scopes.parents[holder]
    assert isinstance(holder, ast.stmt)
    apart = ["", ""] if isinstance(holder, (ast.FunctionDef, ast.ClassDef)) else []
    first, _ = Splice(facts.text).with_comments(holder)
    return first, [f"{name} = None", *apart]


def _block_floor(recipe: Recipe, s: ast.stmt) -> int:
    at = recipe.trunk_body.index(s)
    return (recipe.trunk_body[at - 1].end_lineno or 0) + 1 if at else 1


def _before_trunk(facts: Facts, recipe: Recipe, text: str, newline: str) -> tuple[int, int, str]:
    """Right before the statement of the module that holds the loop, when no function made room for the class."""
    holder: ast.AST = recipe.epoch_loop
    while facts.scopes.parents[holder] is not facts.tree:
        holder = facts.scopes.parents[holder]
    assert isinstance(holder, ast.stmt)
    first, _ = Splice(facts.text).with_comments(holder)
    a, _ = facts.text.line_span(first, first)
    above = facts.text.text[:a].split("\n")[:-1]
    blank = next((i for i, line in enumerate(reversed(above)) if line.strip()), 2)
    return a, a, newline * max(2 - blank, 0) + text + newline * 3


def _with_blank_lines(facts: Facts, stop: int) -> int:
    """The end of a removed function, with the blank lines that separated it from the next."""
    starts, text = facts.text.starts, facts.text.text
    for start, end in pairwise(starts):
        if start == stop and not text[start:end].strip():
            stop = end
    return stop


def _apply(text: str, edits: list[tuple[int, int, str]]) -> str:
    out, at = [], 0
    for a, b, new in sorted(edits, key=lambda e: (e[0], e[1])):
        assert a >= at, "edits overlap"
        out += [text[at:a], new]
        at = b
    return "".join([*out, text[at:]])
