"""What the numbers of a step are about: the samples of its batch, their count, or the weights."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property

from ..facts.arguments import given_to
from ..facts.batch_values import Flow, Value
from ..facts.nodes import walk
from ..facts.script import Facts
from .listed_by_networks import is_listed
from .means import Means
from .nodes import walk_here

SIZES = {"numel", "nelement"}
# what makes a number of a number, which counts what that counts
NUMBERS = {"float", "int", "round", "abs", "max", "min"}
TENSORS = {
    "tensor", "as_tensor", "scalar_tensor", "full", "new_tensor", "new_full", "FloatTensor", "LongTensor", "Tensor",
    "DoubleTensor", "float32", "float64", "array", "asarray", "from_numpy",
}  # fmt: skip
KEPT = {
    "to", "cuda", "cpu", "item", "detach", "clone", "float", "double", "half", "long", "int", "type", "type_as",
    "clamp", "clamp_", "clamp_min", "clamp_min_", "clip", "squeeze", "unsqueeze", "view", "reshape", "expand", "tolist",
}  # fmt: skip
# how many of the samples these find goes by their values
FINDS = {"nonzero", "unique", "argwhere", "masked_select", "unique_consecutive", "where", "set"}
PARTS_OF_SHAPES = ("shape", "size", "dim", "ndim", "dtype", "device")
OF_DICTIONARIES = ("values", "items", "keys")
THROUGH = ("range", "enumerate", "zip", "list")
OF_WEIGHTS = ("parameters", "named_parameters", "weight", "bias")


class Counted:
    """Asked of expressions of a step, or of a function that it calls; `given`: its parameters, and who gives them."""

    def __init__(self, facts: Facts, body: list[ast.stmt], follow: Callable[[], Flow]) -> None:
        self.facts, self.body, self.follow = facts, body, follow
        self.given: dict[str, tuple[Counted, ast.expr]] = {}
        self._of_weights: dict[tuple[ast.expr, int], bool] = {}

    @cached_property
    def means(self) -> Means:
        return Means(self.facts, self.body, {}, self.follow)

    def value(self, e: ast.expr) -> Value:
        """What an expression is of the batch."""
        return self.means.value(e)[0]

    def counts(self, e: ast.expr, depth: int = 0) -> bool:
        """Whether a number counts the samples of the batch: `len(x)`, `x.size(0)`, `b` of `b, c = x.shape`."""
        if depth > 6:
            return False
        if isinstance(e, ast.Name):
            return self._name_counts(e, depth)
        if isinstance(e, ast.BinOp):
            return self.counts(e.left, depth + 1) or self.counts(e.right, depth + 1)
        if isinstance(e, ast.Subscript):
            shape = isinstance(e.value, ast.Attribute) and e.value.attr == "shape"
            shape = shape or (isinstance(e.value, ast.Call) and last_name(e.value) == "size" and not e.value.args)
            first = isinstance(e.slice, ast.Constant) and e.slice.value == 0
            return (shape and first and not self.of_weights(e)) or self._whole_shape(e.value, depth)
        if isinstance(e, (ast.List, ast.Tuple)):
            return any(self.counts(x, depth + 1) for x in e.elts)
        return isinstance(e, ast.Call) and self._call_counts(e, depth)

    def _whole_shape(self, e: ast.expr, depth: int) -> bool:
        """An element of a list that holds how many samples there are: `torch.tensor([len(x)])[0]`."""
        return isinstance(e, ast.Call) and self._call_counts(e, depth + 1)

    def _call_counts(self, e: ast.Call, depth: int) -> bool:
        given = given_to(e)
        last = last_name(e)
        if last == "prod" and any(_is_shape(a) and not self.of_weights(a) for a in given):
            return True
        if last in TENSORS or (last in KEPT and self.facts.names.resolve(e.func) is not None):
            return any(self.counts(a, depth + 1) for a in given)
        if last in KEPT and isinstance(e.func, ast.Attribute):
            return self.counts(e.func.value, depth + 1)
        if isinstance(e.func, ast.Name):
            known = e.func.id in NUMBERS and any(self.counts(a, depth + 1) for a in e.args)
            of = e.args[0] if e.args else None
            return known or (e.func.id == "len" and not (of is not None and (self._is_alike(of) or self._lists(of))))
        first = (
            last_name(e) == "size" and len(e.args) == 1 and isinstance(e.args[0], ast.Constant) and e.args[0].value == 0
        )
        return (first or last_name(e) in SIZES) and not self.of_weights(e)

    def of_batch(self, e: ast.expr, values: bool = True, depth: int = 0) -> bool:
        """Whether a number is made of the batch in any way, so that a share of the batch may have another.

        `values`: of its values, too, and not of how many samples there are alone.
        """
        if depth > 6:
            return False
        if isinstance(e, ast.Attribute) and e.attr in PARTS_OF_SHAPES:
            return False
        if isinstance(e, ast.Call) and last_name(e) in PARTS_OF_SHAPES:
            return self.counts(e)
        if isinstance(e, ast.Call) and getattr(e.func, "id", "") == "len" and e.args and self._lists(e.args[0]):
            return False
        if self.counts(e) or (values and self.body and self.value(e).kind != "plain"):
            return True
        if isinstance(e, ast.Name):
            made = [value for n, _, value in self.stored.get(e.id, ()) if n.lineno <= e.lineno and value is not e]
            giver = self.given.get(e.id)
            return any(self.of_batch(v, values, depth + 1) for v in made) or (
                giver is not None and giver[0].of_batch(giver[1], values, depth + 1)
            )
        parts = [n.iter if isinstance(n, ast.comprehension) else n for n in ast.iter_child_nodes(e)]
        return any(self.of_batch(n, values, depth + 1) for n in parts if isinstance(n, ast.expr))

    def of_some(self, e: ast.expr, depth: int = 0) -> bool:
        """Whether a number counts some of the samples, by their values: `len(y.nonzero())`, `x[y > 0].size(0)`."""
        if depth > 6:
            return False
        for n in walk(e):
            if isinstance(n, ast.Call) and last_name(n) in FINDS:
                return True
            if isinstance(n, ast.comprehension) and n.ifs:
                return True
            if isinstance(n, ast.expr) and self.body and self.value(n).picked:
                return True
            if isinstance(n, ast.Name):
                made = [value for s, _, value in self.stored.get(n.id, ()) if s.lineno < n.lineno]
                if any(self.of_some(v, depth + 1) for v in made):
                    return True
        return False

    def _is_alike(self, e: ast.expr) -> bool:
        """What is as long on every rank: a list of heads, a loader."""
        known = self.body and self.value(e).kind == "plain"
        return bool(known) and not (isinstance(e, ast.Name) and e.id in self.given)

    def _lists(self, e: ast.expr) -> bool:
        """A list as it is written out, of what a network gave for the whole batch: `[net(x), net(x.flip(1))]`."""
        if isinstance(e, ast.Name) and e.id in self.given and e.id not in self.stored:
            giver, given = self.given[e.id]
            return giver._lists(given)
        if isinstance(e, ast.Name) and self._of_network(e.id):
            return True
        made = [v for _, _, v in self.stored.get(e.id, ())] if isinstance(e, ast.Name) else [e]
        owners = (n.value for n, _ in self.nodes() if isinstance(n, ast.Attribute))
        if isinstance(e, ast.Name) and any(isinstance(o, ast.Name) and o.id == e.id for o in owners):
            return False  # one that is filled
        return bool(made) and all(map(_is_written_out, made))

    def _of_network(self, name: str) -> bool:
        """The `attention` of `out, attention = model(x)`, where that is a list: one of a layer each."""
        given = [(n, t) for n, _ in self._assignments if isinstance(n, ast.Assign) for t in n.targets]
        places: list[tuple[ast.expr, int | None]] = [(n.value, None) for n, t in given if getattr(t, "id", "") == name]
        for n, t in given:
            parts = t.elts if isinstance(t, (ast.Tuple, ast.List)) else []
            places += [(n.value, i) for i, p in enumerate(parts) if getattr(p, "id", "") == name]
        return bool(places) and all(isinstance(v, ast.Call) and is_listed(self.facts, v, i) for v, i in places)

    def _name_counts(self, name: ast.Name, depth: int) -> bool:
        for n, _ in self._assignments:
            if not isinstance(n, ast.Assign) or n.lineno > name.lineno:
                continue
            value = stored_value(n, name.id)
            if value is not None and value is not name and self.counts(value, depth + 1):
                return True
            if any(_first_of(t, name.id) for t in n.targets) and _is_shape(n.value):
                return True
        giver = self.given.get(name.id)
        return giver is not None and giver[0].counts(giver[1], depth + 1)

    def of_weights(self, e: ast.expr, depth: int = 0) -> bool:
        """Whether an expression is of the weights, or of what the step made of them: `for p in net.parameters()`."""
        if (e, depth) not in self._of_weights:
            self._of_weights[e, depth] = self._is_of_weights(e, depth)
        return self._of_weights[e, depth]

    def _is_of_weights(self, e: ast.expr, depth: int) -> bool:
        if self.body and self.value(e).kind == "batch":
            return False
        if any(n.attr in OF_WEIGHTS for n in walk(e, ast.Attribute)):
            return True
        own = [n for n in walk(e, ast.Attribute) if self.facts.classes.is_self(n.value)]
        if own and all(map(self._is_parameter, own)):
            return True
        names = {n.id for n in walk(e, ast.Name)}
        return bool(names) and depth < 4 and any(self.of_weights(m, depth + 1) for m in self._makers(e, names))

    def _is_parameter(self, attribute: ast.Attribute) -> bool:
        """`self.scale` of `self.scale = nn.Parameter(torch.ones(1))`, and of nothing else."""
        values = self.facts.devices.attribute_values.get(attribute.attr, [])
        return bool(values) and all(isinstance(v, ast.Call) and self._makes_parameter(v) for v in values)

    def _makes_parameter(self, call: ast.Call) -> bool:
        return self.facts.names.resolve(call.func) in ("torch.nn.Parameter", "torch.nn.parameter.Parameter")

    def _makers(self, e: ast.expr, names: set[str]) -> Iterator[ast.expr]:
        """What an expression's names are given: by statements, by loops, by the comprehension that it stands in."""
        for n, given, value in self._given_names:
            if names.isdisjoint(given):
                continue
            if isinstance(n, (ast.Assign, ast.AugAssign)) and any(x is e for x in walk(n)):
                continue  # what it is made of, and not what it was before
            yield value

    def nodes(self) -> Iterator[tuple[ast.AST, ast.stmt]]:
        """The nodes of the body, each with the statement of the body that it stands in."""
        for s in self.body:
            for n in walk_here(s):
                yield n, s

    @cached_property
    def _assignments(self) -> list[tuple[ast.Assign | ast.AugAssign, ast.stmt]]:
        """The assignments of the body, each with the statement of the body that it stands in."""
        return [(n, s) for n, s in self.nodes() if isinstance(n, (ast.Assign, ast.AugAssign))]

    @cached_property
    def stored(self) -> dict[str, list[tuple[ast.Assign | ast.AugAssign, ast.stmt, ast.expr]]]:
        """By name: the assignments that give it a value, the statements that these stand in, and the values."""
        found: dict[str, list[tuple[ast.Assign | ast.AugAssign, ast.stmt, ast.expr]]] = {}
        for n, s in self._assignments:
            targets = n.targets if isinstance(n, ast.Assign) else [n.target]
            parts = [p for t in targets for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
            for name in dict.fromkeys(p.id for p in parts if isinstance(p, ast.Name)):
                if (value := stored_value(n, name)) is not None:
                    found.setdefault(name, []).append((n, s, value))
        return found

    @cached_property
    def _given_names(self) -> list[tuple[ast.AST, set[str], ast.expr]]:
        """What gives names values: the names, and what the values are made of."""
        found: list[tuple[ast.AST, set[str], ast.expr]] = []
        for n in (n for s in self.body for n in walk_here(s)):
            if isinstance(n, (ast.Assign, ast.AugAssign, ast.For, ast.comprehension)):
                targets = n.targets if isinstance(n, ast.Assign) else [n.target]
                names = {t.id for target in targets for t in walk(target, ast.Name)}
                found.append((n, names, n.iter if isinstance(n, (ast.For, ast.comprehension)) else n.value))
        return found

    def loops(self, node: ast.AST, top: ast.stmt) -> list[ast.expr]:
        """What the loops around a statement go through, up to the statement of the body."""
        found = []
        for up in (node, *self.facts.scopes.ancestors(node)):
            if isinstance(up, ast.For):
                found.append(up.iter)
            if up is top:
                break
        return found

    def goes_through_samples(self, e: ast.expr) -> bool:
        if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id in THROUGH:
            return any(self.counts(a) or self.goes_through_samples(a) for a in e.args)
        if isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in OF_DICTIONARIES:
            return False
        value = self.value(e)
        return value.kind == "batch" and not value.holds


def _is_written_out(value: ast.expr) -> bool:
    parts = value.elts if isinstance(value, (ast.List, ast.Tuple)) else []
    return bool(parts) and not any(isinstance(p, ast.Starred) for p in parts)


def stored_value(n: ast.AST, name: str) -> ast.expr | None:
    """What a statement gives a name: also in `loss, n = f(x), len(x)`."""
    if isinstance(n, ast.AugAssign):
        return n.value if isinstance(n.target, ast.Name) and n.target.id == name else None
    if not isinstance(n, ast.Assign):
        return None
    for t in n.targets:
        if isinstance(t, ast.Name) and t.id == name:
            return n.value
        if isinstance(t, ast.Tuple) and isinstance(n.value, ast.Tuple) and len(t.elts) == len(n.value.elts):
            for part, value in zip(t.elts, n.value.elts, strict=True):
                if isinstance(part, ast.Name) and part.id == name:
                    return value
    return None


def _first_of(target: ast.expr, name: str) -> bool:
    return (
        isinstance(target, (ast.Tuple, ast.List)) and isinstance(target.elts[0], ast.Name) and target.elts[0].id == name
    )


def _is_shape(e: ast.expr) -> bool:
    return (isinstance(e, ast.Attribute) and e.attr == "shape") or (isinstance(e, ast.Call) and last_name(e) == "size")


def last_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
