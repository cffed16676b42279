"""Epochs that go through a list: `for epoch, lr in enumerate(rates):` counts them, and takes `lr = rates[epoch]`.

So do those that count in another way than one by one: `for epoch in reversed(range(n)):`.
"""

from __future__ import annotations

import ast

from ...facts.script import Facts
from ..loaders import iterates_loader, values_of
from .edits import Edits
from .free import free
from .loops import called_from_loop, epochs_of, nearest_loop, over_batches, step_loop
from .ranges import is_builtin

OF_ARRAYS = {f"numpy.{n}" for n in ("linspace", "arange", "logspace", "geomspace", "array")}
LISTS = ("list", "tuple", "sorted")
ASKS = ("len", "print", "str", "max", "min", "sum", "enumerate", "zip", "list", "sorted")


def count_what_is_listed(facts: Facts) -> str | None:
    """The text where the epochs count; None where they do, or where what they go through may change meanwhile."""
    batches = step_loop(facts)
    loop = epochs_of(facts, batches) if isinstance(batches, ast.For) and over_batches(facts, batches) else None
    if not isinstance(loop, ast.For) or loop.orelse or facts.text.margin(loop).strip() or iterates_loader(facts, loop):
        return None
    if nearest_loop(facts, loop) is not None or called_from_loop(facts, loop):
        return None  # phases of an epoch, or one training of several
    first = facts.text.line_of(facts.text.span(loop.body[0])[0])
    through = _through(facts, loop)
    if through is None or first <= facts.text.line_of(facts.text.span(loop.iter)[1]):
        return None
    target, source, start, index = through
    scope = facts.scopes.scope_of(loop)
    taken = {*scope.stores, *scope.params, *scope.loads}
    edits = Edits(facts)
    held = facts.text.get(source)
    if not isinstance(source, ast.Name):
        held, made = free("rounds", taken), " ".join(held.split())
        made = f"list({made})" if isinstance(source, ast.Call) else made
        edits.replace_lines(loop.lineno, loop.lineno - 1, [f"{facts.text.margin(loop)}{held} = {made}"])
    counter = index or free("epoch", taken)
    ends = f"{start}, len({held}) + {start}" if start else f"len({held})"
    edits.replace(facts.text.span(loop.target)[0], facts.text.span(loop.iter)[1], f"{counter} in range({ends})")
    at = f"{counter} - {start}" if start else counter
    edits.replace_lines(first, first - 1, [f"{facts.text.margin(loop.body[0])}{target} = {held}[{at}]"])
    return edits.done()


def _through(facts: Facts, loop: ast.For) -> tuple[str, ast.expr, int, str | None] | None:
    """What is given each element, what holds them, where the count begins, and its name, if it has one."""
    it, target, index = loop.iter, loop.target, None
    start: object = 0
    if isinstance(it, ast.Call) and is_builtin(facts, it, "enumerate") and it.args:
        more = [*it.args[1:], *(k.value for k in it.keywords)]
        pair = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == 2 else []
        if not pair or not isinstance(pair[0], ast.Name) or len(more) > 1:
            return None
        start = more[0].value if more and isinstance(more[0], ast.Constant) else -1 if more else 0
        it, target, index = it.args[0], pair[1], pair[0].id
    if not isinstance(start, int) or start < 0 or not _is_listed(facts, it, loop):
        return None
    return " ".join(facts.text.get(target).split()), it, start, index


def _is_listed(facts: Facts, node: ast.expr, loop: ast.For) -> bool:
    """A list that is written down, or a name of one that nothing changes in the loop; several of them by zip()."""
    if isinstance(node, ast.Call) and is_builtin(facts, node, "zip"):
        return bool(node.args) and not node.keywords and all(_is_listed(facts, a, loop) for a in node.args)
    if isinstance(node, (ast.List, ast.Tuple)):
        return bool(node.elts)
    if _is_made_there(facts, node, loop):
        return True
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if scope is None or not isinstance(node, ast.Name) or node.id in scope.params or len(scope.stores[node.id]) != 1:
        return False
    values = values_of(facts, node.id, scope)
    within = (r for r in facts.scopes.reads(node.id, scope) if loop in facts.scopes.ancestors(r) and r is not node)
    return len(values) == 1 and _makes_list(facts, values[0]) and all(_only_asked(facts, r) for r in within)


def _is_made_there(facts: Facts, node: ast.expr, loop: ast.For) -> bool:
    """`np.arange(n)`, `reversed(range(n))`, `range(n)[2:]`, and a range that does not count the epochs one by one."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and is_builtin(facts, node.value, "range")
    if not isinstance(node, ast.Call) or not node.args or any(isinstance(a, ast.Starred) for a in node.args):
        return False
    if is_builtin(facts, node, "range"):
        return node is not loop.iter or len(node.args) == 3
    if any(is_builtin(facts, node, n) for n in ("reversed", *LISTS)):
        return is_builtin(facts, node.args[0], "range") or _is_listed(facts, node.args[0], loop)
    return facts.names.resolve(node.func) in OF_ARRAYS


def _makes_list(facts: Facts, value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return facts.names.resolve(value.func) in OF_ARRAYS or any(is_builtin(facts, value, n) for n in LISTS)
    return isinstance(value, (ast.List, ast.Tuple, ast.ListComp))


def _only_asked(facts: Facts, read: ast.Name) -> bool:
    up = facts.scopes.parents.get(read)
    if isinstance(up, ast.Subscript):
        return isinstance(up.ctx, ast.Load)
    if isinstance(up, ast.Call) and read in up.args:
        return any(is_builtin(facts, up, n) for n in ASKS)
    return isinstance(up, (ast.FormattedValue, ast.Compare, ast.BinOp))
