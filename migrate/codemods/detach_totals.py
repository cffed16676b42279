"""T8: a total that is summed at every step stays a tensor, so that the host need not wait for each of its parts.

`total += loss.item()` becomes `total += loss.detach().double()`: the same sum of the same numbers, as precise.
It is a number again wherever it is read. What nothing shows the type of, or what is read at every step, is told of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..facts.arrays import on_host
from ..facts.batch_operations import LOSS
from ..facts.nodes import walk
from ..facts.operands import SIGNED, closed
from ..facts.own_methods import own_methods
from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod
from .rewrites import statement, unwrap

LOGS = ("log", "log_dict")
SUMS = ("sum", "count_nonzero")
EQUAL = ("eq", "ne", "eq_", "equal", "gt", "lt", "ge", "le")


@dataclass(frozen=True)
class Total:
    """`name += x.item() * n`: where it is added to, and as which type its sum is read."""

    add: ast.AugAssign
    item: ast.Call
    kind: str


class DetachTotals(Codemod):
    code = "PTM301"
    name = "item-in-hot-loop"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.settled: set[ast.AST] = set()
        if facts.lifting or "item" not in facts.attributes:
            return
        adds = [t for a in facts.walk(ast.AugAssign) if (t := _total(facts, a)) is not None]
        names = dict.fromkeys((facts.scopes.scope_of(t.add.target), t.add.target.id) for t in adds)  # type: ignore[union-attr]
        for scope, name in names:
            own = [t for t in adds if t.add.target.id == name and facts.scopes.scope_of(t.add.target) is scope]  # type: ignore[union-attr]
            yield from self._one(facts, scope.lookup(name), name, own)
        yield from self._logged(facts)

    def notes(self, facts: Facts) -> Iterator[Note]:
        for call in facts.walk(ast.Call):
            f = call.func
            if not (isinstance(f, ast.Attribute) and f.attr == "item" and not call.args and not call.keywords):
                continue
            hot = facts.loops.hot(call) if call not in self.settled else None
            if hot is not None and not hot.guarded and hot.kind == "trains" and not _is_no_tensors(facts, f):
                line, column, _, _ = facts.text.key(call)
                says = f"`{facts.short(call)}` makes the host wait at every step of the loop on line {hot.line}"
                says += "; `.detach()` would not" if _is_kept(facts, call) else ""
                yield Note(line, column + 1, self.code, says)

    def _one(self, facts: Facts, scope: Any, name: str, own: list[Total]) -> Iterator[Change]:
        kinds = {t.kind for t in own}
        turn = _turned(facts, scope, name, own) if scope is not None else None
        starts = self._starts(facts, scope, name, own, turn) if scope and name not in scope.params else None
        if starts is None or len(kinds) > 1 or (kinds == {"int"} and len(starts) > 1):
            return
        kind = "float" if starts == {float} else kinds.pop()  # `correct = 0.0` counts in 1.0, 2.0
        later = _below(facts, turn) if turn is not None else set()  # there it is a number
        reads = [r for r in facts.scopes.reads(name, scope) if later.isdisjoint(facts.scopes.ancestors(r))]
        if not all(self._read_seldom(facts, r) for r in reads):
            return
        for t in own:
            self.settled.add(t.item)
            new = ".detach()" if kind == "int" else ".detach().double()"
            says = f"`{facts.short(t.add)}`: `{new}` keeps the same sum, and the host need not wait"
            yield Change(t.item, self.edit(facts, t.item, says), _detached(kind))
        if isinstance(turn, ast.AugAssign):
            told = facts.text.get(turn.value)
            operator = facts.text.get(turn)[len(name) :].lstrip().partition("=")[0]
            new = f"{name} = {kind}({name}) {operator} {closed(told, SIGNED)}"
            yield Change(turn, self.edit(facts, turn, f"`{facts.short(turn)}` became `{new}`"), statement(new))
        for r in reads:
            if not facts.in_formatted_string(r):
                says = f"`{name}` is read as a number: {kind}({name})"
                yield Change(r, self.edit(facts, r, says), _number(kind))

    def _starts(self, facts: Facts, scope: Any, name: str, own: list[Total], turn: ast.stmt | None) -> set[type] | None:
        """The types of the numbers that every other binding gives it; None where one gives it something else."""
        found: set[type] = set()
        for store in scope.stores.get(name, ()):
            up = facts.scopes.parents.get(store)
            if up is turn or any(up is t.add for t in own):
                continue
            value = up.value if isinstance(up, ast.Assign) else None
            if isinstance(up, ast.Tuple):
                holder = facts.scopes.parents.get(up)
                value = holder.value.elts[up.elts.index(store)] if _same_length(holder, up) else None  # type: ignore
            if not (isinstance(value, ast.Constant) and type(value.value) in (int, float)):
                return None
            found.add(type(value.value))
        return found

    def _read_seldom(self, facts: Facts, read: ast.Name) -> bool:
        hot = facts.loops.hot(read)
        if hot is not None and not hot.guarded:
            return False
        if not facts.in_formatted_string(read):
            return True
        for up in facts.scopes.ancestors(read):  # a tensor of one number prints as that number
            if isinstance(up, ast.FormattedValue):
                return up.conversion == -1
            if not isinstance(up, (ast.BinOp, ast.UnaryOp)):
                return False
        return False

    def _logged(self, facts: Facts) -> Iterator[Change]:
        """`self.log("loss", loss.item())`: the logger waits when it writes, not at every step."""
        for c in facts.classes.run_by_trainer:
            for call in walk(c):
                if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in LOGS):
                    continue
                if not (isinstance(call.func.value, ast.Name) and call.func.value.id == "self"):
                    continue
                values = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "value")]
                if call.func.attr == "log_dict" and call.args and isinstance(call.args[0], ast.Dict):
                    values = call.args[0].values
                for v in values:
                    if _is_item(v) and facts.loops.hot(v) is not None and not facts.is_fixed(v):
                        if _is_no_tensors(facts, v.func):  # type: ignore[attr-defined]
                            continue
                        self.settled.add(v)
                        says = f"`{facts.short(v)}` became `.detach()`: what is logged is read when it is written"
                        yield Change(v, self.edit(facts, v, says), _detached("int"))


class CopiedToRead(Codemod):
    """`x.cpu().item()` is `x.item()`, which copies the one number that it reads."""

    code = "PTM303"
    name = "cpu-in-hot-loop"

    def plan(self, facts: Facts) -> Iterator[Change]:
        if facts.lifting:
            return
        for call in facts.walk(ast.Call):
            if _is_item(call) and facts.loops.hot(call) is not None and not facts.is_fixed(call):
                for cpu in _copies(call):
                    says = f"`.cpu()` removed from `{facts.short(call)}`: `.item()` copies the one number itself"
                    yield Change(cpu, self.edit(facts, cpu, says), unwrap)


def _turned(facts: Facts, scope: Any, name: str, own: list[Total]) -> ast.AugAssign | ast.Assign | None:
    """`total /= len(loader)`, `total = total / n`: the one line that makes another number of a sum, below its loop.

    In the same block the sum begins anew above the loop, so that it is never added to afterwards.
    """
    adds = {t.add for t in own}
    starts: list[ast.stmt] = []
    turns: list[ast.AugAssign | ast.Assign] = []
    for store in scope.stores.get(name, ()):
        s = facts.scopes.statement_of(store)
        if isinstance(s, ast.AugAssign) and s not in adds:
            turns.append(s)
        elif isinstance(s, ast.Assign):
            reads = any(n.id == name for n in walk(s.value, ast.Name))
            if reads:
                turns.append(s)
            else:
                starts.append(s)
    turn = turns[0] if len(turns) == 1 else None
    if turn is None or turn.lineno != turn.end_lineno or facts.loops.hot(turn) is not None:
        return None
    if isinstance(turn, ast.AugAssign) and any(n.id == name for n in walk(turn.value, ast.Name)):
        return None
    block, reads_of = facts.scopes.block_of(turn), list(facts.scopes.reads(name, scope))
    if any(set(block).isdisjoint(facts.scopes.ancestors(r)) for r in reads_of):
        return None  # read elsewhere it may be either
    above = set(block[: block.index(turn)])
    loops = [next((u for u in facts.scopes.ancestors(a) if u in above), None) for a in adds]
    begins = [s for s in starts if s in above and all(u is not None and s.lineno < u.lineno for u in loops)]
    first = max((s.lineno for s in begins), default=0)  # what is read above it is that of an earlier round
    return turn if begins and all(r.lineno > first for r in reads_of) else None


def _below(facts: Facts, s: ast.stmt) -> set[ast.AST]:
    """The statements below one in its block."""
    block = facts.scopes.block_of(s)
    return {*block[block.index(s) + 1 :]}


def _same_length(holder: ast.AST | None, target: ast.Tuple) -> bool:
    return (
        isinstance(holder, ast.Assign)
        and isinstance(holder.value, ast.Tuple)
        and len(holder.value.elts) == len(target.elts)
    )


def _is_kept(facts: Facts, item: ast.Call) -> bool:
    """Whether the number is added up or kept, as a tensor could be: not shown, compared or handed on."""
    child: ast.AST = item
    for up in facts.scopes.ancestors(item):
        if isinstance(up, ast.stmt):
            return isinstance(up, (ast.Assign, ast.AugAssign)) or (isinstance(up, ast.Expr) and child is up.value)
        appends = isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr == "append"
        if not appends and not isinstance(up, (ast.BinOp, ast.UnaryOp, ast.List, ast.Tuple, ast.Dict)):
            return False
        child = up
    return False


def _total(facts: Facts, a: ast.AugAssign) -> Total | None:
    """An addition at every step whose one `.item()` is of a loss or of a count."""
    if not (isinstance(a.op, ast.Add) and isinstance(a.target, ast.Name)) or "mps" in facts.text.text:
        return None  # there are no double-precision numbers on mps
    hot = facts.loops.hot(a)
    if hot is None or hot.guarded:
        return None
    value: ast.expr = a.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        item, other = (value.left, value.right) if _is_item(value.left) else (value.right, value.left)
        if any(_is_item(n) for n in walk(other)) or (isinstance(value.op, ast.Div) and item is value.right):
            return None
        value = item
    if not _is_item(value):
        return None
    assert isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
    kind = _kind(facts, value.func.value) if not _is_no_tensors(facts, value.func) else None
    if kind is None or (kind == "int" and value is not a.value):
        return None
    return Total(a, value, kind)


def _is_no_tensors(facts: Facts, f: ast.Attribute) -> bool:
    """Whether an `item` is that of what the host has already, or of a class of the script."""
    return on_host(facts, f.value) or bool(own_methods(facts, f))


def _is_item(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "item"
        and not node.args
        and not node.keywords
    )


def _kind(facts: Facts, x: ast.expr) -> str | None:
    """ "int" for a count of what is equal, "float" for a loss, None for what does not show."""
    while True:
        if isinstance(x, ast.Call) and isinstance(x.func, ast.Attribute) and x.func.attr in ("cpu", "detach"):
            x = x.func.value
        elif isinstance(x, ast.Attribute) and x.attr == "data":
            x = x.value
        else:
            break
    if isinstance(x, ast.Call) and isinstance(x.func, ast.Attribute) and x.func.attr in SUMS:
        counted = x.args[0] if facts.names.resolve(x.func) and x.args else x.func.value
        while isinstance(counted, ast.Call) and isinstance(counted.func, ast.Attribute):
            if counted.func.attr in EQUAL:
                return "int"
            if counted.func.attr not in ("cpu", "detach", "view", "reshape", "squeeze"):
                break
            counted = counted.func.value
        return "int" if isinstance(counted, ast.Compare) else None
    if isinstance(x, ast.Name):
        return "float" if LOSS.search(x.id) else None
    if isinstance(x, ast.Call):
        last = x.func.attr if isinstance(x.func, ast.Attribute) else getattr(x.func, "id", "")
        return "float" if LOSS.search(last) else None
    return None


def _copies(item: ast.AST) -> list[ast.Call]:
    """The `.cpu()` between a tensor and its `.item()`."""
    found = []
    x = item.func.value if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) else None
    while isinstance(x, ast.Call) and isinstance(x.func, ast.Attribute) and x.func.attr in ("cpu", "detach"):
        if x.func.attr == "cpu" and not x.args and not x.keywords:
            found.append(x)
        x = x.func.value
    return found


def _detached(kind: str) -> Any:
    """`x.item()` to `x.detach()`, in double precision where numbers with a point are summed."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        func = updated.func
        if not (isinstance(func.value, cst.Call) and _last(func.value) == "detach"):
            new: Any = updated.with_changes(func=func.with_changes(attr=cst.Name("detach")), lpar=[], rpar=[])
        else:
            new = func.value
        if kind == "float":
            new = cst.Call(cst.Attribute(new, cst.Name("double")))
        return new.with_changes(lpar=[*updated.lpar, *new.lpar], rpar=[*new.rpar, *updated.rpar])

    return rewrite


def _last(call: Any) -> str:
    return getattr(getattr(call.func, "attr", None), "value", "")


def _number(kind: str) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        return cst.Call(
            cst.Name(kind), [cst.Arg(updated.with_changes(lpar=[], rpar=[]))], lpar=updated.lpar, rpar=updated.rpar
        )

    return rewrite
