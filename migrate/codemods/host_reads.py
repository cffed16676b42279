"""What is read of a tensor as numbers, or on the CPU: where nothing else is, its device is nothing to anyone."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..facts.distribution import STATEMENTS, distribution_of
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.tensor_methods import METHODS

NUMBERS = {"item", "tolist", "numpy", "cpu"}
GIVES = METHODS | {"size", "dim", "numel", "nelement", "float"}  # of a tensor: another one there, or its size
MOVES = {"to", "cuda", "cpu", "type_as", "item", "tolist", "numpy", "type", "device"}
ON_CPU = {"pack_padded_sequence", "from_numpy"}
ELSEWHERE = ("numpy.", "matplotlib.", "sklearn.", "torch.save")
READ = {"int", "float", "bool", "range", "print", "list", *ON_CPU}  # functions; `.float()` of a tensor reads nothing


def read_on_host(facts: Facts, made: ast.expr) -> bool:
    """`t = torch.tensor([a, b], device=d)`, of which there is `t.tolist()` or `t[0].item()`; sums over ranks go."""
    if _gives_numbers(facts, made):
        return True
    s = facts.scopes.parents.get(made)
    target = s.targets[0] if isinstance(s, ast.Assign) and s.value is made and len(s.targets) == 1 else None
    if not (isinstance(s, ast.Assign) and isinstance(target, ast.Name)):
        return False
    name = target.id
    scope = facts.scopes.scope_of(target).lookup(name)
    if scope is None or scope is facts.scopes.module or name in scope.params:
        return False
    end = _next(facts, s, [n for n in scope.stores.get(name, ()) if n is not target], name)
    if end is None:
        return False
    reads = [r for r in facts.scopes.reads(name, scope) if r.lineno <= end]
    return bool(reads) and all(r.lineno > s.lineno and _reads_numbers(facts, r) for r in reads)


def _next(facts: Facts, s: ast.Assign, stores: list[ast.AST], name: str) -> float | None:
    """The line below which the name is another thing: `t = t.tolist()` further down; None where that is not plain."""
    lines: list[float] = []
    for store in stores:
        other = facts.scopes.parents.get(store)
        if isinstance(other, ast.AugAssign) and facts.by_hand and distribution_of(facts).averages(other):
            continue
        same = facts.scopes.parents.get(other) is facts.scopes.parents.get(s) if other is not None else False
        if not (isinstance(other, ast.Assign) and len(other.targets) == 1 and same and other.lineno > s.lineno):
            return None
        if not any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(other.value)):
            return None
        lines.append(other.end_lineno or other.lineno)
    return min(lines, default=float("inf"))


def _reads_numbers(facts: Facts, read: ast.expr) -> bool:
    """`t.item()`, `t[0].item()`; or what goes, as `dist.all_reduce(t)` does where processes are started by hand."""
    up = facts.scopes.parents.get(read)
    up = facts.scopes.parents.get(up) if isinstance(up, ast.keyword) else up
    if isinstance(up, ast.Call) and facts.names.resolve(up.func) in STATEMENTS:
        found = distribution_of(facts)
        return found.by_hand and isinstance(facts.scopes.parents.get(up), ast.Expr) and not any(found.blocking())
    if isinstance(up, ast.Subscript) and up.value is read and isinstance(up.slice, ast.Constant):
        return _gives_numbers(facts, up)
    return _gives_numbers(facts, read)


def _gives_numbers(facts: Facts, node: ast.expr) -> bool:
    up = facts.scopes.parents.get(node)
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) and up.attr in NUMBERS else None
    return isinstance(call, ast.Call) and call.func is up


def is_number(call: ast.Call) -> bool:
    """`torch.tensor(0.5)` goes with tensors anywhere."""
    given = call.args[0] if call.args else None
    made = getattr(call.func, "attr", getattr(call.func, "id", "")) in ("tensor", "as_tensor")
    return made and isinstance(given.operand if isinstance(given, ast.UnaryOp) else given, ast.Constant)


def stays_on_cpu(facts: Facts, call: ast.Call, meets_model: Callable[[ast.expr], bool]) -> bool:
    """Whether a tensor that a step makes is one number, is read as numbers, or picks from what the script keeps.

    `meets_model`: whether a name of it is put together with what the model gave: `net(x).argmax(1) == y`.
    """
    if is_number(call) or leaves(facts, call):
        return True
    s = facts.scopes.statement_of(call)
    if any(isinstance(u, ast.Call) and facts.loops.is_model_call(u) for u in facts.scopes.ancestors(call)):
        return False  # what is kept of it is the model's
    names = names_given(s, call) if isinstance(s, ast.Assign) else set()
    home = facts.scopes.scope_of(s)
    for r in (r for n in names for r in facts.scopes.reads(n, home.lookup(n) or home)):
        up = facts.scopes.parents.get(r)
        full = (facts.names.resolve(up.func) or "") if isinstance(up, ast.Call) else ""
        picks = any(isinstance(u, ast.Subscript) and r in set(walk(u.slice)) for u in facts.scopes.ancestors(r))
        if leaves(facts, r, not meets_model(r)) or picks or full.startswith(ELSEWHERE):
            return True
    return False


def names_given(s: ast.Assign, call: ast.Call) -> set[str]:
    """The names that an assignment gives what a call is part of: `y` alone of `x, y = f(), call`."""
    given: list[ast.expr] = []
    for t in s.targets:
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(t, ast.Tuple) and isinstance(s.value, ast.Tuple) and len(t.elts) == len(s.value.elts):
            pairs = list(zip(t.elts, s.value.elts, strict=True))
        given += [e for e, value in pairs if any(n is call for n in walk(value, ast.Call))] or [t]
    return {n.id for t in given for n in walk(t, ast.Name)}


def is_given(s: ast.Assign, call: ast.expr) -> bool:
    """Whether a call is what an assignment gives, or a part of the tuple that it is."""
    return s.value is call or (isinstance(s.value, ast.Tuple) and call in s.value.elts)


def leaves(facts: Facts, node: ast.AST, compared: bool = True) -> bool:
    """Whether a value is moved, read as numbers, or given to what takes it on the CPU only; `compared`: or compared."""
    up = facts.scopes.parents.get(node)
    itself = True  # not yet something that is computed from it
    while isinstance(up, (ast.Attribute, ast.Call, ast.Subscript, ast.keyword)):
        if isinstance(up, ast.Attribute) and up.attr in MOVES:
            return True
        called = isinstance(up, ast.Call) and up.func is node
        known = _last(up.func) in GIVES if called and isinstance(up, ast.Call) else True
        if isinstance(up, ast.Call) and (
            _called(facts, up.func) in (READ if _is_name(up) else ON_CPU) or (itself and not known)
        ):
            return True
        itself = itself and (called or not isinstance(up, ast.Call))
        node, up = up, facts.scopes.parents.get(up)
    return compared and isinstance(up, ast.Compare)


def _called(facts: Facts, func: ast.expr) -> str:
    """The name of a function where it is made: `from torch.nn.utils.rnn import pack_padded_sequence as pack`."""
    return (facts.names.resolve(func) or _last(func)).rpartition(".")[2]


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _is_name(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name)
