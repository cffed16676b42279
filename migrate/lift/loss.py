"""Whether a loss is a mean or a sum over the samples of its batch: a sum is added over ranks, a mean is weighted.

What is neither is told: a mean that is weighted by classes, of some of the samples, divided by the size of the batch,
and what a root or a logarithm makes of a mean, are for a share of the batch not what they are for the whole.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable

from ..facts.arguments import argument_at, default_of, given_to
from ..facts.batch_values import BATCH, Flow
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.weighed import asked, weighs
from .counted import Counted, last_name
from .criteria import Body, Called, Criteria, is_loss_of_torch
from .held_losses import Parts
from .loss_parts import Key
from .mixes import flow_of
from .recipe import CannotLift, DataPass, Recipe

OPERATIONS: dict[str, type[ast.operator]] = {
    "mul": ast.Mult, "multiply": ast.Mult, "div": ast.Div, "divide": ast.Div, "true_divide": ast.Div,
    "add": ast.Add, "sub": ast.Sub, "subtract": ast.Sub,
}  # fmt: skip
MEANS, SUMS = ("mean", "nanmean"), ("sum", "nansum")
# what leaves one number as it is
THE_SAME = {
    "item", "detach", "float", "double", "half", "clone", "to", "cuda", "cpu", "squeeze", "unsqueeze", "view",
    "reshape", "contiguous", "requires_grad_", "neg", "negative", "type_as", "type", "scale", "nan_to_num", "flatten",
}  # fmt: skip
LISTS = {"stack", "cat", "tensor", "as_tensor", "list", "tuple", "hstack", "concat"}
# of one number these make another, which is for no share what it is for the whole
BENT = {
    "sqrt", "rsqrt", "log", "log1p", "log2", "log10", "exp", "expm1", "pow", "square", "clamp", "clip", "clamp_min",
    "clamp_max", "relu", "abs", "sigmoid", "tanh", "softplus", "reciprocal", "maximum", "minimum", "max", "min", "norm",
}  # fmt: skip
NORMS = ("norm", "vector_norm")


def loss_reduction(facts: Facts, recipe: Recipe) -> str:
    """ "mean" or "sum"; CannotLift where a loss is neither, adds a sum to a mean, or does not show what it is."""
    losses = recipe.optimization.differentiated
    shown = _kinds(facts, recipe.train, losses)
    unshown = next((loss for loss, kind in shown.items() if kind is None), None)
    if unshown is not None:
        says = f"nothing shows whether `{facts.short(unshown)}` is a mean over the samples"
        raise CannotLift(unshown, f"{says}; where it is one, `divide_batches = True` says so")
    kinds = {kind for kind in shown.values() if kind is not None}
    if len(kinds) > 1:
        raise CannotLift(losses[1], "some losses are sums over the batch, others means")
    return kinds.pop()


def _kinds(facts: Facts, train: DataPass, losses: list[ast.expr]) -> dict[ast.expr, str | None]:
    """What each loss of a step is; asked for what the step carries, and again for the step itself."""
    key = (_kinds, tuple(train.body), tuple(losses))
    if key not in facts.answers:
        step = Reduction(facts, train.body, lambda: flow_of(facts, train))
        facts.answers[key] = {loss: step.kind(loss) for loss in losses}
    kinds: dict[ast.expr, str | None] = facts.answers[key]
    return kinds


def reduction_of(facts: Facts, node: ast.expr) -> str | None:
    """The reduction of a call of a loss function; None where it has none, or is neither a mean nor a sum."""
    try:
        return Reduction(facts, [], Flow).kind(node)
    except CannotLift:
        return None


class Reduction(Parts):
    """What an expression is over the samples of the batch."""

    given: dict[str, tuple[Counted, ast.expr]]

    def __init__(self, facts: Facts, body: list[ast.stmt], follow: Callable[[], Flow]) -> None:
        super().__init__(facts, body, follow)
        self.deep = 0
        self._known: dict[ast.expr, tuple[int, str | None]] = {}  # and how deep it was when that was found
        self.criteria = Criteria(facts)

    def kind(self, e: ast.expr) -> str | None:
        """`mean`, `sum`, or None: what has no reduction (a constant, a penalty on weights), or none that shows."""
        at, found = self._known.get(e, (self.deep + 1, None))
        if at <= self.deep or self.deep > 12:
            return found
        before, self.deep = self.deep, self.deep + 1
        try:
            found = self._kind(e)
        finally:
            self.deep = before
        self._known[e] = (before, found)
        return found

    def _kind(self, e: ast.expr) -> str | None:
        if isinstance(e, ast.Name):
            return self.of_name(e)
        if self._squares_norm(e):
            return "sum"
        if isinstance(e, ast.BinOp):
            return self._combined(e, e.op, e.left, e.right)
        if isinstance(e, ast.UnaryOp):
            return self.kind(e.operand)
        if isinstance(e, ast.NamedExpr):
            return self.kind(e.value)
        if isinstance(e, ast.IfExp):
            return self.either(e, [self.kind(e.body), self.kind(e.orelse)])
        if isinstance(e, ast.Subscript):
            return self.of_element(e)
        if isinstance(e, ast.Attribute):
            return self.of_attribute(e)
        if isinstance(e, (ast.List, ast.Tuple, ast.Dict)):
            return self.either(e, [self.kind(x) for x in (e.values if isinstance(e, ast.Dict) else e.elts)])
        if isinstance(e, (ast.GeneratorExp, ast.ListComp)):
            return self.repeated(e, self.kind(e.elt), [g.iter for g in e.generators])
        return self._of_call(e) if isinstance(e, ast.Call) else None

    def either(self, node: ast.AST, kinds: list[str | None]) -> str | None:
        found = {k for k in kinds if k is not None}
        if len(found) > 1:
            raise CannotLift(node, f"`{self.facts.short(node)}` is a mean over the batch here, a sum there")
        return found.pop() if found else None

    def _bent(self, node: ast.AST) -> CannotLift:
        return CannotLift(node, f"`{self.facts.short(node)}` is for a share of the batch not what it is for the whole")

    def _of_some(self, node: ast.AST) -> CannotLift:
        return CannotLift(node, f"`{self.facts.short(node)}` is a mean over some of the samples, by their values")

    # -- names -----------------------------------------------------------------------------------------------

    def of_name(self, node: ast.Name) -> str | None:
        found: str | None = None
        seen = False
        for n, s, value, key in self.gives(node.id):
            if value is node or n.lineno > node.lineno or any(x is node for x in walk(n)):
                continue
            seen = True
            if key is not None:
                made = self.part(value, key)
                found = self.either(n, [found, made]) if n is not s and made is not None else made or found
                continue
            if isinstance(n, ast.AugAssign):
                made = self._apply(n, n.op, found, self.kind(value), None, value)
                found = self.repeated(n, made, self.loops(n, s))
            elif any(x.id == node.id for x in walk(value, ast.Name)):
                found = self.repeated(n, self.kind(value), self.loops(n, s)) or found
            else:
                made = self.kind(value)
                found = self.either(n, [found, made]) if n is not s and made is not None else made or found
        if not seen and node.id in self.given:
            giver, e = self.given[node.id]
            assert isinstance(giver, Reduction)
            return giver.kind(e)
        return found or self.appended(node.id) or self.of_each(node)

    def repeated(self, node: ast.AST, kind: str | None, through: list[ast.expr]) -> str | None:
        """What is added up in loops: over the samples themselves, the sum of their values is one over the batch."""
        if kind is None or not any(self.goes_through_samples(e) for e in through):
            return kind
        raise CannotLift(node, f"`{self.facts.short(node)}` goes through the samples one after the other")

    # -- operations ------------------------------------------------------------------------------------------

    def _combined(self, node: ast.expr, op: ast.operator, left: ast.expr, right: ast.expr) -> str | None:
        return self._apply(node, op, self.kind(left), self.kind(right), left, right)

    def _apply(
        self, node: ast.AST, op: ast.operator, a: str | None, b: str | None, left: ast.expr | None, right: ast.expr
    ) -> str | None:
        """`left op right`, of which `a` and `b` are the kinds; `left` is None for `name op= right`."""
        if a is None and b is None:
            return None
        if isinstance(op, ast.Mult):
            return self._product(node, a, b, right if a else left)
        if isinstance(op, ast.Div):
            return self._quotient(node, a, b, right)
        if isinstance(op, (ast.Add, ast.Sub)):
            if a is not None and b is not None and a != b:
                raise CannotLift(node, f"`{self.facts.short(node)}` adds a sum over the batch to a mean")
            other = right if b is None else left if a is None else None
            if "sum" in (a, b) and other is not None and self.of_weights(other):
                raise CannotLift(node, f"`{self.facts.short(node)}` adds a term of the weights to a sum over the batch")
            return a or b
        if isinstance(op, ast.MatMult):
            return None
        raise self._bent(node)

    def _product(self, node: ast.AST, a: str | None, b: str | None, other: ast.expr | None) -> str | None:
        kind = a or b
        if a is not None and b is not None:
            raise self._bent(node)
        if other is None or not self.counts(other):
            if other is not None and self.of_batch(other, values=False):
                raise self._bent(node)
            return kind
        if kind == "sum" or self.of_some(other):
            raise self._bent(node)
        return "sum"

    def _quotient(self, node: ast.AST, a: str | None, b: str | None, divisor: ast.expr) -> str | None:
        if b is not None or (a is not None and self.value(divisor).kind == "reduced"):
            raise self._bent(node)
        if a is not None and self.of_batch(divisor) and (self.of_some(divisor) or not self.counts(divisor)):
            raise self._bent(node)
        if not self.counts(divisor):
            return a
        if a == "mean":
            raise CannotLift(node, f"`{self.facts.short(node)}` divides a mean over the batch by its size")
        return "mean"

    # -- calls -----------------------------------------------------------------------------------------------

    def _of_call(self, call: ast.Call) -> str | None:
        full = self.facts.names.resolve(call.func)
        last = full.rpartition(".")[2] if full else last_name(call)
        of_tensor = full is None and isinstance(call.func, ast.Attribute)
        if full is not None and not full.startswith("torch."):
            there = self.criteria.elsewhere(call.func)
            return self.when_called(there[0], call) if there else self._passed_on(call)
        owner = call.func.value if isinstance(call.func, ast.Attribute) and full is None else None
        taken = owner if owner is not None else argument_at(call, "input", 0)
        if (full or of_tensor) and taken is not None and last in (*MEANS, *SUMS):
            return self._reduced(call, taken, last)
        if (full or of_tensor) and last in NORMS and self.body and self.value(call).kind == "reduced":
            return self._of_norm(call)
        if is_loss_of_torch(full):
            return self._of_loss(call)
        other = argument_at(call, "other", 1)
        if full and last in OPERATIONS and taken is not None and other is not None:
            return self._combined(call, OPERATIONS[last](), taken, other)
        known = self.kind(taken) if taken is not None and (full or of_tensor) and not _is_self(taken) else None
        if known is not None:
            return self._of_number(call, taken, last, known, of_tensor)  # type: ignore[arg-type]
        if full is None and isinstance(call.func, ast.Name) and self._is_builtin(call.func):
            return self._of_builtin(call)
        if full is None:
            return self._of_called(call)
        return "sum" if last in ("dot", "vdot") or _sums_up(call, last) else None

    def _reduced(self, call: ast.Call, taken: ast.expr, last: str) -> str | None:
        """`x.sum()`, `torch.mean(x)`, along dimensions or of everything."""
        known = self.kind(taken)
        if known is not None:
            return known  # of one number, or of several that were put together
        before, after = self.value(taken), self.value(call)
        along = sum(a is not taken for a in given_to(call))
        several = after.kind == "batch" and not (along == 0 and after.holds)  # a batch by one name may be one tensor
        if several or (before.kind == "plain" and self.of_weights(taken)):
            return None  # along another dimension; of the weights
        if before.kind != "batch" and along:
            return None
        if last in SUMS:
            return "sum"
        if before.picked:
            raise self._of_some(call)
        return "mean"

    def _of_norm(self, call: ast.Call) -> str:
        """`x.norm(p=1)` of everything is a sum; the others are roots of one, or the largest value."""
        if self.value(call).bent is not None:
            raise self._bent(call)
        return "sum"

    def _squares_norm(self, e: ast.expr) -> bool:
        """`x.norm() ** 2`, `x.norm().pow(2)`: what it is the root of."""
        if not self.body or not isinstance(e, (ast.BinOp, ast.Call)):
            return False
        if isinstance(e, ast.BinOp):
            squares = isinstance(e.op, ast.Pow)
            return squares and self.value(e.left).root and self.value(e).bent is None
        of = e.func.value if isinstance(e.func, ast.Attribute) and last_name(e) in ("pow", "square") else None
        taken = argument_at(e, "input", 0) if of is not None and self.facts.names.resolve(e.func) else of
        return taken is not None and self.value(taken).root and self.value(e).bent is None

    def _of_loss(self, call: ast.Call) -> str | None:
        """`F.cross_entropy(x, y, weight=w)`"""
        return self._made_by([call], call)

    def _made_by(self, calls: list[ast.Call], call: ast.Call) -> str | None:
        """A loss of torch; `calls`: what made it, and its call, which both may say how."""
        kind = asked(calls, self.criteria.constant)
        if kind is None and self._asked_elsewhere(calls):
            return None
        kind = kind or "mean"
        if kind == "none":
            return None
        if kind == "mean" and weighs(self.facts, calls, self.criteria.constant):
            raise CannotLift(call, f"`{self.facts.short(call)}` is a mean that is weighted by its targets")
        if kind == "mean" and any(self._picked(a) for a in given_to(call)):
            raise self._of_some(call)
        return kind

    def _asked_elsewhere(self, calls: list[ast.Call]) -> bool:
        """Whether a reduction is asked for that does not show: `reduction=args.reduction`, `loss.reduction = "sum"`."""
        told = {k.arg for c in calls for k in c.keywords if k.arg is not None or _spreads(self.facts, k.value)}
        asks = not told.isdisjoint({"reduction", "size_average", "reduce", None})
        return asks or any(not self.facts.classes.is_self(a.value) for a in self.facts.stores_of("reduction"))

    def _picked(self, e: ast.expr) -> bool:
        if isinstance(e, ast.Name) and e.id in self.given:
            giver, given = self.given[e.id]
            assert isinstance(giver, Reduction)
            return giver._picked(given)
        return bool(self.body) and self.value(e).picked

    def _of_number(self, call: ast.Call, taken: ast.expr, last: str, known: str, of_tensor: bool) -> str | None:
        """A method of a mean or a sum."""
        plain = last.rstrip("_")
        if plain in OPERATIONS:
            other = next((a for a in given_to(call) if a is not taken), None)
            return self._combined(call, OPERATIONS[plain](), taken, other) if other is not None else known
        if plain in BENT:
            raise self._bent(call)
        return known if plain in THE_SAME | LISTS or of_tensor else None

    def _is_builtin(self, name: ast.Name) -> bool:
        if not hasattr(builtins, name.id):  # what a star gives
            return False
        return name not in self.facts.scopes.hidden and self.facts.scopes.scope_of(name).lookup(name.id) is None

    def _of_builtin(self, call: ast.Call) -> str | None:
        name = call.func.id  # type: ignore[attr-defined]
        kinds = [self.kind(a) for a in call.args]
        if name in ("max", "min", "abs", "pow") and any(kinds):
            raise self._bent(call)
        return self.either(call, kinds) if name in ("sum", "float", "list") else None

    def _of_called(self, call: ast.Call) -> str | None:
        """A criterion, a function of this file, or what is not known."""
        if isinstance(call.func, ast.Attribute) and call.func.attr == "values" and not call.args:
            return self.kind(call.func.value)
        found = self.criteria.called(call.func)
        if found:
            return self.either(call, [self.when_called(what, call) for what in found])
        told = asked([call], self.criteria.constant)  # by the call itself: `criterion(out, y, reduction="sum")`
        return told if told in ("mean", "sum") else self._passed_on(call)

    def _passed_on(self, call: ast.Call) -> str | None:
        """What is not known gives back the loss that it is given, as `scaler.scale(loss)` does."""
        kinds = [k for a in given_to(call) if (k := self.kind(a)) is not None]
        return kinds[0] if len(kinds) == 1 else None

    def when_called(self, what: Called, call: ast.Call, key: Key | None = None) -> str | None:
        """`key`: which part of what it gives back is asked for."""
        f = what.function
        if what.there is not None:
            return self._when_called_there(what, what.there, call, key)
        if f is None:
            return self._made_by([what.made, call] if what.made is not None else [call], call)
        if self.deep > 8:
            return None
        given, known = _arguments(f, what.bound, call)
        criteria = self.criteria.within(what, known)
        if isinstance(f, ast.Lambda):
            return self._within([], Flow, given, criteria)._returned(f.body, key)
        values = {n: self.value(e) if self.body else BATCH for n, e in given.items()}
        holder = self.facts.classes.holder(f)
        inner = self._within(f.body, lambda: self.facts.mixing.flow(f, values, holder), given, criteria)
        return self.either(call, [inner._returned(e, key) for e in criteria.returned(f)])

    def _returned(self, e: ast.expr, key: Key | None) -> str | None:
        return self.kind(e) if key is None else self.part(e, key)

    def _when_called_there(self, what: Called, there: Facts, call: ast.Call, key: Key | None) -> str | None:
        """The same of another file's, told where the step calls it."""
        inner, f = Reduction(there, [], Flow), what.function
        inner.deep = self.deep + 1
        try:
            if f is None:
                return inner._made_by([what.made], what.made) if what.made is not None else None
            if self.deep > 8:
                return None
            given, known = _arguments(f, what.bound, call)
            inner.criteria = inner.criteria.within(what, known)
            inner.given = {n: (self, e) for n, e in given.items()}
            if isinstance(f, ast.Lambda):
                return inner._returned(f.body, key)
            values = {n: self.value(e) if self.body else BATCH for n, e in given.items()}
            holder = there.classes.holder(f)
            inner.body, inner.follow = f.body, lambda: there.mixing.flow(f, values, holder)
            return inner.either(call, [inner._returned(e, key) for e in inner.criteria.returned(f)])
        except CannotLift as why:
            raise CannotLift(call, f"`{self.facts.short(call)}`: in {what.file}.py {why.reason}") from None

    def _within(
        self, body: list[ast.stmt], follow: Callable[[], Flow], given: dict[str, ast.expr], criteria: Criteria
    ) -> Reduction:
        """Asked of the body of a function that is called here with these arguments."""
        inner = Reduction(self.facts, body, follow)
        inner.deep, inner.criteria = self.deep, criteria
        inner.given = {n: (self, e) for n, e in given.items()}
        return inner


def _arguments(f: Body, bound: bool, call: ast.Call) -> tuple[dict[str, ast.expr], dict[str, ast.expr]]:
    """What a call gives the parameters of a function, and those that are constants, by default too."""
    names = [a.arg for a in (*f.args.posonlyargs, *f.args.args)][bound:]
    given = dict(zip(names, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
    defaults = {} if isinstance(f, ast.Lambda) else {n: d for n in names if (d := default_of(f, n)) is not None}
    return given, {n: e for n, e in (defaults | given).items() if isinstance(e, ast.Constant)}


def _spreads(facts: Facts, spread: ast.expr) -> bool:
    """Whether what is spread over a call may ask for a reduction, or does not show what it asks for."""
    scope = facts.scopes.scope_of(spread).lookup(spread.id) if isinstance(spread, ast.Name) else None
    made = facts.devices.assigned(spread.id, scope) if isinstance(spread, ast.Name) and scope is not None else None
    given = made[0] if made and len(made) == 1 else spread
    if isinstance(given, ast.Dict):
        return not all(isinstance(k, ast.Constant) and k.value != "reduction" for k in given.keys)
    plain = isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and given.func.id == "dict"
    return not plain or any(k.arg in ("reduction", None) for k in given.keywords)  # type: ignore[attr-defined]


def _is_self(e: ast.expr) -> bool:
    return isinstance(e, ast.Name) and e.id == "self"


def _sums_up(call: ast.Call, last: str) -> bool:
    """`torch.einsum("bi,bi->", a, b)`"""
    text = call.args[0].value if last == "einsum" and call.args and isinstance(call.args[0], ast.Constant) else ""
    return isinstance(text, str) and text.replace(" ", "").endswith("->")
