"""Where a step mixes the samples of its batch: there it needs the whole batch, of which a device may see a part only.

Each value is followed from the batch on: which of its dimensions counts the samples, if any still does. An operation
along that dimension (softmax, mean, sort, ...), a product of samples with samples and a contrastive loss mix them.
Means and sums of everything do not: those of the parts add up to that of the whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from .batch_operations import (
    ALWAYS_MIXES,
    CONTRASTIVE,
    JOINS,
    KEEPS_SHAPE,
    LAST_BY_DEFAULT,
    LOSS,
    NO_VALUES,
    NOT_ADDED_UP,
    PAIRS,
    PARTS,
    PER_SAMPLE_LOSS,
    PRODUCTS,
    REDUCES,
    SIZE_ATTRIBUTES,
    SIZES,
)
from .classes import Function
from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts


@dataclass(frozen=True)
class Value:
    """What is known of a value: `dim` counts the samples (None where no dimension does any more).

    `views` samples of each stand one view after another (0: how many is not known), as after `torch.cat([a, b])`.
    """

    kind: str = "plain"  # plain: not of the batch; batch: a value per sample; reduced: of all samples together
    dim: int = 0
    views: int = 1
    holds: bool = False  # a tuple, list or dictionary of such values
    order: bool = False  # a random order, as of randperm
    vector: bool = False  # one number per sample, as after `.sum(1)`: its mean is that of the parts, weighted
    listed: str = ""  # the name of the list that the views came from, where their number is not known


PLAIN, REDUCED, BATCH = Value(), Value("reduced"), Value("batch")


@dataclass
class Flow:
    """A function followed from its batch on: the operations that mix, and what each name is after each statement."""

    mixes: list[ast.AST] = field(default_factory=list)
    returned: list[Value] = field(default_factory=list)
    after: dict[ast.stmt, dict[str, Value]] = field(default_factory=dict)

    def first(self, body: list[ast.stmt]) -> int | None:
        """The place of the first statement of a block that mixes."""
        inside = set(self.mixes)
        return next((i for i, s in enumerate(body) if any(n in inside for n in walk(s))), None)


class Mixing:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._running: set[ast.AST] = set()

    def flow(self, f: Function, given: dict[str, Value], holder: ast.ClassDef | None) -> Flow:
        """A function followed with its parameters known; empty for one that is being followed already."""
        flow = Flow()
        if f in self._running:
            return flow
        self._running.add(f)
        try:
            run = _Run(self, flow, holder, dict(given))
            for s in f.body:
                run.statement(s)
                flow.after[s] = dict(run.env)
        finally:
            self._running.discard(f)
        return flow

    @cached_property
    def made(self) -> dict[str, ast.Call]:
        """The call that makes what `self.name` holds."""
        found: dict[str, ast.Call] = {}
        for s in self.facts.walk(ast.Assign):
            for t in s.targets:
                if isinstance(t, ast.Attribute) and isinstance(s.value, ast.Call):
                    found[t.attr] = s.value
        return found


class _Run:
    """One pass over a function: an environment of names, and the operations that were seen to mix."""

    def __init__(self, mixing: Mixing, flow: Flow, holder: ast.ClassDef | None, env: dict[str, Value]) -> None:
        self.mixing, self.facts, self.flow, self.holder, self.env = mixing, mixing.facts, flow, holder, env

    # -- statements ------------------------------------------------------------------------------------------

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.Assign):
            value = self.value(s.value)
            for t in s.targets:
                self.bind(t, value, s.value)
        elif isinstance(s, ast.AnnAssign) and s.value is not None:
            self.bind(s.target, self.value(s.value), s.value)
        elif isinstance(s, ast.AugAssign):
            self.bind(s.target, self.combine(s, self.value(s.target), self.value(s.value), s.op), s.value)
        elif isinstance(s, ast.Return):
            self.flow.returned.append(self.value(s.value) if s.value is not None else PLAIN)
        elif isinstance(s, ast.For | ast.AsyncFor):
            self.bind(s.target, replace(self.value(s.iter), holds=False), None)
            self.block([*s.body, *s.orelse])
        elif isinstance(s, ast.While | ast.If):
            self.value(s.test)
            self.block([*s.body, *s.orelse])
        elif isinstance(s, ast.With | ast.AsyncWith):
            for item in s.items:
                self.value(item.context_expr)
            self.block(s.body)
        elif isinstance(s, ast.Try):
            self.block([*s.body, *(x for h in s.handlers for x in h.body), *s.orelse, *s.finalbody])
        elif isinstance(s, ast.Expr):
            self.value(s.value)
        elif isinstance(s, ast.Assert):
            self.value(s.test)

    def block(self, body: Iterable[ast.stmt]) -> None:
        for s in body:
            self.statement(s)

    def bind(self, target: ast.expr, value: Value, source: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.env[target.id] = value
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value, None)
        elif isinstance(target, ast.Tuple | ast.List):
            same = isinstance(source, ast.Tuple | ast.List) and len(source.elts) == len(target.elts)
            for i, t in enumerate(target.elts):
                part = source.elts[i] if same else None  # type: ignore[union-attr]
                self.bind(t, self.value(part) if part is not None else replace(value, holds=False), part)

    # -- expressions -----------------------------------------------------------------------------------------

    def value(self, e: ast.expr) -> Value:
        if isinstance(e, ast.Name):
            return self.env.get(e.id, PLAIN)
        if isinstance(e, ast.Attribute):
            return self._attribute(e)
        if isinstance(e, ast.Subscript):
            return self._subscript(e)
        if isinstance(e, ast.Call):
            return _Call(self, e).value()
        if isinstance(e, ast.BinOp):
            left, right = self.value(e.left), self.value(e.right)
            if isinstance(e.op, ast.MatMult):
                return self.product(e, left, right)
            return self.combine(e, left, right, e.op)
        if isinstance(e, ast.Compare):
            found = self.value(e.left)
            for other in e.comparators:
                found = self.combine(e, found, self.value(other), ast.Sub())
            return found
        if isinstance(e, ast.Tuple | ast.List | ast.Set):
            return self.held([self.value(x) for x in e.elts])
        if isinstance(e, ast.Dict):
            return self.held([self.value(x) for x in e.values])
        if isinstance(e, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            for g in e.generators:
                self.bind(g.target, replace(self.value(g.iter), holds=False), None)
            return self.held([self.value(e.value if isinstance(e, ast.DictComp) else e.elt)])
        if isinstance(e, ast.NamedExpr):
            found = self.value(e.value)
            self.bind(e.target, found, e.value)
            return found
        if isinstance(e, ast.IfExp | ast.BoolOp):
            parts = [e.body, e.orelse] if isinstance(e, ast.IfExp) else e.values
            return self.joined([self.value(x) for x in parts])
        if isinstance(e, ast.UnaryOp):
            return self.value(e.operand)
        return self.value(e.value) if isinstance(e, ast.Starred | ast.Await) else PLAIN

    def joined(self, values: list[Value]) -> Value:
        """One of several values: the one that says most."""
        return next((v for kind in ("batch", "reduced") for v in values if v.kind == kind), PLAIN)

    def held(self, values: list[Value]) -> Value:
        found = self.joined(values)
        return replace(found, holds=True) if found.kind == "batch" else found

    def _attribute(self, e: ast.Attribute) -> Value:
        value = self.value(e.value)
        if value.kind != "batch":
            return PLAIN if e.attr in SIZE_ATTRIBUTES else value
        if e.attr in SIZE_ATTRIBUTES:
            return PLAIN
        return replace(value, dim=1 - value.dim) if e.attr == "T" and value.dim < 2 and not value.holds else value

    def _subscript(self, e: ast.Subscript) -> Value:
        value = self.value(e.value)
        parts = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
        orders = [self.value(p).order for p in parts if isinstance(p, ast.expr) and not isinstance(p, ast.Slice)]
        if value.kind != "batch":
            return value
        if value.holds:
            return replace(value, holds=False)
        at, new = 0, 0  # the dimension that the next part of the index is about, before and after
        for part, nth in zip(parts, range(len(parts)), strict=True):
            if isinstance(part, ast.Constant) and part.value is None:
                new += 1
                continue
            if isinstance(part, ast.Constant) and part.value is Ellipsis:
                return value
            if at == value.dim:
                return self._indexed(e, value, part, new, nth, orders)
            whole = isinstance(part, ast.Slice)
            at, new = at + 1, new + whole
        return replace(value, dim=new + value.dim - at)

    def _indexed(self, e: ast.Subscript, value: Value, part: ast.expr, new: int, nth: int, orders: list[bool]) -> Value:
        """The dimension of the samples itself is indexed."""
        if isinstance(part, ast.Slice):
            cut = part.lower is not None or part.upper is not None
            return replace(value, dim=new, views=1 if cut else value.views)
        if isinstance(part, ast.Constant) or (isinstance(part, ast.UnaryOp) and isinstance(part.operand, ast.Constant)):
            return Value("plain") if isinstance(getattr(part, "value", 0), str) else REDUCED
        if any(orders):
            self.flow.mixes.append(e)  # x[torch.randperm(n)]
        return replace(value, dim=new)

    # -- two values ------------------------------------------------------------------------------------------

    def combine(self, e: ast.AST, left: Value, right: Value, op: ast.operator | None = None) -> Value:
        """Element by element."""
        kinds = {left.kind, right.kind}
        if kinds == {"batch"}:
            if left.dim != right.dim and not left.holds and not right.holds:
                self.flow.mixes.append(e)  # z[:, None] - z[None, :]
            return left if left.views != 1 else right
        if "batch" in kinds:
            if "reduced" in kinds and op is not None and not isinstance(op, ast.Add):
                self.flow.mixes.append(e)  # x - x.mean()
            return left if left.kind == "batch" else right
        if kinds == {"reduced"} and isinstance(op, ast.Div):
            self.flow.mixes.append(e)  # (w * loss).sum() / w.sum()
        return REDUCED if "reduced" in kinds else PLAIN

    def product(self, e: ast.AST, left: Value, right: Value) -> Value:
        """A product of matrices."""
        if left.kind == right.kind == "batch":
            if left.dim == 1 or right.dim == 1:
                self.flow.mixes.append(e)  # z @ z.t(), z.t() @ z
            return left if left.dim == 0 else right
        if left.kind == "batch" and left.dim == 1:
            self.flow.mixes.append(e)
        return left if left.kind == "batch" else right


class _Call:
    """One call, with what its arguments are."""

    def __init__(self, run: _Run, call: ast.Call) -> None:
        self.run, self.call, self.facts = run, call, run.facts
        self.full = self.facts.names.resolve(call.func)
        func = call.func
        self.last = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        self.args = [run.value(a) for a in call.args]
        self.keywords = {k.arg: run.value(k.value) for k in call.keywords}

    def value(self) -> Value:
        func, run = self.call.func, self.run
        everything = [*self.args, *self.keywords.values()]
        if isinstance(func, ast.Attribute) and self.full is None and not self._of_self(func):
            owner = run.value(func.value)
            if owner.kind == "batch" or owner.kind == "reduced":
                return self._operation(self.last, owner, 0, everything)
            if self.last in ("append", "extend") and isinstance(func.value, ast.Name):
                run.env[func.value.id] = run.held(everything)
                return PLAIN
        if self.full is not None and self.full.startswith("torch."):
            if self.last == "randperm":
                return Value(order=True)
            first = self.args[0] if self.args else run.joined(everything)
            return self._operation(self.last, first, 1, everything)
        of_batch = run.joined(everything)
        if of_batch.kind == "plain" or (isinstance(func, ast.Name) and func.id in NO_VALUES):
            return PLAIN
        return self._other(of_batch)

    def _of_self(self, func: ast.Attribute) -> bool:
        return isinstance(func.value, ast.Name) and func.value.id == "self"

    def _mixes(self, result: Value = REDUCED) -> Value:
        self.run.flow.mixes.append(self.call)
        return result

    # -- functions of the file, modules and what is not known -------------------------------------------------

    def _other(self, of_batch: Value) -> Value:
        func, mixing = self.call.func, self.run.mixing
        target = self._function()
        if target is not None:
            f, holder = target
            names = [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
            names = names[1:] if holder is not None else names
            given = {**dict(zip(names, self.args, strict=False)), **{k: v for k, v in self.keywords.items() if k}}
            inside = mixing.flow(f, given, holder)
            if inside.mixes:
                return self._mixes(self.run.joined(inside.returned) if inside.returned else REDUCED)
            return self.run.joined(inside.returned) if inside.returned else of_batch
        made = mixing.made.get(func.attr) if isinstance(func, ast.Attribute) and self._of_self(func) else None
        if made is not None:
            return self._made_module(made, of_batch)
        return self._by_name(self.full or self.last, of_batch)

    def _made_module(self, made: ast.Call, of_batch: Value) -> Value:
        """`self.criterion = nn.CrossEntropyLoss()` called."""
        full = self.facts.names.resolve(made.func) or ast.unparse(made.func)
        kind = full.rpartition(".")[2]
        if kind in ("Softmax", "LogSoftmax", "Softmin") and of_batch.kind == "batch":
            dim = next((k.value for k in made.keywords if k.arg == "dim"), made.args[0] if made.args else None)
            return self._mixes(of_batch) if dim is not None and of_batch.dim in _numbers(dim) else of_batch
        if kind in ("CosineSimilarity", "PairwiseDistance") and len(self.args) > 1:
            return self.run.combine(self.call, self.args[0], self.args[1])
        if full in PER_SAMPLE_LOSS:
            return REDUCED
        separate = any(k.arg == "reduction" and _is_text(k.value, "none") for k in made.keywords)
        return of_batch if separate else self._by_name(full, of_batch)

    def _by_name(self, name: str, of_batch: Value) -> Value:
        last = name.rpartition(".")[2]
        if CONTRASTIVE.search(last) or name.startswith(("pytorch_metric_learning.losses", "lightly.loss")):
            return self._mixes() if of_batch.kind == "batch" else of_batch
        return REDUCED if LOSS.search(last) else replace(of_batch, holds=False)

    def _function(self) -> tuple[Function, ast.ClassDef | None] | None:
        """The function or method of this file that is called; `self(x)` is forward."""
        func, holder = self.call.func, self.run.holder
        if isinstance(func, ast.Name):
            if func.id == "self" and holder is not None:
                f = self.facts.classes.methods(holder).get("forward")
                return (f, holder) if f is not None else None
            scope = self.facts.scopes.scope_of(func).lookup(func.id)
            made = scope.stores.get(func.id, []) if scope is not None else []
            if len(made) == 1 and isinstance(made[0], ast.FunctionDef):
                return made[0], None
        if isinstance(func, ast.Attribute) and self._of_self(func) and holder is not None:
            f = self.facts.classes.methods(holder).get(func.attr)
            return (f, holder) if f is not None else None
        return None

    # -- torch's own operations --------------------------------------------------------------------------------

    def _operation(self, name: str, of: Value, offset: int, everything: list[Value]) -> Value:
        name = name.rstrip("_") if name not in KEEPS_SHAPE else name
        if name in SIZES or name == "randperm":
            return PLAIN
        if name in JOINS or name in ("stack", "hstack"):
            return self._joins(name, of)
        others = [v for v in everything if v.kind == "batch" and not v.order]
        if name in PAIRS or name in PRODUCTS or name == "einsum":
            return self._product(name, of, offset)
        if of.kind != "batch":
            of = self.run.joined([of, *everything])
        if of.kind != "batch":
            return of
        if name in ALWAYS_MIXES:
            return self._mixes()
        if name in KEEPS_SHAPE or name in REDUCES:
            return self._along(name, of, offset)
        if name in PARTS:
            return self._parts(name, of, offset)
        moved = self._moved(name, of, offset)
        if moved is not None:
            return moved
        if LOSS.search(name) and offset:
            separate = any(k.arg == "reduction" and _is_text(k.value, "none") for k in self.call.keywords)
            return of if separate else REDUCED
        for other in others:
            of = self.run.combine(self.call, of, other)
        return of

    def _dims(self, place: int) -> list[int] | None:
        """The numbers given for `dim`; None where none is given, or where it is no number (`torch.max(a, b)`)."""
        given = next((k.value for k in self.call.keywords if k.arg in ("dim", "dims", "axis")), None)
        if given is None and len(self.call.args) > place:
            given = self.call.args[place]
        return None if given is None else (_numbers(given) or None)

    def _along(self, name: str, of: Value, offset: int) -> Value:
        place = KEEPS_SHAPE.get(name, REDUCES.get(name, 0)) + offset
        dims = self._dims(place)
        if name in KEEPS_SHAPE:
            if name == "normalize" and dims is None:
                dims = [1]
            return self._mixes(of) if dims is not None and of.dim in dims else of
        if dims is None:
            if len(self.call.args) > place and name in ("max", "min"):
                other = self.args[place]
                return self.run.combine(self.call, of, other) if other.kind == "batch" else of
            if name in LAST_BY_DEFAULT or of.holds:
                return of
            return self._mixes() if name in NOT_ADDED_UP else REDUCED
        if of.dim in dims:
            return REDUCED if of.vector and name in ("mean", "sum") else self._mixes()
        kept = any(k.arg == "keepdim" and not _is_false(k.value) for k in self.call.keywords)
        vector = of.dim == 0 and (1 in dims or -1 in dims)
        return of if kept else replace(of, dim=of.dim - sum(0 <= d < of.dim for d in dims), vector=vector)

    def _joins(self, name: str, of: Value) -> Value:
        dims = self._dims(1) or [0]
        if of.kind != "batch":
            return of
        listed = self.call.args[0] if self.call.args else None
        if name == "stack":
            return replace(of, dim=of.dim + (0 <= dims[0] <= of.dim), holds=False)
        if name == "hstack" or dims[0] != of.dim:
            return replace(of, holds=False)
        if not isinstance(listed, ast.List | ast.Tuple) or any(isinstance(x, ast.Starred) for x in listed.elts):
            name = listed.id if isinstance(listed, ast.Name) and of.views == 1 else ""
            return replace(of, views=0, holds=False, listed=name)
        return replace(of, views=len(listed.elts) if of.views == 1 else 0, holds=False)

    def _parts(self, name: str, of: Value, offset: int) -> Value:
        dims = self._dims(PARTS[name] + offset) or [0]
        if dims[0] != of.dim:
            return replace(of, holds=True)
        if of.views == 1:
            return self._mixes(replace(of, holds=True))  # halves of a batch are other pairs than those of its parts
        return replace(of, views=1, holds=True)

    def _product(self, name: str, of: Value, offset: int) -> Value:
        operands = self.args[1:] if name == "einsum" else ([of] if not offset else []) + self.args
        tainted = [v for v in operands if v.kind == "batch"]
        if name == "einsum":
            return self._einsum(tainted, operands)
        if name in PAIRS:
            return self._mixes(tainted[0]) if len(tainted) > 1 else self.run.joined(operands)
        if name == "addmm":
            operands = operands[1:]
        if len(operands) < 2:
            return self.run.joined(operands)
        left, right = operands[0], operands[1]
        if name in ("linear", "outer", "ger", "inner", "kron", "tensordot") and len(tainted) > 1:
            return self._mixes(left)
        return left if name == "bmm" else self.run.product(self.call, left, right)

    def _einsum(self, tainted: list[Value], operands: list[Value]) -> Value:
        text = self.call.args[0].value if self.call.args and isinstance(self.call.args[0], ast.Constant) else None
        if not isinstance(text, str) or "..." in text:
            return self.run.joined(operands)
        inputs, _, output = text.replace(" ", "").partition("->")
        letters = [
            term[v.dim]
            for term, v in zip(inputs.split(","), operands, strict=False)
            if v.kind == "batch" and v.dim < len(term)
        ]
        if not letters:
            return self.run.joined(operands)
        if len(set(letters)) > 1 or (output and letters[0] not in output):
            return self._mixes(tainted[0])
        return replace(tainted[0], dim=max(output.find(letters[0]), 0))

    def _moved(self, name: str, of: Value, offset: int) -> Value | None:
        """What changes the order of the dimensions; None for all else."""
        args = [n for a in self.call.args[offset:] for n in _numbers(a)]
        if name == "t":
            return replace(of, dim=1 - of.dim) if of.dim < 2 else of
        if name in ("transpose", "swapaxes", "swapdims") and len(args) == 2:
            return replace(of, dim=args[1] if of.dim == args[0] else args[0] if of.dim == args[1] else of.dim)
        if name == "permute" and of.dim in args:
            return replace(of, dim=args.index(of.dim))
        if name == "unsqueeze" and args:
            return replace(of, dim=of.dim + (0 <= args[0] <= of.dim))
        if name == "repeat" and args and args[0] > 1 and of.dim == 0:
            return replace(of, views=args[0] if of.views == 1 else 0)
        return None


def _numbers(node: ast.expr) -> list[int]:
    """The whole numbers that an expression such as `0`, `-1` or `(0, 2)` holds; none for any other."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return []
    values = value if isinstance(value, tuple | list) else [value]
    return [v for v in values if type(v) is int]


def _is_text(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


__all__ = ["BATCH", "PLAIN", "REDUCED", "Flow", "Mixing", "Value"]
