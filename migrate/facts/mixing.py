"""Where a step mixes the samples of its batch: there it needs the whole batch, of which a device may see a part only.

Each value is followed from the batch on: which of its dimensions counts the samples, if any still does. An operation
along that dimension (softmax, mean, sort, ...), a product of samples with samples and a contrastive loss mix them.
Means and sums of everything do not: those of the parts add up to that of the whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from .arguments import entry
from .batch_buffers import is_buffer, keep
from .batch_builtins import by_places
from .batch_by_name import with_places
from .batch_calls import BatchCall
from .batch_choices import as_if
from .batch_functions import is_own
from .batch_networks import Networks
from .batch_numbers import listed, meet, together
from .batch_operations import SIZE_ATTRIBUTES, SWAPS
from .batch_pairs import is_along, spread_apart
from .batch_places import column, indexed
from .batch_shapes import Shapes
from .batch_tensors import losses_of
from .batch_tests import asks_values
from .batch_values import BUFFER, PLAIN, REDUCED, Flow, Value, replace
from .batch_views import numbers
from .classes import Function
from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts


TURNS = {"permute", *SWAPS}
_MAKES = (ast.Call, ast.Name, ast.Lambda, ast.IfExp, ast.List, ast.Tuple, ast.Dict, ast.BinOp)


class Mixing:
    """`networks`: whether the networks of the file are followed, too."""

    def __init__(self, facts: Facts, networks: bool = False) -> None:
        self.facts, self.networks = facts, Networks(facts) if networks else None
        self._running: set[ast.AST] = set()
        self.handing: set[ast.AST] = set()  # what is called of what callers give, while that is followed
        self._shapes: dict[ast.AST, Shapes] = {}
        self._buffers: dict[ast.ClassDef, set[object]] = {}
        self._flows: dict[object, Flow] = {}

    def flow(
        self,
        f: Function | ast.Lambda,
        given: dict[str, Value],
        holder: ast.ClassDef | None,
        constants: dict[str, ast.expr] | None = None,
    ) -> Flow:
        """A function followed with its parameters known; empty for one that is being followed already."""
        if f in self._running:
            return Flow()
        around = (frozenset(self._running), frozenset(self.handing), len(self.facts.buffers))
        key = (f, holder, frozenset(given.items()), frozenset((constants or {}).items()), around)
        if key not in self._flows:
            self._flows[key] = self._followed(f, given, holder, constants)
        found = copy(self._flows[key])
        found.mixes = [*found.mixes]  # callers add to it
        return found

    def _followed(
        self,
        f: Function | ast.Lambda,
        given: dict[str, Value],
        holder: ast.ClassDef | None,
        constants: dict[str, ast.expr] | None,
    ) -> Flow:
        flow = Flow()
        self._running.add(f)
        try:
            body: list[ast.stmt] = [ast.Return(f.body)] if isinstance(f, ast.Lambda) else f.body
            if f not in self._shapes:
                self._shapes[f] = Shapes(body, self.facts.names.resolve, self.losses)
            run = Run(self, flow, holder, dict(given), constants, self._shapes[f])
            for s in body:
                run.statement(s)
                flow.after[s] = dict(run.env)
        finally:
            self._running.discard(f)
        return flow

    def value(self, e: ast.expr, known: dict[str, Value]) -> tuple[Value, bool]:
        """What an expression is where these names are known, and whether it mixes samples."""
        flow = Flow()
        return Run(self, flow, None, dict(known)).value(e), bool(flow.mixes)

    def buffers_of(self, holder: ast.ClassDef) -> set[object]:
        """The names of a module's buffers, those that the plan makes among them."""
        if holder not in self._buffers:
            self._buffers[holder] = self.facts.tensors.registered(holder)
        return self._buffers[holder] | {name for c, name in self.facts.buffers if c is holder}

    @cached_property
    def made(self) -> dict[str, list[ast.expr]]:
        """The calls that make what `self.name` holds, the functions that it is, or the list of them."""
        found: dict[str, list[ast.expr]] = {}
        for s in self.facts.walk(ast.Assign):
            for t in s.targets:
                if isinstance(t, ast.Attribute) and isinstance(s.value, _MAKES):
                    found.setdefault(t.attr, []).append(s.value)
        return found

    @cached_property
    def losses(self) -> set[str]:
        return losses_of(self.facts)

    @cached_property
    def appended(self) -> dict[str, list[ast.expr]]:
        """What is put into the list that `self.name` is."""
        found: dict[str, list[ast.expr]] = {}
        for a in self.facts.attributes.get("append", ()):
            call = self.facts.scopes.parents.get(a)
            if isinstance(a.value, ast.Attribute) and isinstance(call, ast.Call) and call.func is a:
                found.setdefault(a.value.attr, []).extend(call.args)
        return found


class Run:
    """One pass over a function: an environment of names, and the operations that were seen to mix."""

    def __init__(
        self,
        mixing: Mixing,
        flow: Flow,
        holder: ast.ClassDef | None,
        env: dict[str, Value],
        constants: dict[str, ast.expr] | None = None,
        shapes: Shapes | None = None,
    ) -> None:
        self.shapes = shapes or Shapes([], mixing.facts.names.resolve)
        self._expected: tuple[ast.expr, int] | None = None
        self.mixing, self.facts, self.flow, self.holder, self.env = mixing, mixing.facts, flow, holder, env
        self.constants = dict(constants or {})
        self.env |= {name: self.shapes.shown(name, value) for name, value in env.items()}

    # -- statements ------------------------------------------------------------------------------------------

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.Assign):
            target = s.targets[0]
            if isinstance(target, ast.Name) and isinstance(s.value, (ast.Tuple, ast.Constant)) and numbers(s.value):
                self.constants[target.id] = s.value  # dims = (2, 3)
            self._expected = (s.value, self.shapes.rank(target.id)) if isinstance(target, ast.Name) else None
            value = self.value(s.value)
            for t in s.targets:
                self.bind(t, value, s.value)
                if not isinstance(t, ast.Name):
                    keep(self, t, t, value)
        elif isinstance(s, ast.AugAssign):
            value, before = self.value(s.value), self.value(s.target)
            keep(self, s.target, s.target, value)
            self.bind(s.target, self.combine(s, before, value, s.op), s.value)
        elif isinstance(s, ast.Return):
            value = self.value(s.value) if s.value is not None else PLAIN
            loss = entry(s.value, "loss") if s.value is not None else None
            if isinstance(loss, ast.Name):
                value = replace(value, bent=self.value(loss).bent)
            self.flow.returned.append(value)
        elif isinstance(s, (ast.For, ast.AsyncFor)):
            over = self.value(s.iter)
            element = over if by_places(s.iter, over) else replace(over, holds=False, dim=max(over.dim - 1, 0))
            self.bind(s.target, element, None)
            self.block([*s.body, *s.orelse])
            if over.kind == "batch" and over.dim == 0 and not over.holds and self._carries(s):
                self.flow.may_mix.append(s.iter)
        elif isinstance(s, (ast.While, ast.If)):
            asked = self._asks_all(s.test)
            self.block([*s.body, *s.orelse])
            if asked:
                self._decide(s)
        elif isinstance(s, (ast.With, ast.AsyncWith)):
            for item in s.items:
                self.value(item.context_expr)
            self.block(s.body)
        elif isinstance(s, ast.Try):
            self.block([*s.body, *(x for h in s.handlers for x in h.body), *s.orelse, *s.finalbody])
        elif isinstance(s, ast.Expr):
            self.value(s.value)
        elif isinstance(s, ast.Assert):
            self.value(s.test)

    def _asks_all(self, test: ast.expr) -> bool:
        """Whether a test asks for something of all samples together: `loss.item() > 1`, `mask.any()`."""
        if self.value(test).kind != "reduced":
            return False
        return asks_values(test, {name for name, value in self.env.items() if value.kind != "plain"})

    def _decide(self, s: ast.If | ast.While) -> None:
        """What stands under such a test: a share may answer it otherwise than the whole batch."""
        for n in (n for x in (*s.body, *s.orelse) for n in walk(x)):
            if isinstance(n, ast.Return):
                self.flow.decided[n] = s.test
            elif isinstance(n, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                targets = n.targets if isinstance(n, ast.Assign) else [n.target]
                names = [x for t in targets for x in walk(t, ast.Name)]
                if any(isinstance(x.ctx, ast.Store) or self.env.get(x.id, PLAIN).kind != "plain" for x in names):
                    self.flow.decided[n] = s.test

    def expects(self, e: ast.expr) -> int:
        """The rank that what an expression is assigned to shows; 0 where none does."""
        return self._expected[1] if self._expected is not None and self._expected[0] is e else 0

    def _carries(self, loop: ast.For | ast.AsyncFor) -> bool:
        """Whether a loop over a value meets one part of it with what it has of another: `(c - last).norm()`."""
        stored = {n.id for s in loop.body for n in walk(s, ast.Name) if isinstance(n.ctx, ast.Store)}
        kept = {name for name in stored if self.env.get(name, PLAIN).kind == "batch"}
        seen: set[str] = set()
        for s in loop.body:
            read = {n.id for n in walk(s, ast.Name) if isinstance(n.ctx, ast.Load)}
            if (read - _summed(s)) & (kept - seen):
                return True
            seen |= {n.id for n in walk(s, ast.Name) if isinstance(n.ctx, ast.Store)}
        return any(isinstance(n, ast.For) and self.value(n.iter).kind == "batch" for s in loop.body for n in walk(s))

    def block(self, body: Iterable[ast.stmt]) -> None:
        for s in body:
            self.statement(s)
            self.flow.after[s] = dict(self.env)

    def bind(self, target: ast.expr, value: Value, source: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.env[target.id] = replace(self.shapes.shown(target.id, value), turned=self._turns(source))
        elif isinstance(target, ast.Attribute) and is_own(target):
            self.env[ast.unparse(target)] = value
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and value.kind != "plain":
            name, before = target.value.id, self.value(target.value)
            if before.kind != "batch" and isinstance(getattr(target.slice, "value", None), str):
                self.env[name] = self.held([before, value])  # losses["ce"] = ...
        elif isinstance(target, ast.Starred):
            self.bind(target.value, replace(value, holds=value.kind == "batch", items=()), None)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Slice):
                value = replace(self.value(source.value), holds=True)  # a, b = views[:2]: of a tuple or a list
            elif value.kind == "batch" and value.dim > 0 and not value.holds and self._turns(source):
                value = replace(value, dim=value.dim - 1)  # q, k, v = qkv.permute(2, 0, 3, 1, 4)
            same = isinstance(source, (ast.Tuple, ast.List)) and len(source.elts) == len(target.elts)
            for i, t in enumerate(target.elts):
                part = source.elts[i] if same else None  # type: ignore[union-attr]
                known = self.value(part) if part is not None else value.item(i)
                self.bind(t, replace(value, holds=False) if known is None else known, part)

    def _turns(self, source: ast.expr | None) -> bool:
        """`qkv.permute(2, 0, 3, 1, 4)`, or a name for it: one tensor, which is taken apart by its first dimension."""
        if isinstance(source, ast.Name):
            return self.value(source).turned
        func = source.func if isinstance(source, ast.Call) else None
        last = (self.facts.names.resolve(func) or "").rpartition(".")[2] if func is not None else ""
        return (last or getattr(func, "attr", "")) in TURNS

    # -- expressions -----------------------------------------------------------------------------------------

    def value(self, e: ast.expr) -> Value:
        if isinstance(e, ast.Name):
            return self.env.get(e.id, PLAIN)
        if isinstance(e, ast.Attribute):
            return self._attribute(e)
        if isinstance(e, ast.Subscript):
            return self._subscript(e)
        if isinstance(e, ast.Call):
            placed = with_places(e, self.facts.names.resolve(e.func)) if e.keywords else None
            return BatchCall(self, e).value() if placed is None else as_if(self, e, placed)
        if isinstance(e, ast.BinOp):
            left, right = self.value(e.left), self.value(e.right)
            if isinstance(e.op, ast.BitOr) and any(isinstance(x, (ast.Dict, ast.DictComp)) for x in (e.left, e.right)):
                return replace(self.held([left, right]), items=(*left.items, *right.items))  # losses | {"l2": l2}
            if isinstance(e.op, ast.MatMult):
                return self.product(e, left, right, e.left)
            if spread_apart(e.left, left, e.right, right):
                self.flow.mixes.append(e)  # y[:, None] == y
            return self.combine(e, left, right, e.op)
        if isinstance(e, ast.Compare):
            found = self.value(e.left)
            for other in e.comparators:
                value = self.value(other)
                if spread_apart(e.left, found, other, value):
                    self.flow.mixes.append(e)
                found = self.combine(e, found, value, ast.Sub())
            return found
        if isinstance(e, (ast.Tuple, ast.List, ast.Set)):
            return self.held([self.value(x) for x in e.elts], range(len(e.elts)))
        if isinstance(e, ast.Dict):
            return self.held([self.value(x) for x in e.values], [getattr(k, "value", k) for k in e.keys])
        if isinstance(e, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            through = []
            for g in e.generators:
                through.append(over := self.value(g.iter))
                self.bind(g.target, over if by_places(g.iter, over) else replace(over, holds=False), None)
            found = self.held([self.value(e.value if isinstance(e, ast.DictComp) else e.elt)])
            return listed(e, through, found) if isinstance(e, (ast.ListComp, ast.GeneratorExp)) else found
        if isinstance(e, ast.NamedExpr):
            found = self.value(e.value)
            self.bind(e.target, found, e.value)
            return found
        if isinstance(e, (ast.IfExp, ast.BoolOp)):
            parts = [e.body, e.orelse] if isinstance(e, ast.IfExp) else e.values
            if isinstance(e, ast.IfExp) and self._asks_all(e.test):
                self.flow.decided[e] = e.test
            return self.joined([self.value(x) for x in parts])
        if isinstance(e, ast.UnaryOp):
            return self.value(e.operand)
        return self.value(e.value) if isinstance(e, (ast.Starred, ast.Await)) else PLAIN

    def joined(self, values: list[Value]) -> Value:
        """One of several values: the one that says most."""
        numbers_of_samples = next((v for v in values if v.places or v.alike), PLAIN)
        found = next((v for kind in ("batch", "reduced") for v in values if v.kind == kind), numbers_of_samples)
        return found if found.kind != "reduced" else next((v for v in values if v.bent is not None), found)

    def held(self, values: list[Value], keys: Iterable[object] = ()) -> Value:
        found = self.joined(values)
        items = tuple(zip(keys, values, strict=False))
        return replace(found, holds=True, items=items) if found.kind == "batch" else found

    def _attribute(self, e: ast.Attribute) -> Value:
        if is_own(e):
            if (kept := self.env.get(ast.unparse(e))) is not None:
                return kept
            if is_buffer(self, e):
                return BUFFER
        value = self.value(e.value)
        if value.kind != "batch":
            return PLAIN if e.attr in SIZE_ATTRIBUTES else value.item(e.attr) or value
        if e.attr in SIZE_ATTRIBUTES:
            return PLAIN
        if e.attr in ("values", "indices"):  # of what `out.max(1)` gives
            return replace(value, holds=False)
        if e.attr in ("mT", "mH", "H"):
            return self.turned(value, e.value)
        return (
            replace(value, dim=1 - value.dim, rank=2) if e.attr == "T" and value.dim < 2 and not value.holds else value
        )

    def turned(self, value: Value, source: ast.AST) -> Value:
        """The last two dimensions change places: which those are shows where the rank does."""
        if value.rank == 2 and value.dim < 2:
            return replace(value, dim=1 - value.dim)
        return value if value.rank or value.holds or value.apart else replace(value, own=ast.unparse(source))

    def constant(self, e: ast.expr) -> ast.expr:
        """What a parameter of the function was given, or a name or an attribute is, where that is written out:
        `def scaled(x, dim=1)`, `DIM = 0`, `self.dim = 0`.
        """
        if isinstance(e, ast.Name) and e.id in self.constants:
            return self.constants[e.id]
        values: list[ast.expr] | None = None
        if isinstance(e, ast.Name) and e.id not in self.env:
            scope = self.facts.scopes.scope_of(e).lookup(e.id)
            values = self.facts.devices.assigned(e.id, scope) if scope is not None else None
        elif is_own(e):
            values = self.facts.devices.attribute_values.get(e.attr)
        return values[0] if values and len(values) == 1 and numbers(values[0]) else e

    def _is_output(self, e: ast.Subscript) -> bool:
        """`self.rnn(x)[0]`: one of what a module gives, as far as can be seen; nobody asks one for its first sample."""
        if not (isinstance(e.value, ast.Call) and len(numbers(e.slice)) == 1):
            return False
        func = e.value.func
        if isinstance(func, ast.Attribute) and self.value(func.value).kind != "plain":
            return False  # a tensor's own method
        full = self.facts.names.resolve(func) or "torch.nn."
        return full.startswith("torch.nn.") and not full.startswith("torch.nn.functional.")

    def _subscript(self, e: ast.Subscript) -> Value:
        value = self.value(e.value)
        if isinstance(e.value, ast.Attribute) and e.value.attr == "shape":
            of = self.value(e.value.value)
            return replace(PLAIN, counts=of.kind == "batch" and not of.holds and numbers(e.slice) == [of.dim])
        parts = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
        places = [self.value(p) for p in parts if isinstance(p, ast.expr) and not isinstance(p, ast.Slice)]
        orders = [p.order for p in places]
        if value.counts and isinstance(e.slice, ast.Slice) and e.slice.step is not None:
            return Value(order=True)  # list(range(len(x)))[::-1]
        if value.kind != "batch":
            return value
        if any(p.kind == "reduced" for p in places):
            self.flow.mixes.append(e)  # x[:, x.mean(0).topk(2)[1]]: where all samples say
        if value.holds and isinstance(e.slice, ast.Slice):
            return replace(value, items=())  # views[:2]
        loose = value.loose and len(numbers(e.slice)) == 1
        if value.holds or loose or self._is_output(e):
            known = value.item(getattr(e.slice, "value", None))
            return replace(value, holds=False) if known is None else known
        at, new = 0, 0  # the dimension that the next part of the index is about, before and after
        for part, nth in zip(parts, range(len(parts)), strict=True):
            if isinstance(part, ast.Constant) and part.value is None:
                new += 1
                continue
            if isinstance(part, ast.Constant) and part.value is Ellipsis:
                more = any(isinstance(p, ast.Constant) and p.value is None for p in parts[nth:])
                return (
                    replace(value, apart=True, flat=False, rank=value.rank and 3) if more else value
                )  # z[..., None, :]
            if at == value.dim:
                found = column(indexed(self, e, value, part, new, nth, orders), value, parts[nth + 1 :])
                behind = parts[nth + 1] if nth + 1 < len(parts) and isinstance(part, ast.Slice) else None
                new_one = isinstance(behind, ast.Constant) and behind.value is None
                return replace(found, flat=False, apart=True, rank=0) if new_one else found
            whole = isinstance(part, ast.Slice)
            at, new = at + 1, new + whole
        return replace(value, dim=new + value.dim - at, flat=value.flat and not new)

    # -- two values ------------------------------------------------------------------------------------------

    def combine(self, e: ast.AST, left: Value, right: Value, op: ast.operator | None = None) -> Value:
        """Element by element."""
        kinds = {left.kind, right.kind}
        if kinds == {"batch"}:
            along = is_along(left, right) or is_along(right, left)
            if left.dim != right.dim and not left.holds and not right.holds and not along:
                self.flow.mixes.append(e)  # z[:, None] - z[None, :]
            elif (left.merged and right.views == 0) or (right.merged and left.views == 0):
                self.flow.mixes.append(e)  # x.repeat_interleave(n, 0) - x.repeat(n, 1)
            elif left.views == right.views == 1 and (left.cut != right.cut or left.picked != right.picked):
                self.flow.mixes.append(e)  # z[1:] - z[:-1], z[partner] - z
            found = left if left.views != 1 or is_along(left, right) else right
            return replace(found, picked=left.picked or right.picked)
        if "batch" in kinds:
            if "reduced" in kinds and op is not None and not isinstance(op, ast.Add):
                self.flow.mixes.append(e)  # x - x.mean()
            meet(self, e, left, right, op)
            return left if left.kind == "batch" else right
        bent = left.bent or right.bent
        if kinds == {"reduced"} and isinstance(op, ast.Div):
            self.flow.mixes.append(e)  # (w * loss).sum() / w.sum()
        squares = isinstance(op, ast.Pow) and numbers(getattr(e, "right", e)) == [2]  # type: ignore[arg-type]
        if left.root and squares:
            return REDUCED
        if (
            isinstance(op, ast.Pow)
            or (kinds == {"reduced"} and isinstance(op, ast.Mult))
            or (right.kind == "reduced" and isinstance(op, ast.Div))
        ):
            bent = e
        adds = isinstance(op, (ast.Add, ast.Sub)) and not isinstance(e, ast.Compare)
        counts = (left.counts or right.counts) and adds  # len(x) - 1
        turned = left.order or right.order or (left.counts and isinstance(op, ast.Mod))
        order = isinstance(e, ast.BinOp) and turned  # (torch.arange(n) + 1) % n
        if "reduced" in kinds:
            return replace(REDUCED, bent=bent)
        alike = left.alike or right.alike
        return Value(counts=counts, order=order, places=together(left, right, op), alike=alike and not order)

    def product(self, e: ast.AST, left: Value, right: Value, first: ast.AST) -> Value:
        """A product of matrices; `first` is the one on the left."""
        if right.kind == "batch" and right.own and right.own == ast.unparse(first):
            right = replace(right, dim=1 - right.dim, own="")  # z @ z.mT: nothing shows that there is a z a sample
        if left.kind == right.kind == "batch":
            if left.dim == 1 or right.dim == 1 or (left.rows and right.rows):
                self.flow.mixes.append(e)  # z @ z.t(), z.t() @ z
            elif right.own:
                return replace(left, met=e)
            elif left.cut != right.cut:
                self.flow.mixes.append(e)  # z[i] @ z[j]
            return replace(left if left.dim == 0 else right, own=right.own)
        if left.kind == "batch" and left.dim == 1:
            self.flow.mixes.append(e)
        if "batch" in (left.kind, right.kind):
            meet(self, e, left, right, None)
        return left if left.kind == "batch" else right


def _summed(s: ast.stmt) -> set[str]:
    """`total` of `total += c.sum()` and `total = total + c.sum()`."""
    added = isinstance(s, ast.Assign) and isinstance(s.value, ast.BinOp) and isinstance(s.value.op, ast.Add)
    targets = [s.target] if isinstance(s, ast.AugAssign) else s.targets if added else []  # type: ignore[attr-defined]
    return {t.id for t in targets if isinstance(t, ast.Name)}
