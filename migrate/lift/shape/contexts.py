"""A `with` around a pass over the data is entered before the pass and left behind it.

    with Timer() as t:                contexts = contextlib.ExitStack()
        for x, y in loader:           t = contexts.enter_context(Timer())
            ...                       for x, y in loader:
                                          ...
                                      contexts.close()

A pass becomes hooks and steps, and no `with` reaches over several of them. Where an evaluation is all that autocast
stands around, it goes into the loop; what only lets gradients be computed is gone.
"""

from __future__ import annotations

import ast

from ...facts.autocast import is_autocast
from ...facts.nodes import walk
from ...facts.script import Facts
from ..loaders import iterates_loader
from ..nodes import local_function, returned, walk_here
from ..passes import NO_GRAD, is_without_gradients
from ..splice import Splice, indent
from .bars import is_bar
from .calls import enclosing_function
from .edits import Edits, block_lines
from .free import free_at
from .hoist import passes_of
from .loops import nearest_loop, step_loop, with_import

SWALLOWS = ("contextlib.suppress", "pytest.raises")
GRADIENTS = ("torch.enable_grad", "torch.autograd.enable_grad")
LEAVES = (ast.Yield, ast.YieldFrom, ast.Await)


def enter_by_hand(facts: Facts) -> str | None:
    """The text with one such `with` taken apart; None where there is none."""
    loop = step_loop(facts) if "with " in facts.text.text else None
    if loop is None:
        return None
    for s in facts.walk(ast.With):
        if _is_around_a_pass(facts, s, loop) and not is_left(facts, s) and not Splice(facts.text).shares_a_line(s):
            return _apart(facts, s)
    return None


def _is_around_a_pass(facts: Facts, s: ast.With, loop: ast.AST) -> bool:
    """Whether a pass stands right in it, and there is more to enter than other shapes do."""
    items = [i for i in s.items if not _is_without_gradients(facts, i)]
    if not items or (len(s.items) == 1 and is_bar(facts, s.items[0].context_expr)):
        return False
    if any(_swallows(facts, i.context_expr) for i in items):
        return False
    named = frozenset(x.id for i in s.items if i.optional_vars for x in walk(i.optional_vars, ast.Name))
    return holds_a_pass(facts, s, loop, named)


def _is_without_gradients(facts: Facts, item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and facts.names.resolve(call.func) in NO_GRAD and not _lets(facts, item)


def _lets(facts: Facts, item: ast.withitem) -> bool:
    """`torch.enable_grad()`, `torch.set_grad_enabled(True)`, which a training has anyway; `nullcontext()`."""
    call = item.context_expr
    if not isinstance(call, ast.Call):
        return False
    full = facts.names.resolve(call.func)
    if full == "contextlib.nullcontext":
        return item.optional_vars is None and not call.args
    if full == "torch.set_grad_enabled":
        return [getattr(a, "value", None) for a in call.args] == [True]
    return full in GRADIENTS


def _swallows(facts: Facts, made: ast.expr) -> bool:
    """Whether an error may end in it, what it is around left in the middle; of what is made elsewhere none shows."""
    func = made.func if isinstance(made, ast.Call) else None
    if func is None or facts.names.resolve(func) in SWALLOWS:
        return True
    if not isinstance(func, ast.Name):
        return False
    f = local_function(facts, func)
    handlers = walk(f, ast.ExceptHandler) if f is not None else ()
    if any(not isinstance(h.body[-1], ast.Raise) for h in handlers):
        return True
    exits = [c for c in facts.walk(ast.ClassDef) if c.name == func.id]
    methods = [m for c in exits for m in c.body if isinstance(m, ast.FunctionDef) and m.name == "__exit__"]
    return any(not isinstance(v, ast.Constant) or v.value for m in methods for v in returned(m))


def holds_a_pass(facts: Facts, s: ast.With | ast.Try, loop: ast.AST, bars: frozenset[str] = frozenset()) -> bool:
    """Whether a pass over the data, one of an epoch's, stands right in a statement; `loop` makes the steps."""
    passes = any(n is loop or _is_pass(facts, n, bars) for n in _opened(s.body))
    return passes and (loop in walk_here(s) or _is_in_a_loop(facts, s))


def _opened(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements; for every `with` among them those that it holds."""
    return [inner for s in body for inner in (_opened(s.body) if isinstance(s, ast.With) else [s])]


def _is_pass(facts: Facts, n: ast.stmt, bars: frozenset[str]) -> bool:
    if isinstance(n, ast.For):
        return iterates_loader(facts, n) or any(x.id in bars for x in walk(n.iter, ast.Name))
    call = n.value if isinstance(n, (ast.Expr, ast.Assign)) else None
    f = local_function(facts, call.func) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
    return f is not None and f in passes_of(facts)


def _is_in_a_loop(facts: Facts, s: ast.stmt) -> bool:
    """Whether it stands in a loop, or in a function that is called in one."""
    f = enclosing_function(facts, s)
    if f is None or nearest_loop(facts, s) is not None:
        return nearest_loop(facts, s) is not None
    uses = [*facts.devices.uses_of_function(f), *facts.attributes.get(f.name, ())]
    return any(nearest_loop(facts, u) is not None for u in uses)


def is_left(facts: Facts, s: ast.With | ast.Try) -> bool:
    """Whether it is left in its middle: what is entered by hand, or closed at the end, would stay open."""
    for n in walk_here(s):
        if isinstance(n, ast.Return):
            if n is not s.body[-1] or (n.value is not None and any(isinstance(x, ast.Call) for x in walk(n.value))):
                return True
        elif isinstance(n, (ast.Break, ast.Continue)):
            if nearest_loop(facts, n) not in walk_here(s):
                return True
        elif isinstance(n, LEAVES):
            return True
    return False


def _apart(facts: Facts, s: ast.With) -> str:
    kept = [_text(facts, i) for i in s.items if _is_without_gradients(facts, i)]
    items = [i for i in s.items if not _is_without_gradients(facts, i) and not _lets(facts, i)]
    halved = [i for i in items if _goes_inside(facts, s, i)]
    name = free_at(facts, s, "contexts")
    entered, left = _by_hand(facts, [i for i in items if i not in halved], name)
    body, last = (s.body[:-1], s.body[-1:]) if isinstance(s.body[-1], ast.Return) else (s.body, [])
    inside = f"with {', '.join(_text(facts, i) for i in halved)}:" if halved else ""
    lines = [*entered, *_within(facts, body, inside), *left, *block_lines(facts, last, {})]
    lines = [f"with {', '.join(kept)}:", *indent(lines, facts.indentation)] if kept else lines
    edits = Edits(facts)
    first = facts.text.line_of(facts.text.span(s)[0])
    edits.replace_lines(first, s.end_lineno or first, indent(lines, facts.text.margin(s)))
    return with_import(edits.done(), "contextlib") if any("ExitStack" in line for line in entered) else edits.done()


def _text(facts: Facts, item: ast.withitem) -> str:
    name = f" as {facts.text.get(item.optional_vars)}" if item.optional_vars is not None else ""
    return facts.text.get(item.context_expr) + name


def _goes_inside(facts: Facts, s: ast.With, item: ast.withitem) -> bool:
    """Whether it is autocast around nothing but loops without gradients: so it can be around each of their rounds."""
    if not is_autocast(facts, item.context_expr) or item.optional_vars is not None:
        return False
    around = [i for up in (s, *facts.scopes.ancestors(s)) if isinstance(up, ast.With) for i in up.items]
    f = enclosing_function(facts, s)
    bare = any(_is_without_gradients(facts, i) for i in around) or (
        f is not None and any(is_without_gradients(facts, d) for d in f.decorator_list)
    )
    held = [inner for n in s.body if isinstance(n, ast.With) for inner in n.items]
    bare = bare or (len(s.body) == 1 and any(_is_without_gradients(facts, i) for i in held))
    return bare and all(_is_plain(n) for n in _opened(s.body))


def _is_plain(n: ast.stmt) -> bool:
    """A loop, or what computes nothing that autocast is for."""
    return (isinstance(n, ast.For) and not n.orelse) or not any(
        isinstance(x, ast.Call) or (isinstance(x, ast.BinOp) and isinstance(x.op, ast.MatMult)) for x in walk(n)
    )


def _by_hand(facts: Facts, items: list[ast.withitem], stack: str) -> tuple[list[str], list[str]]:
    """What enters these, and what leaves them."""
    entered, closed, stacked = list[str](), list[str](), False
    for item in items:
        made, name = item.context_expr, item.optional_vars
        target = f"{facts.text.get(name)} = " if name is not None else ""
        if isinstance(name, ast.Name) and is_bar(facts, made):  # the loop goes over what it is made of
            entered.append(target + facts.text.get(made))
            closed.append(f"{name.id}.close()")
        else:
            entered += [] if stacked else [f"{stack} = contextlib.ExitStack()"]
            closed += [] if stacked else [f"{stack}.close()"]
            entered.append(f"{target}{stack}.enter_context({facts.text.get(made)})")
            stacked = True
    return entered, closed[::-1]


def _within(facts: Facts, body: list[ast.stmt], inside: str) -> list[str]:
    """The lines of a block, those of its loops in `inside` where that is not empty."""
    if not inside:
        return block_lines(facts, body, {})
    lines: list[str] = []
    for n in body:
        if isinstance(n, ast.For):
            head = f"for {facts.text.get(n.target)} in {facts.text.get(n.iter)}:"
            rounds = indent(block_lines(facts, n.body, {}), facts.indentation)
            lines += [head, *indent([inside, *rounds], facts.indentation)]
        elif isinstance(n, ast.With):
            head = f"with {', '.join(_text(facts, i) for i in n.items)}:"
            lines += [head, *indent(_within(facts, n.body, inside), facts.indentation)]
        else:
            lines += block_lines(facts, [n], {})
    return lines
