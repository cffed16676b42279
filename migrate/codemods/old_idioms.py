"""T11: what torch has another word for today: Variable, volatile, `.data[0]`, size_average and reduce.

`Variable(x)` of a tensor with a graph is `x.detach()` today, whatever it was when it was written, and stays that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ..facts.arguments import argument_at, default_of, entry
from ..facts.dimensions import has_dimensions
from ..facts.nodes import walk
from ..facts.operands import ATOM, closed
from ..facts.plain import VARIABLE, is_bare_variable, is_new
from ..facts.script import Facts
from ..facts.spelled import spelled
from ..report import Note
from .argument_rewrites import change_call
from .base import Change, Codemod
from .in_strings import InStrings
from .rewrites import source, take_argument, with_parentheses

SCALAR_NAME = re.compile(r"loss|err|cost|(^|_)(acc|accuracy|norm|kl|nll|correct|total)")
REDUCES = {"sum", "mean", "norm", "item", "max", "min"}
MOVES = {"cpu", "cuda", "detach", "float", "double", "exp", "log", "sqrt", "abs"}
ONE_BY_ONE = {f"torch.{name}" for name in ("exp", "log", "sqrt", "abs", "neg", "sigmoid", "log2", "exp2", "square")}
COPIES = {"cpu", "numpy", "detach"}
GIVES_LOSS = re.compile(r"loss$|cross_entropy|criterion|(^|_)crit($|_)|_loss_?f(n|unc)")
# losses and their parameters by place
LOSSES = {
    "CrossEntropyLoss NLLLoss NLLLoss2d cross_entropy nll_loss": ("weight", "size_average", "ignore_index", "reduce"),
    "BCELoss BCEWithLogitsLoss binary_cross_entropy binary_cross_entropy_with_logits": (
        "weight",
        "size_average",
        "reduce",
    ),
    "MSELoss L1Loss SmoothL1Loss KLDivLoss mse_loss l1_loss smooth_l1_loss kl_div SoftMarginLoss soft_margin_loss "
    "MultiLabelMarginLoss multilabel_margin_loss": ("size_average", "reduce"),
    "MultiLabelSoftMarginLoss multilabel_soft_margin_loss": ("weight", "size_average", "reduce"),
    "HingeEmbeddingLoss hinge_embedding_loss MarginRankingLoss margin_ranking_loss CosineEmbeddingLoss "
    "cosine_embedding_loss": ("margin", "size_average", "reduce"),
    "PoissonNLLLoss poisson_nll_loss": ("log_input", "full", "size_average", "eps", "reduce"),
    "MultiMarginLoss multi_margin_loss": ("p", "margin", "weight", "size_average", "reduce"),
    "TripletMarginLoss triplet_margin_loss": ("margin", "p", "eps", "swap", "size_average", "reduce"),
}
OF_THREE = dict.fromkeys(("margin_ranking_loss", "cosine_embedding_loss"), ("input1", "input2", "target"))
OF_THREE["triplet_margin_loss"] = ("anchor", "positive", "negative")
REDUCTION = {(True, True): "mean", (False, True): "sum", (True, False): "none", (False, False): "none"}


class RemoveVariables(Codemod):
    code = "PTM601"
    name = "remove-variables"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        gone: set[ast.AST] = set()
        yield from self._types(facts)
        for a in facts.walk(ast.Attribute):
            if a.attr == "volatile" and not facts.devices.own_movers.kinds(a.value):  # an object of the script's own
                line, column, _, _ = facts.text.key(a)
                says = f"`{facts.short(a)}`: volatile does nothing since torch 0.4; `with torch.no_grad():` does it"
                self.left.append(Note(line, column + 1, self.code, says))
        if VARIABLE not in facts.called:
            return
        for call in facts.called[VARIABLE]:
            self._tell_volatile(facts, call)
        for s in facts.walk(ast.Assign):
            if self._only_itself(facts, s):
                gone.update(walk(s))
                says = f"`{facts.short(s)}` removed: a tensor is its own Variable"
                yield Change(s, self.edit(facts, s, says), None, (s,))
        for call in facts.walk(ast.Call):
            if call in gone or facts.names.resolve(call.func) != VARIABLE or facts.is_fixed(call):
                continue
            if len(call.args) < 3 and not any(isinstance(a, ast.Starred) for a in call.args):
                yield from self._call(facts, call)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _types(self, facts: Facts) -> Iterator[Change]:
        """`type(h) == Variable`, which no tensor's type is since torch 0.4."""
        for test in facts.walk(ast.Compare):
            left, right, op = test.left, test.comparators[0], test.ops[0]
            asked = isinstance(left, ast.Call) and _is_type_of(facts, left) and len(test.ops) == 1
            if not asked or facts.names.resolve(right) != VARIABLE or facts.is_fixed(test):
                continue
            if isinstance(op, (ast.Eq, ast.Is, ast.NotEq, ast.IsNot)):
                no = "not " if isinstance(op, (ast.NotEq, ast.IsNot)) else ""
                new = f"{no}isinstance({facts.text.get(left.args[0])}, {facts.text.get(right)})"  # type: ignore[attr-defined]
                says = f"`{facts.short(test)}` became `{new}`: a tensor is its own Variable, of another type"
                yield Change(test, self.edit(facts, test, says), source(new), (left.func, *test.ops))  # type: ignore[attr-defined]

    def _tell_volatile(self, facts: Facts, call: ast.Call) -> None:
        """What volatile= once did: no graph behind what is computed from it."""
        wanted = next((k.value for k in call.keywords if k.arg == "volatile"), None)
        if wanted is not None and not (isinstance(wanted, ast.Constant) and wanted.value in (False, None)):
            line, column, _, _ = facts.text.key(call)
            says = f"`{facts.short(call)}`: volatile= does nothing since torch 0.4; `with torch.no_grad():` does it"
            self.left.append(Note(line, column + 1, self.code, says))

    def _call(self, facts: Facts, call: ast.Call) -> Iterator[Change]:
        says = f"`{facts.short(call)}`: a tensor is its own Variable"
        parts = (call.func, *call.keywords)
        if is_bare_variable(facts, call):
            yield Change(call, self.edit(facts, call, says), take_argument(0), parts)
            return
        wants = argument_at(call, "requires_grad", 1)
        of = next((i for i, k in enumerate(call.keywords) if k.arg == "data"), None)
        place = 0 if call.args else of
        if place is None or any(k.arg not in ("data", "volatile", "requires_grad") for k in call.keywords):
            return
        parts = (call.func, *call.args[1:], *(k for i, k in enumerate(call.keywords) if call.args or i != of))
        keeps = is_new(facts, call.args[0] if call.args else call.keywords[place].value)
        again = tuple(walk(wants)) if wants is not None else ()
        yield Change(call, self.edit(facts, call, says), _detached(place, facts, wants, keeps), parts, reads=again)

    def _only_itself(self, facts: Facts, s: ast.Assign) -> bool:
        """`x = Variable(x)`, `x, y = Variable(x), Variable(y)`."""
        if len(s.targets) != 1:
            return False
        target, value = s.targets[0], s.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        return all(
            isinstance(v, ast.Call) and is_bare_variable(facts, v) and spelled(v.args[0]) == spelled(t)
            for t, v in pairs
        )


def _is_type_of(facts: Facts, call: ast.Call) -> bool:
    f = call.func
    plain = isinstance(f, ast.Name) and f.id == "type" and facts.scopes.scope_of(f).lookup("type") is None
    return plain and len(call.args) == 1 and not call.keywords


class DataZero(Codemod):
    code = "PTM604"
    name = "data-zero"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        strings = InStrings(facts, self)
        for sub in facts.walk(ast.Subscript):
            if not self._reads_scalar(facts, sub):
                continue
            owner = _owner(sub.value)
            if facts.in_formatted_string(sub):
                strings.add(sub, f"{closed(spelled(owner), ATOM)}.item()")
                continue
            if owner.end_lineno != sub.end_lineno:  # all that is told later has the line that it had
                line, column, _, _ = facts.text.key(sub)
                says = f"`{facts.short(sub)}` is `.item()` today: write it on one line"
                self.left.append(Note(line, column + 1, self.code, says))
                continue
            says = f"`{facts.short(sub)}` became `.item()`: a loss has no dimension to index"
            yield Change(
                sub, self.edit(facts, sub, says), source(f"{closed(facts.text.get(owner), ATOM)}.item()"), (sub.slice,)
            )
        yield from strings.changes("a loss has no dimension to index")

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _reads_scalar(self, facts: Facts, sub: ast.Subscript) -> bool:
        """`loss.data[0]`; not `x.data[0]`, which may be a row, nor what is asked for as a tensor is."""
        up = facts.scopes.parents.get(sub)
        if isinstance(up, ast.Attribute) or (isinstance(up, ast.Subscript) and up.value is sub):
            return False  # `loss.data[0].item()`
        if not (isinstance(sub.ctx, ast.Load) and isinstance(sub.slice, ast.Constant) and sub.slice.value == 0):
            return False
        if type(sub.slice.value) is not int or not any(_is_data(n) for n in _links(sub.value)):
            return False
        owner = _owner(sub.value)
        if not self._is_scalar(facts, owner) or any(_is_each(facts, n) for n in walk(owner)):
            return False
        return not has_dimensions(facts, owner)

    def _is_scalar(self, facts: Facts, owner: ast.expr) -> bool:
        """What has the name of a loss, or is made of such: `losses["G"]`, `F.nll_loss(a, b)`, `out.sum()`, `a + b`."""
        if isinstance(owner, ast.BinOp):
            sides = [s for s in (owner.left, owner.right) if not isinstance(s, ast.Constant)]
            return bool(sides) and all(self._is_scalar(facts, s) for s in sides)
        full = facts.names.resolve(owner.func) if isinstance(owner, ast.Call) else None
        if isinstance(owner, ast.Call) and full in ONE_BY_ONE and len(owner.args) == 1:
            return self._is_scalar(facts, owner.args[0])  # torch.exp(loss)
        while isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute) and owner.func.attr in MOVES:
            owner = owner.func.value
        if isinstance(owner, ast.Call):
            f = owner.func.func if isinstance(owner.func, ast.Call) else owner.func  # nn.CrossEntropyLoss()(a, b)
            last = f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")
            if last in REDUCES:
                return not owner.args and not owner.keywords
            named = any(k.arg in ("input", "target") for k in owner.keywords)
            if not (owner.args or named) or (f is owner.func and last[:1].isupper()):
                return False  # it makes one
            each = any(_may_give_each(facts, c) for c in (owner, owner.func) if isinstance(c, ast.Call))
            return not each and (bool(GIVES_LOSS.search(last.lower())) or _is_criterion(facts, f))
        if isinstance(owner, ast.Subscript):
            key = getattr(owner.slice, "value", None)
            if isinstance(key, str) and SCALAR_NAME.search(key.lower()):
                return True
            last = owner.value.attr if isinstance(owner.value, ast.Attribute) else getattr(owner.value, "id", "")
            return bool(SCALAR_NAME.search(last.lower())) and not isinstance(owner.slice, ast.Slice)
        last = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        if SCALAR_NAME.search(last.lower()):
            return True
        values = _given(facts, owner)
        return bool(values) and all(isinstance(v, ast.Call) and self._is_scalar(facts, v) for v in values)


def _given(facts: Facts, name: ast.expr) -> list[ast.expr]:
    """What a name or an attribute is given, wherever it is."""
    if isinstance(name, ast.Attribute):
        return facts.devices.attribute_values.get(name.attr, [])
    home = facts.scopes.scope_of(name).lookup(name.id) if isinstance(name, ast.Name) else None
    known = home is not None and not home.is_class and name.id not in home.params  # type: ignore[attr-defined]
    return facts.devices.assigned(name.id, home) or [] if known else []  # type: ignore[attr-defined,arg-type]


def _is_criterion(facts: Facts, f: ast.expr) -> bool:
    """`ce` of `ce = nn.CrossEntropyLoss()`, which gives one number."""
    made = [v for v in _given(facts, f) if isinstance(v, ast.Call)]
    each = (v for v in made if _may_give_each(facts, v))
    names = [facts.names.resolve(v.func) or "" for v in made]
    losses = all(n.startswith("torch.nn.") and n.endswith("Loss") for n in names)
    return bool(made) and losses and not any(True for _ in each)


class OldIdioms(Codemod):
    code = "PTM602"
    name = "old-idioms"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        for call in facts.walk(ast.Call):
            yield from self._reduction(facts, call)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _tell(self, facts: Facts, call: ast.Call, says: str) -> None:
        line, column, _, _ = facts.text.key(call)
        self.left.append(Note(line, column + 1, self.code, f"`{facts.short(call)}`: {says}"))

    def _reduction(self, facts: Facts, call: ast.Call) -> Iterator[Change]:
        """`size_average=False` is `reduction="sum"`."""
        full = facts.names.resolve(call.func) or ""
        if not full.startswith("torch.nn."):
            return
        parameters = _parameters(full)
        starred = any(isinstance(a, ast.Starred) for a in call.args)
        places = {} if starred else dict(zip(parameters, call.args, strict=False))
        given: dict[str | None, ast.expr] = {n: places[n] for n in ("size_average", "reduce") if n in places}
        given |= {k.arg: k.value for k in call.keywords if k.arg in ("size_average", "reduce")}
        if not given:
            if any(entry(w, name) is not None for w in _handed(facts, call) for name in ("size_average", "reduce")):
                self._tell(facts, call, "size_average and reduce, which it is handed, are `reduction=` today")
            return
        if "reduction" in places or any(k.arg == "reduction" for k in call.keywords):
            if any(isinstance(v, ast.Constant) and v.value is not None for v in given.values()):
                self._tell(facts, call, "size_average and reduce win over its `reduction=`")
            return
        average, reduce = given.get("size_average"), given.get("reduce")
        known = [
            v is None or (isinstance(v, ast.Constant) and v.value in (True, False, None)) for v in (average, reduce)
        ]
        asks = None if average is None else _asks_for_mean(facts, average)
        if all(known):
            truth = [True if v is None or v.value is None else bool(v.value) for v in (average, reduce)]  # type: ignore[attr-defined]
            new = f'"{REDUCTION[truth[0], truth[1]]}"'
        elif reduce is None and asks is not None:
            new = f'"mean" if {asks} else "sum"'
        else:
            self._tell(facts, call, "size_average and reduce are `reduction=` today")
            return
        says = f"`{', '.join(f'{k}={facts.text.get(v)}' for k, v in given.items())}` became `reduction={new}`"
        yield Change(
            call, self.edit(facts, call, says), change_call(parameters, {"size_average", "reduce"}, {"reduction": new})
        )


def _handed(facts: Facts, call: ast.Call) -> Iterator[ast.expr]:
    """The dictionaries of `**options`."""
    for value in (k.value for k in call.keywords if k.arg is None):
        yield from _given(facts, value) if isinstance(value, (ast.Name, ast.Attribute)) else [value]


def _asks_for_mean(facts: Facts, average: ast.expr) -> str | None:
    """The test that a value of size_average= is for `mean`, as None is too; None where it would be computed twice."""
    text = facts.text.get(average)
    if _is_truth(facts, average):
        return f"({text})" if isinstance(average, ast.IfExp) else text
    parts = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)
    return f"{text} or {text} is None" if all(isinstance(n, parts) for n in walk(average)) else None


def _is_truth(facts: Facts, value: ast.expr) -> bool:
    """Whether a value is shown to be True or False, and never None."""
    if isinstance(value, ast.Name):
        scope = facts.scopes.scope_of(value).lookup(value.id)
        if scope is None or scope.is_class:
            return False
        if value.id in scope.params and isinstance(scope.node, ast.FunctionDef):
            default = default_of(scope.node, value.id)
            return value.id not in scope.stores and default is not None and _is_truth(facts, default)
        made = facts.devices.assigned(value.id, scope)
        return bool(made) and not any(isinstance(v, ast.Name) or not _is_truth(facts, v) for v in made or ())
    if isinstance(value, ast.BoolOp):
        return all(_is_truth(facts, v) for v in value.values)
    if isinstance(value, ast.IfExp):
        return _is_truth(facts, value.body) and _is_truth(facts, value.orelse)
    if isinstance(value, ast.Constant):
        return isinstance(value.value, bool)
    return isinstance(value, ast.Compare) or (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not))


def _parameters(full: str) -> tuple[str, ...]:
    """The parameters of a loss by their places, as far as size_average and reduce stand among them."""
    last = full.rpartition(".")[2]
    given = OF_THREE.get(last, ("input", "target"))
    functional = given if full.startswith("torch.nn.functional.") else ()
    for names, parameters in LOSSES.items():
        if last in names.split():
            return (*functional, *parameters, "reduction")
    return ()


def _links(node: ast.expr) -> Iterator[ast.expr]:
    """`loss.data.cpu().numpy()`, and what stands before each of `numpy()`, `cpu()` and `data`."""
    yield node
    while _is_data(node) or (isinstance(node, ast.Call) and not node.args and not node.keywords):
        f = node.func if isinstance(node, ast.Call) else node
        if not isinstance(f, ast.Attribute) or (f is not node and f.attr not in COPIES):
            return
        node = f.value
        yield node


def _owner(node: ast.expr) -> ast.expr:
    """What is indexed, without `.data` and what copies it for that: of `loss.cpu().data` the loss on the CPU."""
    return node.value if isinstance(node, ast.Attribute) else [*_links(node)][-1]


def _is_data(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "data"


def _is_each(facts: Facts, owner: ast.AST) -> bool:
    """`losses = F.nll_loss(a, b, reduction="none")`, or by a criterion that is made so: a number for each sample."""
    scope = facts.scopes.scope_of(owner).lookup(owner.id) if isinstance(owner, ast.Name) else None
    made = facts.devices.assigned(owner.id, scope) if scope is not None else None  # type: ignore[attr-defined]
    if any(isinstance(v, ast.Call) and _is_each(facts, v.func) for v in made or ()):
        return True
    asked = (a for v in made or () if isinstance(v, ast.Call) for a in _asked_of(facts, v))
    return any(getattr(a, "value", 0) in (False, "none") for a in asked)


def _may_give_each(facts: Facts, call: ast.Call) -> bool:
    """Whether a loss, or what makes one, may be asked for a number of each sample."""
    sure = (True, None, "mean", "sum", "elementwise_mean")
    return any(not isinstance(a, ast.Constant) or a.value not in sure for a in _asked_of(facts, call))


def _asked_of(facts: Facts, call: ast.Call) -> list[ast.expr]:
    """What a call gives `reduce` and `reduction`, by name or by its place; what it spreads, which may hold them."""
    parameters = _parameters(facts.names.resolve(call.func) or "")
    starred = [a for a in call.args if isinstance(a, ast.Starred)]
    placed = dict(zip(parameters, call.args, strict=False)) if not starred else {}
    given = [k.value for k in call.keywords if k.arg in ("reduce", "reduction", None)]
    return [*starred, *given, *(placed[n] for n in ("reduce", "reduction") if n in placed)]


def _detached(place: int, facts: Facts, value: ast.expr | None, is_new: bool) -> Any:
    """`Variable(x, requires_grad=True)`: another name of the same numbers, with no graph behind it."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        inner = updated.args[place].value
        simple = isinstance(inner, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or inner.lpar
        if not simple:
            inner = inner.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        new: Any = inner if is_new else cst.Call(cst.Attribute(inner, cst.Name("detach")))
        if value is not None and getattr(value, "value", None) is not False:
            given = (
                []
                if isinstance(value, ast.Constant) and value.value is True
                else [cst.Arg(cst.parse_expression(facts.text.get(value)))]
            )
            new = cst.Call(cst.Attribute(new, cst.Name("requires_grad_")), given)
        return with_parentheses(updated, new)

    return rewrite
