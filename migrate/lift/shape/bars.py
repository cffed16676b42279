"""A progress bar that has a name: the loop goes over what is under the bar, and the bar is moved by hand.

`with tqdm(loader) as bar: for batch in bar:` becomes `bar = tqdm(loader)`, a loop over `loader` and `bar.close()`;
`bar = trange(n)` counts epochs as `range(n)` does. `loader = tqdm(loader)` of a parameter is `bar = tqdm(loader)`.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..loaders import counts_with_bar, is_loader, is_progress, values_of
from ..nodes import walk_here
from ..splice import indent
from .edits import Edits, block_lines
from .loops import nearest_loop

NAMES = ("bar", "pbar", "progress_bar")  # for a bar that has the name of its loader


def name_bars(facts: Facts) -> str | None:
    """The text where `loader = tqdm(loader)` of a parameter gives the bar a name of its own."""
    edits = Edits(facts)
    for s in facts.walk(ast.Assign):
        made, target = s.value, s.targets[0]
        wrapped = made.args[0] if isinstance(made, ast.Call) and made.args else None
        if not isinstance(wrapped, ast.Name) or len(s.targets) > 1 or getattr(target, "id", "") != wrapped.id:
            continue
        if not isinstance(made, ast.Call) or not is_progress(facts, made):
            continue
        taken = {n.id for n in facts.walk(ast.Name)} | {a.arg for a in facts.walk(ast.arg)}
        scope = facts.scopes.scope_of(target)
        once = wrapped.id in scope.params and scope.stores.get(wrapped.id) == [target]
        reads = [n for n in facts.scopes.reads(wrapped.id, scope) if n is not wrapped]
        name = next((n for n in NAMES if n not in taken), None)
        own = all(facts.scopes.scope_of(n) is scope for n in reads)
        if name is not None and once and own and s in getattr(scope.node, "body", ()):
            for n in (target, *(n for n in reads if n.lineno > s.lineno)):
                edits.replace_node(n, name)
    return edits.done() if edits.spans else None


def open_bars(facts: Facts) -> str | None:
    """The text with its progress bars taken apart, but for those inside of another; None where there is none."""
    edits, done = Edits(facts), 0
    for statement in facts.walk(ast.With):
        made, name = statement.items[0].context_expr, statement.items[0].optional_vars
        if len(statement.items) > 1 or not is_bar(facts, made):
            continue
        if statement.lineno <= done:
            continue  # within another
        if isinstance(name, ast.Name) and any(isinstance(n, ast.For) for n in walk_here(statement)):
            _without_with(facts, edits, statement, made, name.id)
            done = statement.end_lineno or 0
    for loop in () if done else reversed(facts.walk(ast.For)):  # what ends on one line ends the inner ones first
        _named_bar(facts, edits, loop)
    return edits.done() if edits.spans else None


def _without_with(facts: Facts, edits: Edits, s: ast.With, made: ast.expr, name: str) -> None:
    lines = [f"{name} = {facts.text.get(made)}", *block_lines(facts, s.body, {}), f"{name}.close()"]
    first = facts.text.line_of(facts.text.span(s)[0])
    edits.replace_lines(first, s.end_lineno or first, indent(lines, facts.text.margin(s)))


def _named_bar(facts: Facts, edits: Edits, loop: ast.For) -> None:
    """`for x in bar:`, or over enumerate(bar), where `bar = tqdm(loader)` or `bar = tqdm(range(n))`."""
    at = loop.iter
    if isinstance(at, ast.Call) and isinstance(at.func, ast.Name) and at.func.id == "enumerate" and at.args:
        at = at.args[0]
    if not isinstance(at, ast.Name):
        return
    scope = facts.scopes.scope_of(at).lookup(at.id)
    values = values_of(facts, at.id, scope) if scope is not None and at.id not in scope.params else []
    made = values[0] if len(values) == 1 else None
    goes_on = [n for n in walk(loop, ast.Continue) if nearest_loop(facts, n) is loop]
    alone = all(facts.text.lines[n.lineno - 1].strip().startswith("continue") for n in goes_on)
    if not isinstance(made, ast.Call) or not made.args or not alone:
        return
    under = _under(facts, made)
    if under is None:
        return
    over = _numbered(made.args[0])
    if over is not None and not isinstance(loop.target, ast.Tuple):  # no numbers and batches apart
        return
    edits.replace_node(at, under)
    if over is not None:  # which would draw its iterator where the bar is made, too
        span = (*facts.text.span(made.args[0]), facts.text.get(over))
        edits.spans += [span] if span not in edits.spans else []
    last = loop.body[-1].end_lineno or loop.lineno
    ends = [(n.lineno, n) for n in goes_on] + [(last + 1, loop.body[0])]
    for line, beside in ends:
        edits.replace_lines(line, line - 1, [f"{facts.text.margin(beside)}{at.id}.update()"])


def is_bar(facts: Facts, made: ast.expr) -> bool:
    return isinstance(made, ast.Call) and (is_progress(facts, made) or counts_with_bar(facts, made))


def _under(facts: Facts, made: ast.Call) -> str | None:
    """The source of what the bar goes over, where it is the same when the loop asks for it itself."""
    if counts_with_bar(facts, made):
        return f"range({', '.join(map(facts.text.get, made.args))})" if is_steady(facts, made.args) else None
    if not is_progress(facts, made):
        return None
    under = made.args[0]
    counts = isinstance(under, ast.Call) and isinstance(under.func, ast.Name) and under.func.id == "range"
    if counts and not (under.keywords or not is_steady(facts, under.args)):  # type: ignore[attr-defined]
        return facts.text.get(under)
    return facts.text.get(under) if isinstance(_numbered(under) or under, (ast.Name, ast.Attribute)) else None


def _numbered(under: ast.expr) -> ast.expr | None:
    """The loader of `enumerate(loader)`."""
    if not isinstance(under, ast.Call) or getattr(under.func, "id", "") != "enumerate" or under.keywords:
        return None
    return under.args[0] if len(under.args) == 1 else None


def is_steady(facts: Facts, counts: list[ast.expr]) -> bool:
    """Numbers, names that are given one value, settings of a dictionary and a loader's length: they count the same
    where the bar is made and where the loop is.
    """
    return all(_counts_the_same(facts, n) for count in counts for n in walk(count))


def _counts_the_same(facts: Facts, n: ast.AST) -> bool:
    if isinstance(n, ast.Name):
        scope = facts.scopes.scope_of(n).lookup(n.id)
        return scope is None or len(scope.stores.get(n.id, ())) + (n.id in scope.params) <= 1
    if isinstance(n, ast.Subscript):  # `cfg["train"]["steps"]`, which nothing sets anew
        key = n.slice.value if isinstance(n.slice, ast.Constant) else None
        return isinstance(key, str) and not any(
            isinstance(s.slice, ast.Constant) and s.slice.value == key and not isinstance(s.ctx, ast.Load)
            for s in facts.walk(ast.Subscript)
        )
    if isinstance(n, ast.Call):
        length = isinstance(n.func, ast.Name) and n.func.id == "len" and len(n.args) == 1
        return length and is_loader(facts, n.args[0])
    return isinstance(n, (ast.Attribute, ast.Constant, ast.BinOp, ast.operator, ast.expr_context))
