"""Loops in the one form that the lift reads: an epoch loop that counts, around a for loop over batches.

Each rewriting means the same: `while c:` is `for _ in itertools.count(): if not c: break`, a lone loop over batches
is one epoch, and a lone loop over epochs takes one step in each.
"""

from __future__ import annotations

import ast
import re

from ...facts.nodes import walk
from ...facts.operands import negated
from ...facts.script import Facts, once_a_file
from ..backwards import training_backwards
from ..loaders import counts_with_bar, is_progress, iterates_loader
from ..nodes import is_call_of, walk_here
from ..splice import Splice, indent
from .calls import called_below, enclosing_function, only_call
from .edits import Edits, block_lines

EPOCH = re.compile(r"(^|_)(epochs?|ep|epoch_?\w*|\w*_epoch)$|^(i_epoch|e)$", re.IGNORECASE)


def count_whiles(facts: Facts) -> str | None:
    """A while loop that makes steps becomes a for loop."""
    loop = step_loop(facts)
    if not isinstance(loop, ast.While) or loop.orelse:
        return None
    by = facts.text.margin(loop)
    if by.strip():
        return None
    first = loop.lineno
    lines = [f"{by}for _ in itertools.count():"]
    inner = facts.text.margin(loop.body[0])
    if not (isinstance(loop.test, ast.Constant) and loop.test.value):
        lines += [f"{inner}if {negated(facts.text.get(loop.test))}:", f"{inner}{inner[len(by) :] or '    '}break"]
    edits = Edits(facts)
    head_ends = facts.text.line_of(facts.text.span(loop.test)[1])
    if facts.text.line_of(facts.text.span(loop.body[0])[0]) <= head_ends or inner.strip():
        return None
    edits.replace_lines(first, head_ends, lines)
    return with_import(edits.done(), "itertools")


def end_whiles(facts: Facts) -> str | None:
    """A while loop around the loop over batches becomes a for loop that asks at the end of each round."""
    batches = step_loop(facts)
    loop = epochs_of(facts, batches) if isinstance(batches, ast.For) and over_batches(facts, batches) else None
    if not isinstance(loop, ast.While) or loop.orelse or facts.text.margin(loop).strip():
        return None
    if any(isinstance(n, ast.Continue) and nearest_loop(facts, n) is loop for n in walk_here(loop)):
        return None
    counting, unit = "for _ in itertools.count():", facts.indentation
    body, test = block_lines(facts, loop.body, {}), facts.text.get(loop.test)
    if isinstance(loop.test, ast.Constant) and loop.test.value:
        lines = [counting, *indent(body, unit)]
    else:
        asks = [f"if {negated(test)}:", *indent(["break"], unit)]
        lines = [counting, *indent([*body, *asks], unit)]
        if not _holds_at_first(facts, loop):
            lines = [f"if {test}:", *indent(lines, unit)]
    edits = Edits(facts)
    edits.replace_lines(loop.lineno, loop.end_lineno or loop.lineno, indent(lines, facts.text.margin(loop)))
    return with_import(edits.done(), "itertools")


def _holds_at_first(facts: Facts, loop: ast.While) -> bool:
    """`done = False` right above `while not done:`, other assignments between them or none."""
    negative = isinstance(loop.test, ast.UnaryOp) and isinstance(loop.test.op, ast.Not)
    asked = loop.test.operand if negative else loop.test  # type: ignore[attr-defined]
    block = facts.scopes.block_of(loop)
    for s in reversed(block[: block.index(loop)]):
        if not isinstance(s, ast.Assign) or walk(s, ast.Call):
            return False
        if [ast.unparse(t) for t in s.targets] == [ast.unparse(asked)] and isinstance(s.value, ast.Constant):
            return bool(s.value.value) is not negative
        if any(isinstance(n, ast.Name) and ast.unparse(n) == ast.unparse(asked) for t in s.targets for n in walk(t)):
            return False
    return False


def over_batches(facts: Facts, loop: ast.For) -> bool:
    """Over a loader; by its name, where another file makes it."""
    return iterates_loader(facts, loop) or facts.loops.is_loader(loop.iter)


def epochs_of(facts: Facts, batches: ast.For) -> ast.AST | None:
    """The loop around the batch loop, or around the one call of its function."""
    around = nearest_loop(facts, batches)
    f = enclosing_function(facts, batches)
    call = only_call(facts, f) if around is None and f is not None else None
    return nearest_loop(facts, call) if call is not None else around


def nearest_loop(facts: Facts, node: ast.AST) -> ast.AST | None:
    for up in facts.scopes.ancestors(node):
        if isinstance(up, (ast.For, ast.While)):
            return up
        if isinstance(up, (ast.FunctionDef, ast.ClassDef)):
            return None
    return None


def with_import(text: str, module: str) -> str:
    """The text with `import module` at its top, where it is not there yet."""
    facts = Facts(text)
    imports = [s for s in facts.tree.body if isinstance(s, (ast.Import, ast.ImportFrom))]
    if any(isinstance(s, ast.Import) and a.name == module and a.asname is None for s in imports for a in s.names):
        return text
    at = next((s for s in imports if not _is_future(s)), None)
    line = facts.text.line_of(facts.text.span(at)[0]) if at is not None else 1
    edits = Edits(facts)
    edits.replace_lines(line, line - 1, [f"import {module}"])
    return edits.done()


def _is_future(s: ast.stmt) -> bool:
    return isinstance(s, ast.ImportFrom) and s.module == "__future__"


def around_lone_loop(facts: Facts) -> str | None:
    """A loop over steps that stands alone becomes the batch loop of one epoch; one over epochs makes a step in each."""
    loop = step_loop(facts)
    if (
        not isinstance(loop, ast.For)
        or loop.orelse
        or nearest_loop(facts, loop) is not None
        or called_from_loop(facts, loop)
    ):
        return None
    by = facts.text.margin(loop)
    if by.strip():
        return None
    edits = Edits(facts)
    if _counts_epochs(facts, loop):
        first, last, lines = _one_step(facts, loop)
    else:
        first, last = loop.lineno, loop.end_lineno or loop.lineno
        lines = [f"{by}for _ in range(1):", *indent(indent(block_lines(facts, [loop], {}), facts.indentation), by)]
    edits.replace_lines(first, last, lines)
    return edits.done()


def name_the_epoch(facts: Facts) -> str | None:
    """`for self.epoch in range(n):` counts with a name, and sets the attribute first thing in every round."""
    for loop in facts.walk(ast.For):
        if isinstance(loop.target, ast.Attribute) and any(is_call_of(n, "backward") for n in walk(loop, ast.Call)):
            scope = facts.scopes.scope_of(loop)
            name = loop.target.attr
            while name in scope.stores or name in scope.params or name in scope.loads:
                name += "_"
            edits = Edits(facts)
            first = facts.text.line_of(facts.text.span(loop.body[0])[0])
            if first == loop.lineno:
                return None
            line = f"{facts.text.margin(loop.body[0])}{facts.text.get(loop.target)} = {name}"
            edits.replace_lines(first, first - 1, [line])
            edits.replace_node(loop.target, name)
            return edits.done()
    return None


def name_the_first(facts: Facts) -> str | None:
    """`for epoch in range(epoch + 1, n):` begins at a name of its own: in the epochs `epoch` is another number.

    So is `self.epoch`, where the epochs of `for epoch in range(self.epoch, n):` set it.
    """
    batches = step_loop(facts)
    loop = epochs_of(facts, batches) if isinstance(batches, ast.For) else None
    if not (isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and isinstance(loop.iter, ast.Call)):
        return None
    counted = loop.iter.args[0] if is_progress(facts, loop.iter) and loop.iter.args else loop.iter
    endless = isinstance(counted, ast.Call) and facts.names.resolve(counted.func) == "itertools.count"
    first = counted.args[0] if isinstance(counted, ast.Call) and len(counted.args) == 2 - endless else None
    if first is None or not _changes_in(facts, first, loop):
        return None
    scope, name = facts.scopes.scope_of(loop), f"first_{loop.target.id}"
    while name in scope.stores or name in scope.params or name in scope.loads:
        name += "_"
    edits = Edits(facts)
    line = f"{facts.text.margin(loop)}{name} = {facts.text.get(first)}"
    edits.replace_lines(loop.lineno, loop.lineno - 1, [line])
    edits.replace_node(first, name)
    return edits.done()


def _changes_in(facts: Facts, first: ast.expr, loop: ast.For) -> bool:
    """Whether what an expression reads is set by a loop, or by a function that it calls."""
    scope = facts.scopes.scope_of(loop)
    for n in walk(first):
        if isinstance(n, ast.Name) and (home := scope.lookup(n.id)) is not None:
            stores: list[ast.AST] = home.stores.get(n.id, [])
        elif isinstance(n, ast.Attribute):
            stores = [*facts.stores_of(n.attr)]
        else:
            continue
        run = {loop, *called_below(facts, loop)} - {*facts.scopes.ancestors(loop)} if stores else set()
        if any(up in run for s in stores for up in facts.scopes.ancestors(s)):
            return True
    return False


def _counts_epochs(facts: Facts, loop: ast.For) -> bool:
    """Over a range of numbers called epochs, and not left in the middle."""
    counted = loop.iter
    if isinstance(counted, ast.Call) and is_progress(facts, counted) and counted.args:
        counted = counted.args[0]
    name = counted.func.id if isinstance(counted, ast.Call) and isinstance(counted.func, ast.Name) else ""
    ranged = name == "range" or (
        isinstance(counted, ast.Call) and (is_progress(facts, counted) or counts_with_bar(facts, counted))
    )
    named = isinstance(loop.target, ast.Name) and bool(EPOCH.search(loop.target.id))
    return ranged and named and not iterates_loader(facts, loop)


def _one_step(facts: Facts, loop: ast.For) -> tuple[int, int, list[str]]:
    """The lines of the step, inside `for _ in [None]:`; what stands before and after it stays."""
    body = loop.body
    last = max(i for i, s in enumerate(body) if any(_belongs(n) for n in walk(s)))
    for i, s in enumerate(body[: last + 1]):
        if any(isinstance(n, (ast.Break, ast.Continue)) for n in walk_here(s)):
            last = len(body) - 1 if i <= last else last
    first = _first_of_step(facts, body, last)
    step = body[first : last + 1]
    by = facts.text.margin(loop.body[0])
    start, _ = Splice(facts.text).with_comments(step[0])  # which move in with it
    lines = [f"{by}for _ in [None]:", *indent(indent(block_lines(facts, step, {}), facts.indentation), by)]
    return start, step[-1].end_lineno or start, lines


def _belongs(n: ast.AST) -> bool:
    return any(is_call_of(n, name) for name in ("backward", "step", "zero_grad")) and not _is_schedule(n)


def _is_schedule(n: ast.AST) -> bool:
    """By its name only: a schedule may stand in the step or after it."""
    owner = n.func.value if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) else None
    return owner is not None and "sched" in ast.unparse(owner).lower()


def _first_of_step(facts: Facts, body: list[ast.stmt], last: int) -> int:
    """The first statement that gradients or the loss need: after the modes, clocks and prints at the top."""
    for i, s in enumerate(body[: last + 1]):
        if any(_belongs(n) for n in walk(s)):
            return i
        if isinstance(s, ast.Assign) and any(
            not (facts.names.resolve(n.func) or "").startswith("time.") for n in walk(s, ast.Call)
        ):
            return i
    return 0


@once_a_file
def step_loop(facts: Facts) -> ast.For | ast.While | None:
    """The innermost loop around every backward() and a step, if it is the only such place."""
    calls = training_backwards(facts)
    if not calls:
        return None
    common: list[ast.For | ast.While] | None = None
    for call in calls:
        around = []
        for up in facts.scopes.ancestors(call):
            if isinstance(up, (ast.For, ast.While)):
                around.append(up)
            elif isinstance(up, ast.ClassDef):
                break
        common = around if common is None else [loop for loop in common if loop in around]
    steps = facts.calls_of("step")
    over_loader = [loop for loop in common or [] if isinstance(loop, ast.For) and iterates_loader(facts, loop)]
    over_loader += [loop for loop in common or [] if isinstance(loop, ast.For) and facts.loops.is_loader(loop.iter)]
    stepping = [loop for loop in common or [] if any(loop in facts.scopes.ancestors(c) for c in steps)]
    return next(iter([*over_loader, *stepping, *(common or [])]), None)


def called_from_loop(facts: Facts, loop: ast.AST) -> bool:
    """Whether the loop's function is called from another loop: it is then one pass of several."""
    for up in facts.scopes.ancestors(loop):
        if isinstance(up, ast.FunctionDef):
            uses = facts.devices.uses_of_function(up)
            return any(nearest_loop(facts, use) is not None for use in uses if use is not up)
    return False
