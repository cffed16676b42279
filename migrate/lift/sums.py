"""What a training step's values are over the samples of its batch: a sum, a mean, or not shown to be either."""

from __future__ import annotations

import ast
from copy import copy
from functools import cached_property

from ..facts.drawn import draw_of
from ..facts.nodes import walk
from ..facts.other_files import found_there
from ..facts.script import Facts
from .as_given import AS_NUMBER, as_given
from .beside import given_beside, ifs_around, value_for
from .criteria import is_loss_of_torch
from .loss import BENT, reduction_of
from .means import Means
from .mixes import changed, flow_of
from .nodes import is_call_of, local_function, walk_here
from .reads import stored
from .recipe import DataPass, Recipe
from .same_numbers import same_numbers
from .tallies import is_tally

OF_WHOLE = ("mean", "std", "var", "median", "norm")
OPERATIONS: dict[str, ast.operator] = {"mul": ast.Mult(), "div": ast.Div(), "add": ast.Add(), "sub": ast.Sub()}
OF_ALL = ("max", "min", "amax", "amin", "std", "var", "median", "norm", "prod")
COUNTS = ("num_nodes", "num_edges")


class Sums:
    """What the values of a training step are, over the samples of its batch."""

    def __init__(self, facts: Facts, recipe: Recipe, passing: DataPass, reduction: str) -> None:
        self.facts = facts
        self.reduction = reduction
        self.loop, self.body = passing.loop, _one_block(passing.body)
        self.inside: frozenset[ast.AST] = frozenset()  # functions that are being looked into
        self.parameters: dict[str, tuple[Sums, ast.expr]] = {}  # of such a function, and what is known outside
        self.follow = lambda: flow_of(facts, passing)
        self.given = _given(self.body)
        self.draws = "next" in facts.text.text  # by hand: what is read of each name is looked through for that
        self.losses = {x.id for x in recipe.optimization.differentiated if isinstance(x, ast.Name)}
        self.own = stored(passing.body) | {n.id for n in walk(passing.target, ast.Name)}
        self.own -= {passing.index} | same_numbers(facts, passing)
        self.own |= self.refilled(self.own)
        for s in passing.body:  # `for c in range(3):` goes through the same on every rank
            for n in walk_here(s):
                if isinstance(n, ast.For) and isinstance(n.target, ast.Name) and self.alike(n.iter):
                    self.own.discard(n.target.id)

    def refilled(self, own: set[str]) -> set[str]:
        """Names of what the script made before and a step fills with its samples: `input.resize_as_(x).copy_(x)`."""
        given = (s for s in self.body if isinstance(s, ast.Expr) and any(n.id in own for n in walk(s, ast.Name)))
        return {name for s in given for name in changed(s)}

    def of_the_samples(self, node: ast.AST) -> bool:
        return any(n.id in self.own and not self.drawn_whole(n) for n in walk(node, ast.Name))

    def drawn_whole(self, name: ast.Name, deep: int = 0) -> bool:
        """Whether it is made of a batch that the step draws by hand, `x, y = next(it)`: every rank has all of that."""
        if not self.draws:
            return False
        s = given_beside(self.facts, self.body, name) or next(reversed(self._above(name)), None)
        if not isinstance(s, ast.Assign) or not isinstance(name.ctx, ast.Load) or deep > 8:
            return False
        value = value_for(s, name.id) or s.value
        read = [n for n in walk(value, ast.Name) if n.id in self.own]
        drawn = any(draw_of(c) is not None for c in walk(value, ast.Call))
        return (drawn or bool(read)) and all(self.drawn_whole(n, deep + 1) for n in read)

    def alike(self, node: ast.AST) -> bool:
        return not self.of_the_samples(node)

    def everywhere(self, statement: ast.stmt, target: ast.expr) -> bool:
        """Whether every rank adds to the same element, as often."""
        for up in self.facts.scopes.ancestors(statement):
            if up is self.loop:
                break
            decides = up.test if isinstance(up, ast.If) else up.iter if isinstance(up, ast.For) else None
            if decides is None or not self.alike(decides):
                return False
        return self.alike(target)

    def kind(self, value: ast.expr) -> str | None:
        """`sum` over samples, `mean` over them, or None: not shown to be one."""
        value = self._through(value)
        if isinstance(value, ast.Name):
            kept = value.id in self.losses and self._is_the_loss(value)
            if kept and self.reduction in ("sum", "mean"):
                return self.reduction
            return _only(self.handed(value)) or self._of_parameter(value)
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant) and not self.is_size(value):
            return self.kind(value.value)
        value = _as_operation(value)
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
            kinds = [self.kind(value.left), self.kind(value.right)]
            sized = any(self.is_size(e) or self._is_count(e) for e in (value.left, value.right))
            if "mean" in kinds and sized:
                return "sum"
            if "sum" in kinds and any(self._is_per_sample(e) for e in (value.left, value.right)):
                return "mean"
            return next((k for k, e in zip(kinds, (value.right, value.left), strict=True) if self.alike(e)), None)
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
            if self.is_size(value.right) and self.kind(value.left) == "sum":
                return "mean"
            return self.kind(value.left) if self.alike(value.right) else None
        if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
            return self._of_terms([value.left, value.right])
        if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
            return self.kind(value.operand)
        if self.is_size(value) or self._is_count(value) or self._adds_up(value):
            return "sum"
        averaged = self._averaged(value)
        if averaged is not None:
            return "mean" if self.means.is_of_samples(averaged) else self._of_mean(averaged)
        added = self._added(value)
        if added is not None and self.means.is_reduced(added):
            return self.kind(added)  # the sum of a loss is that loss, and one of means is such a mean
        return self._of_loss(value)

    def _of_parameter(self, name: ast.Name) -> str | None:
        """What a function of the script is given by a name, which it may copy first: `t = t.clone()`."""
        outer, value = self.parameters.get(name.id, (self, None))
        copied = [value_for(s, name.id) for s in self.given.get(name.id, ())]
        same = all(c is not None and ast.unparse(self._through(c)) == name.id for c in copied)
        return outer.kind(value) if value is not None and same and all(map(_only_names, self.body)) else None

    def multiplies(self, value: ast.expr) -> bool:
        """Whether a sum over the samples is multiplied with another: of shares that is not the whole batch's."""
        value = self._through(value)
        if not isinstance(value, ast.BinOp):
            return False
        if isinstance(value.op, ast.Mult) and self.kind(value.left) == self.kind(value.right) == "sum":
            return True
        return self.multiplies(value.left) or self.multiplies(value.right)

    def bends(self, value: ast.expr, deep: int = 0) -> bool:
        """Whether a mean or a sum over the samples goes through what is not straight: `math.exp(loss.item())`."""
        value = self._through(value)
        bent: list[ast.expr] = []
        if self._is_of_all(value):
            return True
        if isinstance(value, ast.Call):
            full = self.facts.names.resolve(value.func)
            own = isinstance(value.func, ast.Name) and value.func.id in BENT
            method = full is None and isinstance(value.func, ast.Attribute)
            last = (full or ast.unparse(value.func)).rpartition(".")[2]
            if last.removesuffix("_") in BENT and (
                own or method or (full or "").startswith(("torch.", "math.", "numpy."))
            ):
                bent = [*value.args, *([value.func.value] if method else [])]  # type: ignore[attr-defined]
        elif isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Pow, ast.FloorDiv, ast.Mod)):
            bent = [value.left]
        elif isinstance(value, ast.Compare):
            bent = [value.left, *value.comparators]
        if any(self.of_the_samples(e) and (self.kind(e) or self.means.is_reduced(e)) for e in bent):
            return True
        parts = (n for n in ast.iter_child_nodes(value) if isinstance(n, ast.expr))
        return deep < 8 and any(self.bends(n, deep + 1) for n in parts)

    def _is_of_all(self, value: ast.expr) -> bool:
        """`out.max()`, `torch.std(out, 0)`, `out.norm(2)`: numbers of all samples, which are no mean of the shares'."""
        if not isinstance(value, ast.Call) or value.keywords or not self.of_the_samples(value):
            return False
        full = self.facts.names.resolve(value.func)
        last = (full or ast.unparse(value.func)).rpartition(".")[2]
        method = full is None and isinstance(value.func, ast.Attribute)
        if last not in OF_ALL or not (method or (full or "").startswith(("torch.", "numpy."))):
            return False
        given = len(value.args) + method
        return given == 1 or (given == 2 and (_is_zero(value.args[-1]) or (last == "norm" and _is_constant(value))))

    def _averaged(self, value: ast.expr) -> ast.expr | None:
        """The x of `x.mean()` and `torch.mean(x)`, and of `x.mean(0)` where that is over the samples."""
        if not isinstance(value, ast.Call) or not self.of_the_samples(value):
            return None
        method = self.facts.names.resolve(value.func) not in ("torch.mean", "numpy.mean")
        if method and not (isinstance(value.func, ast.Attribute) and value.func.attr == "mean"):
            return None
        given = [value.func.value, *value.args] if method else value.args  # type: ignore[attr-defined]
        dims = [*given[1:], *(k.value for k in value.keywords if k.arg in ("dim", "axis"))]
        if not given or len(given) - 1 + len(value.keywords) != len(dims):
            return None
        by_columns = len(dims) == 1 and _is_zero(dims[0]) and self.means.is_per_sample(given[0])
        return given[0] if not dims or by_columns else None

    def _added(self, value: ast.expr) -> ast.expr | None:
        """The x of `x.sum()` and `torch.sum(x)`."""
        if not isinstance(value, ast.Call) or value.keywords or not self.of_the_samples(value):
            return None
        if self.facts.names.resolve(value.func) in ("torch.sum", "numpy.sum"):
            return value.args[0] if len(value.args) == 1 else None
        method = isinstance(value.func, ast.Attribute) and value.func.attr == "sum" and not value.args
        return value.func.value if method else None  # type: ignore[attr-defined]

    def _of_mean(self, value: ast.expr) -> str | None:
        """The mean of one number is that number."""
        return self.kind(value) if self.means.is_one_number(value) else None

    @cached_property
    def means(self) -> Means:
        return Means(self.facts, self.body, self.given, self.follow)

    def handed(self, name: ast.Name) -> list[tuple[Sums, ast.expr]]:
        """What `a, b = accuracy(out, y)` gives the name: that element, or every one where nothing shows which it is."""
        given = self._above(name)
        s = given[-1] if given else None
        if not isinstance(s, ast.Assign) or len(s.targets) != 1 or not isinstance(s.value, ast.Call):
            return []
        target = s.targets[0]
        names = [getattr(t, "id", "") for t in target.elts] if isinstance(target, (ast.Tuple, ast.List)) else []
        if names.count(name.id) != 1:
            return []
        found = self.entered(s.value)
        return [found[names.index(name.id)]] if len(found) == len(names) else found

    def entered(self, call: ast.Call) -> list[tuple[Sums, ast.expr]]:
        """What a function of the project returns, in the one place where it does: each element of a list or a tuple."""
        inner, value = self.enter(call) or (self, None)
        if isinstance(value, (ast.Tuple, ast.List)):
            return [(inner, e) for e in value.elts]
        if isinstance(value, ast.ListComp):
            plain = len(value.generators) == 1 and inner.alike(value.generators[0].iter)
            return [(inner, value.elt)] if plain else []
        filled = inner.filled(value) if isinstance(value, ast.Name) else None
        return filled if filled is not None else [(inner, value)] if value is not None else []

    def filled(self, name: ast.Name) -> list[tuple[Sums, ast.expr]] | None:
        """What `found = []` gets by `found.append(e)` in a loop that is alike on every rank; None: no such list."""
        given = self.given.get(name.id, [])
        if len(given) != 1 or not isinstance(given[0], ast.Assign) or ast.unparse(given[0].value) != "[]":
            return None
        found: list[tuple[Sums, ast.expr]] = []
        for s in self.body:
            if isinstance(s, ast.For) and self.alike(s.iter):
                inner = copy(self)
                inner.__dict__.pop("means", None)
                at = self.body.index(s)
                inner.body = [*self.body[:at], *_one_block(s.body), *self.body[at + 1 :]]
                inner.given = _given(inner.body)
                inner.own = inner.own - {n.id for n in walk(s.target, ast.Name)}
                calls = [n for x in s.body for n in walk_here(x) if is_call_of(n, "append")]
                found += [(inner, n.args[0]) for n in calls if ast.unparse(n.func.value) == name.id]  # type: ignore[attr-defined]
        appends = [n for s in self.body for n in walk_here(s) if is_call_of(n, "append")]
        return found if len(found) == len(appends) else []

    def enter(self, call: ast.Call) -> tuple[Sums, ast.expr] | None:
        """What a function of the project returns, in the one place where it does, and what is known there."""
        inner, returned = self._into(call)
        if inner is None or len(returned) != 1 or returned[0] is not inner.body[-1] or returned[0].value is None:
            return None
        return inner, returned[0].value

    def _called(self, call: ast.Call) -> tuple[Facts, ast.FunctionDef | None]:
        """The function that a call runs, of this file or of another, and what is known of its file."""
        f = local_function(self.facts, call.func) if isinstance(call.func, ast.Name) else None
        found = found_there(self.facts, call.func) if f is None and self.facts.others else None
        if found is not None and isinstance(found[2], ast.FunctionDef):
            return found[1], found[2]
        return self.facts, f

    def _into(self, call: ast.Call) -> tuple[Sums | None, list[ast.Return]]:
        """What is known within a function that is called, and where it returns."""
        there, f = self._called(call)
        spread = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
        if f is None or f in self.inside or spread or f.args.vararg or f.args.kwarg:
            return None, []
        names = [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
        given = {**dict(zip(names, call.args, strict=False)), **{k.arg: k.value for k in call.keywords if k.arg}}
        inner = copy(self)
        inner.__dict__.pop("means", None)
        inner.facts, inner.inside, inner.losses, inner.body = there, self.inside | {f}, set(), _one_block(f.body)
        inner.own = {name for name, e in given.items() if self.of_the_samples(e)} | stored(f.body)
        inner.given, inner.parameters = _given(inner.body), {name: (self, e) for name, e in given.items()}
        values = {name: self.means.value(e)[0] for name, e in given.items()}
        inner.follow = lambda: there.mixing.flow(f, values, None)
        return inner, [n for n in walk_here(f) if isinstance(n, ast.Return)]

    def _gives_size(self, call: ast.Call) -> bool:
        """`def count(data): return data.num_graphs if hasattr(data, "num_graphs") else data.x.size(0)`, in any form."""
        inner, returned = self._into(call)
        if inner is None or not returned or any(r.value is None for r in returned):
            return False
        given = [r.value for r in returned]
        parts = [x for v in given for x in ([v.body, v.orelse] if isinstance(v, ast.IfExp) else [v])]
        return all(inner.is_size(x) for x in parts if x is not None)

    def _of_loss(self, value: ast.expr) -> str | None:
        """The value of a loss function, whether or not it is what the step differentiates."""
        if not isinstance(value, ast.Call) or not self.of_the_samples(value):
            return None
        asked = [k.value for k in value.keywords if k.arg == "reduction"]
        if self._called(value)[1] is not None:
            return _only(self.entered(value))
        known = isinstance(value.func, ast.Name) and self.facts.names.resolve(value.func) is None
        full = self.facts.names.resolve(value.func) or ""
        if not (known or is_loss_of_torch(full)) or any(
            not isinstance(a, ast.Constant) or a.value not in ("mean", "sum") for a in asked
        ):
            return None
        return reduction_of(self.facts, value)

    def _of_terms(self, terms: list[ast.expr]) -> str | None:
        """Sums of sums are sums; a mean stays one whatever is added that is the same on every rank."""
        kinds = {self.kind(e) for e in terms if not self.alike(e)}
        added = any(self.alike(e) for e in terms)
        return kinds.pop() if len(kinds) == 1 and not (added and "sum" in kinds) else None

    def _is_per_sample(self, value: ast.expr) -> bool:
        """`100.0 / len(y)`"""
        value = self._through(value)
        divides = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div)
        return divides and self.alike(value.left) and self.is_size(value.right)  # type: ignore[attr-defined]

    def _is_the_loss(self, read: ast.Name) -> bool:
        """Whether the name is given nothing after what it holds was differentiated, and before it is read."""
        if self._given_after(read) is not None:
            return False
        last, around = self._differentiated(read.id), ifs_around(self.facts, read)
        made = [s for s in self.given.get(read.id, []) if s not in around]
        at = (read.lineno, read.col_offset)
        if at > last:  # what gives it another value below the read is not there yet
            made = [s for s in made if (s.lineno, s.col_offset) < at]
        return all((s.lineno, s.col_offset) < last or _steps(s) or _is_the_same(s, read.id) for s in made)

    def _differentiated(self, name: str) -> tuple[int, int]:
        """Where that is done, the last time."""
        calls = [n for s in self.body for n in walk(s, ast.Call) if is_call_of(n, "backward")]
        of_it = (n for n in calls if any(x.id == name for x in walk(n, ast.Name)))
        return max(((n.lineno, n.col_offset) for n in of_it), default=(0, 0))

    def _given_after(self, loss: ast.Name) -> ast.stmt | None:
        """What gives a loss another value beside its read, once it was differentiated."""
        s = given_beside(self.facts, self.body, loss)
        return s if s is not None and (s.lineno, s.col_offset) > self._differentiated(loss.id) else None

    def _through(self, value: ast.expr) -> ast.expr:
        """What a name of the step was given, without `.item()` and its like."""
        while True:
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                if value.func.attr not in AS_NUMBER or value.args or value.keywords:
                    return value
                value = value.func.value
            elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("int", "float"):
                if len(value.args) != 1:
                    return value
                value = value.args[0]
            elif isinstance(value, ast.Call) and (given := as_given(self.facts, value)) is not None:
                value = given
            elif isinstance(value, ast.Attribute) and value.attr == "data":
                value = value.value
            elif isinstance(value, ast.Name) and (made := self._given(value)) is not None:
                value = made
            else:
                return value

    def _given(self, name: ast.Name) -> ast.expr | None:
        """What a name stands for; a loss is one by what it is differentiated for."""
        if name.id not in self.losses:
            return self.made(name)
        s = self._given_after(name)
        return value_for(s, name.id) if s is not None else None

    def made(self, name: ast.Name) -> ast.expr | None:
        """The value that the step has given a name where it is read; None where there is no one such."""
        if (s := given_beside(self.facts, self.body, name)) is not None:
            return value_for(s, name.id)
        made = self._above(name)
        only = made[-1] if made else None
        value = value_for(only, name.id) if only is not None else None
        if value is None or only is None or any(n.id in stored([only]) for n in walk(value, ast.Name)):
            return None
        return value

    def _above(self, name: ast.Name) -> list[ast.stmt]:
        """The statements of the step that give the name a value before it is read; all where it is read further on."""
        made = self.given.get(name.id, [])
        if len(made) < 2:
            return made
        ups = {name, *self.facts.scopes.ancestors(name)} if name in self.facts.scopes.parents else set()
        at = next((i for i, s in enumerate(self.body) if s in ups), None)
        if at is None or (self.body[at] in made and self.body[at] not in ifs_around(self.facts, name)):
            return []
        return [s for s in made if self.body.index(s) < at]

    def is_size(self, value: ast.expr) -> bool:
        """`len(x)`, `x.size(0)`, `x.shape[0]`, `x.size()[0]`, `x.numel()`, `x.num_graphs` of something of the step."""
        value = self._through(value)
        if not self.of_the_samples(value):
            return False
        if isinstance(value, ast.Attribute):
            return value.attr == "num_graphs"  # torch_geometric.data.Batch
        if isinstance(value, ast.Subscript):
            of, sized = value.value, is_call_of(value.value, "size") and not value.value.args  # type: ignore[attr-defined]
            return (sized or (isinstance(of, ast.Attribute) and of.attr == "shape")) and _is_zero(value.slice)
        if not isinstance(value, ast.Call):
            return False
        if isinstance(value.func, ast.Name):
            return value.func.id == "len" or self._gives_size(value)
        if not isinstance(value.func, ast.Attribute):
            return False
        first = value.func.attr == "size" and len(value.args) == 1 and _is_zero(value.args[0])
        return first or (value.func.attr in ("numel", "nelement") and not value.args)

    def _is_count(self, value: ast.expr) -> bool:
        """`data.num_nodes` of torch_geometric: how much the samples have in them, all together."""
        value = self._through(value)
        return isinstance(value, ast.Attribute) and value.attr in COUNTS and self.of_the_samples(value)

    def _adds_up(self, value: ast.expr) -> bool:
        """`(...).sum()`, a loss function that is told to sum, and what counts the samples by their values."""
        if not isinstance(value, ast.Call) or not self.of_the_samples(value):
            return False
        told = any(
            k.arg == "reduction" and isinstance(k.value, ast.Constant) and k.value.value == "sum"
            for k in value.keywords
        )
        if told or is_tally(self.facts, value):
            return True
        if isinstance(value.func, ast.Attribute) and value.func.attr in ("sum", "count_nonzero"):
            if not self._over_samples(value):
                return False
            inner = (value.func.value, *value.args)
            of_all = any(self.of_the_samples(e) for e in inner) and not _averages(inner)
            return of_all and not self.means.is_of_places(value) and not any(map(self.means.is_reduced, inner))
        return False

    def _over_samples(self, call: ast.Call) -> bool:
        """`x.sum()`, `x.sum(0)`, `torch.sum(x)`: not over other dimensions, which leaves a value a sample."""
        dims = call.args[1:] if self.facts.names.resolve(call.func) is not None else call.args
        dims = [*dims, *(k.value for k in call.keywords if k.arg in ("dim", "axis"))]
        return all(_is_zero(d) for d in dims)


def _steps(s: ast.stmt) -> bool:
    """`loss = optimizer.step(closure)`: what the closure gave."""
    return isinstance(s, ast.Assign) and is_call_of(s.value, "step")


def _is_the_same(s: ast.stmt, name: str) -> bool:
    """`loss = loss.float()`, `loss = loss.detach().cpu()`"""
    value = (
        s.value if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name) else None
    )
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in AS_NUMBER:
        value = None if value.args or value.keywords else value.func.value
    return isinstance(value, ast.Name) and value.id == name


def _only(values: list[tuple[Sums, ast.expr]]) -> str | None:
    """What all values are."""
    kinds = {sums.kind(e) for sums, e in values}
    return kinds.pop() if len(kinds) == 1 else None


def _as_operation(value: ast.expr) -> ast.expr:
    """`x.mul_(2)` as `x * 2`, `x.div(2)` as `x / 2`."""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and len(value.args) == 1):
        return value
    op = OPERATIONS.get(value.func.attr.removesuffix("_")) if not value.keywords else None
    return ast.BinOp(value.func.value, op, value.args[0]) if op is not None else value


def _only_names(s: ast.stmt) -> bool:
    """Whether a statement gives values to names or back, and changes none in place."""
    if any(isinstance(c.func, ast.Attribute) and c.func.attr.endswith("_") for c in walk(s, ast.Call)):
        return False
    named = isinstance(s, ast.Assign) and all(isinstance(t, ast.Name) for t in s.targets)
    return named or isinstance(s, ast.Return) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))


def _one_block(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a block, those within a `with` in its place: they run as often."""
    return [x for s in body for x in (_one_block(s.body) if isinstance(s, ast.With) else [s])]


def _given(body: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """The statements of a block that give each name a value."""
    found: dict[str, list[ast.stmt]] = {}
    for s in body:
        for name in stored([s]):
            found.setdefault(name, []).append(s)
    return found


def _averages(nodes: tuple[ast.expr, ...]) -> bool:
    """Whether a mean of the batch stands within."""
    return any(isinstance(n, ast.Attribute) and n.attr in OF_WHOLE for node in nodes for n in walk(node))


def _is_constant(call: ast.Call) -> bool:
    return isinstance(call.args[-1], ast.Constant)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0
