"""Where to cut a step, and what has to be known behind the cut: only values per sample can cross it.

dp puts what its parts return one after another. A value per sample comes out of that as it was; a number, a size, or
two views one after another do not: they are computed again from what crosses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from keyword import iskeyword

from ..facts.arguments import argument_at, is_static
from ..facts.batch_operations import LOSS, MEASURE
from ..facts.batch_values import Flow, Value
from ..facts.mixing import Run
from ..facts.nodes import children, walk
from ..facts.script import Facts
from ._step_names import StepNames, ahead, derived, joins, last_of, path_of

# methods of tensors and lists: `self.temperature.exp()` calls no model
OF_TENSORS = set(
    "exp log sqrt clamp clamp_ clip detach float half double long to cpu t view reshape expand unsqueeze squeeze clone "
    "item abs pow mul add sub div mean sum norm softmax sigmoid tanh size dim numel type_as get append update items "
    "values".split()
)
TENSORS_HAVE = set(
    "shape device dtype ndim T mT H mH data grad requires_grad is_cuda values indices real imag layout is_leaf".split()
)
# what a module has from its Trainer: no model
NO_MODEL = {
    "log", "log_dict", "print", "logger", "trainer", "hparams", "device", "all_gather", "save_hyperparameters",
    "lr_schedulers", "parameters", "named_parameters", "children", "modules", "buffers",
}  # fmt: skip
RANDOM = re.compile(
    r"rand|dropout|bernoulli|multinomial|normal(?!i[sz])|poisson|(?<!up)(?<!down)sample(?!s)|shuffle|uniform|exponential"
)


class Crossing(Exception):
    """Why a step cannot be cut: something is needed behind the cut that can neither cross it nor be made again."""


@dataclass
class Cut:
    """A step in two: what crosses, which statements move behind the cut, and which stand on both sides of it."""

    at: int
    crossing: list[str] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)  # statements before the cut that are (also) made behind it
    gone: set[int] = field(default_factory=set)  # those of them that are not needed before it
    hoisted: dict[str, tuple[ast.expr, int]] = field(default_factory=dict)  # name: expression, its statement
    same: list[tuple[ast.expr, str]] = field(default_factory=list)  # an expression again that has a name already
    ahead: list[int] = field(default_factory=list)  # statements behind it that stay before it
    passed: list[str] = field(default_factory=list)  # parameters that the part behind the cut is given too
    views: dict[str, str] = field(default_factory=dict)  # what crosses as views one after another: how many there are
    counted: dict[int, tuple[str, str]] = field(default_factory=dict)  # before a statement, `name = len(list)`


def cut(
    facts: Facts,
    c: ast.ClassDef,
    step: ast.FunctionDef,
    flow: Flow,
    at: int,
    batch: str,
    call: ast.Call | None = None,
    passes: bool = False,
) -> Cut:
    """Cut a step before its statement `at`; Crossing where that cannot be.

    `call` is the call of a helper that is cut itself; `passes` for a helper, whose other parameters are given twice.
    """
    return _Cutter(facts, c, step, flow, at, batch, passes).cut(call)


class _Cutter:
    def __init__(
        self, facts: Facts, c: ast.ClassDef, step: ast.FunctionDef, flow: Flow, at: int, batch: str, passes: bool
    ) -> None:
        self.facts, self.c, self.step, self.flow, self.passes = facts, c, step, flow, passes
        self.before, self.after = step.body[:at], step.body[at:]
        self.found = Cut(at)
        parameters = [a.arg for a in (*step.args.posonlyargs, *step.args.args, *step.args.kwonlyargs)]
        self.me, self.batch, self.others = parameters[0], batch, set(parameters[1:]) - {batch}
        self.taken = {n.id for n in walk(step, ast.Name)}
        self.values = dict(flow.after[self.before[-1]]) if self.before else {}
        self.names = StepNames(facts, step)
        self.mixed = derived(self.names, self.before, flow)
        ahead_of = ahead(self.names, self.after, flow, self.others, lambda n: not (self._is_model(n) or self._draws(n)))
        self.ahead = [self.after[i] for i in ahead_of] if not passes else []
        self.found.ahead = [at + i for i in ahead_of] if not passes else []
        self.after = [s for s in self.after if s not in self.ahead]
        self.done: set[str] = set()
        self.logs: set[int] = set()

    def cut(self, call: ast.Call | None) -> Cut:
        at = self.found.at
        if call is None:
            self._hoist(self.after[0], at)
        else:
            self.found.hoisted["outputs"] = (call, at)
            self.found.crossing.append("outputs")
        pending = self._read(self.after)
        while pending:
            name = pending.pop(0)
            if name in self.done:
                continue
            self.done.add(name)
            pending += self._bring(name)
        for name in [n for n in self.found.crossing if n not in self.found.hoisted]:
            self._attributes(name)
        self._stale()
        self._logs()
        if self._takes_gradients():
            raise Crossing("it takes gradients of what is computed before the cut")
        if call is None and not self.found.hoisted and self._only_of_mixed():
            raise Crossing("the model is only called with what it gives, and would run on one device alone")
        if call is None and not self.found.hoisted and self._within_block():
            raise Crossing("the model is called in the same `with`, and would run on one device alone")
        self.found.behind.sort()
        self.found.gone = {i for i in self.found.behind if not self._needed_before(i)}
        if not self.found.crossing:
            raise Crossing("nothing that it mixes comes from the batch")
        order = [n.id for s in self.step.body for n in walk(s, ast.Name)]
        names = [*order, *self.found.hoisted]
        self.found.crossing.sort(key=names.index)
        return self.found

    # -- names -----------------------------------------------------------------------------------------------

    def _replaced(self) -> set[ast.AST]:
        return {n for e, _ in self.found.hoisted.values() for n in walk(e)}

    def _read(self, block: list[ast.stmt]) -> list[str]:
        """The names that a block takes from before it, in the order of the text."""
        found: dict[str, None] = {}
        defined: set[str] = set()
        for s in block:
            found |= {name: None for name in self.names.reads(s, self._replaced()) if name not in defined}
            if isinstance(s, (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.Import, ast.ImportFrom)):
                defined |= self.names.binds(s) - set(found)
        local = {self.batch, *self.others, *self.names.every(self.before)}
        return [n for n in found if n in local]

    def _bring(self, name: str) -> list[str]:
        """Make a name known behind the cut; the names that this takes."""
        stores = [i for i, s in enumerate(self.before) if name in self.names.changes(s)]
        if not stores and name == self.batch:
            self.found.crossing.append(name)
            return []
        if not stores and self.passes:
            self.found.passed.append(name)
            return []
        if not stores:
            raise Crossing(f"`{name}` is needed behind the cut, and is not of the batch")
        value = self.values.get(name, Value())
        parted = value.is_per_sample() and not value.picked and not value.own and name not in self.names.kept
        if value.has_names() and not parted and name not in self.mixed and self._from_model(stores):
            self.found.crossing.append(name)  # what is read of it, if that can
            return []
        if name in self.mixed or not parted:
            return self._again(name, stores)
        if value.views == 1:
            self.found.crossing.append(name)
            return []
        if len(stores) > 1 or self._from_model(stores):
            self._as_views(name, value)
            return []
        return self._again(name, stores)

    def _from_model(self, stores: list[int]) -> bool:
        return any(self._is_model(n) for i in stores for n in walk(self.before[i]))

    def _as_views(self, name: str, value: Value) -> None:
        """`features` of two views one after another cross as a pair per sample."""
        count = str(value.views)
        if not value.views:
            at = next((i for i, s in enumerate(self.before) if joins(s, value.listed)), None)
            if not value.listed or at is None:
                raise Crossing(f"`{name}` holds views one after another, and how many does not show")
            count = self._free("views")
            self.found.counted[at] = (count, value.listed)
        self.found.views[name] = count
        self.found.crossing.append(name)

    def _attributes(self, name: str) -> None:
        """Of an object that is no tensor only what is read of it crosses: `out.logits`, `out["logits"]`."""
        block = [*self.after, *(self.before[i] for i in self.found.behind)]
        nodes = [n for s in block for n in walk(s) if n not in self._replaced()]
        called = {n.func for n in nodes if isinstance(n, ast.Call)}
        of = [n for n in nodes if isinstance(n, (ast.Attribute, ast.Subscript)) and n not in called]
        value = self.values.get(name, Value())
        by_key = value.loose or value.has_names()
        read = [(n, part) for n in of if (part := _part_of(n, name, by_key)) is not None]
        if not read and not (value.has_names() and not value.is_per_sample()):
            return
        whole = {n.value for n, _ in read}
        if any(isinstance(n, ast.Name) and n.id == name and n not in whole for n in nodes):
            raise Crossing(f"`{name}` is an object, which dp does not put together")
        self.found.crossing.remove(name)
        for part in dict.fromkeys(part for _, part in read):
            first, *others = [n for n, p in read if p == part]
            known = value.item(part)
            if LOSS.search(part) if known is None else not known.is_per_sample():
                raise Crossing(f"`{ast.unparse(first)}` is needed behind the cut, and no value per sample")
            own = self._free(part if part.isidentifier() and not iskeyword(part) else name)
            self.found.hoisted[own] = (first, self.found.at)
            self.found.same += [(n, own) for n in others]
            self.found.crossing.append(own)

    def _free(self, stem: str) -> str:
        name, n = stem, 2
        while name in self.taken:
            name, n = f"{stem}_{n}", n + 1
        self.taken.add(name)
        return name

    def _again(self, name: str, stores: list[int]) -> list[str]:
        """Compute a name behind the cut from what it was computed from."""
        missing = [i for i in stores if i not in self.found.behind]
        for i in missing:
            s = self.before[i]
            if not self.names.makes(s):
                raise Crossing(f"`{name}` cannot cross, and more than assignments make it")
            self._hoist(s, i)
            for n in walk(s, ast.Call):
                if n not in self._replaced():
                    self._may_be_made_again(name, n, stores)
            self.found.behind.append(i)
        return [n for i in missing for n in self._read([self.before[i]])]

    def _may_be_made_again(self, name: str, call: ast.Call, stores: list[int]) -> None:
        if self._is_model(call):
            raise Crossing(f"`{name}` cannot cross: what the model gives there is no value per sample")
        if not self._draws(call):
            return
        others = [s for i, s in enumerate(self.before) if i not in stores]
        if any(name in self.names.reads(s) for s in others):
            raise Crossing(f"`{name}` is random, and is needed on both sides of the cut")
        if any(self._is_model(n) for s in self.before[stores[0] :] for n in walk(s)):
            raise Crossing(f"`{name}` is random, and is drawn before the model draws")

    def _draws(self, call: ast.AST) -> bool:
        if not isinstance(call, ast.Call):
            return False
        full = self.facts.names.resolve(call.func) or ""
        return RANDOM.search(last_of(call.func)) is not None or full.startswith(("random.", "numpy.random."))

    def _stale(self) -> None:
        """What is made again has to find what it reads as it was, and to leave what crosses as it came."""
        for i in self.found.behind:
            later = self.names.every([s for j, s in enumerate(self.before) if j > i and j not in self.found.behind])
            late = [n for n in (*self.names.reads(self.before[i], self._replaced()),) if n in later]
            late += [n for n in self.names.changes(self.before[i]) if n in later and n in self.found.crossing]
            if late:
                raise Crossing(f"`{late[0]}` is another value by then")

    def _needed_before(self, i: int) -> bool:
        """Whether what stays before the cut reads what a statement gives."""
        found, names = self.found, self.names
        stays = [*(s for j, s in enumerate(self.before) if j not in found.behind), *self.ahead]
        # what another statement made on both sides reads
        stays += [self.before[j] for j in found.behind if j > i and j not in self.logs and self._needed_before(j)]
        held = [e for e, at in found.hoisted.values() if at in found.behind or at == found.at]
        read = {name for part in (*stays, *held) for name in names.reads(part)} | set(found.crossing) | names.kept
        return bool(read & names.changes(self.before[i]))

    def _logs(self) -> None:
        """`self.log("loss", loss)` goes with the loss."""
        moved = self.names.every([self.before[i] for i in self.found.behind])
        for i, s in enumerate(self.before):
            call = s.value if isinstance(s, ast.Expr) else None
            if not (isinstance(call, ast.Call) and ast.unparse(call.func) in (f"{self.me}.log", f"{self.me}.log_dict")):
                continue
            read = set(self._read([s]))
            if read & moved and read <= moved | set(self.found.crossing):
                self.found.behind.append(i)
                self.logs.add(i)

    def _takes_gradients(self) -> bool:
        """`torch.autograd.grad(d.sum(), x)`: what crosses is no longer made of what it was; of parameters it is."""
        behind = [*self.after, *(self.before[i] for i in self.found.behind)]
        calls = (n for s in behind for n in walk(s, ast.Call))
        taken = [c for c in calls if self.facts.names.resolve(c.func) == "torch.autograd.grad"]
        inputs = (argument_at(c, "inputs", 1) for c in taken)
        return any(i is not None and self.names.reads(i) for i in inputs)

    # -- model calls -----------------------------------------------------------------------------------------

    def _only_of_mixed(self) -> bool:
        """No model is called before the cut, and one behind it with what was mixed."""
        if any(self._is_model(n) for s in self.before for n in walk(s)):
            return False
        mixes, mixed = set(self.flow.mixes), derived(self.names, self.after, self.flow)
        calls = [n for s in self.after for n in walk(s) if self._is_model(n)]
        inside = [n for c in calls for n in walk(c) if n is not c]
        return any(n in mixes or (isinstance(n, ast.Name) and n.id in mixed) for n in [*calls, *inside])

    def _within_block(self) -> bool:
        """No model is called before the cut, and one in the `with` that mixes."""
        called = any(self._is_model(n) for s in self.before for n in walk(s))
        first = self.after[0] if self.after else None
        return not called and isinstance(first, ast.With) and any(self._is_model(n) for n in walk(first))

    def _hoist(self, s: ast.stmt, at: int) -> None:
        """The largest values per sample in a statement that a model is called for."""
        if isinstance(s, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return, ast.AugAssign)) and s.value is not None:
            for e in self._per_sample(s.value):
                self.found.hoisted[name := self._new_name(e)] = (e, at)
                self.found.crossing.append(name)

    def _per_sample(self, e: ast.expr) -> Iterator[ast.expr]:
        if not any(self._is_model(n) for n in walk(e)):
            return
        mixes = set(self.flow.mixes)
        if not any(n in mixes for n in walk(e)):
            value = self._value(e)
            if value.is_per_sample() and value.views == 1 and not value.cut and not isinstance(e, ast.Starred):
                yield e
                return
        if isinstance(e, (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp)):
            raise Crossing("the model is called there under a condition or in a comprehension")
        for child in children(e):
            if isinstance(child, ast.keyword):
                child = child.value
            elif isinstance(e, ast.Call) and child is e.func and isinstance(child, ast.Attribute):
                child = child.value  # `self.head(z)` of `self.head(z).sum()`: a method is no value
            if isinstance(child, ast.expr):
                yield from self._per_sample(child)

    def _value(self, e: ast.expr) -> Value:
        """What an expression is, with the names as they are where it stands."""
        at = next((i for i, s in enumerate(self.before) if any(n is e for n in walk(s))), len(self.before))
        env = self.flow.after[self.before[at - 1]] if at else {self.batch: Value("batch", holds=True)}
        return Run(self.facts.mixing, Flow(), self.c, dict(env)).value(e)

    def _is_model(self, node: ast.AST) -> bool:
        """`self(x)`, `self.encoder(x)`, `self.net.features(x)`, or a method that calls one; not a loss."""
        if not isinstance(node, ast.Call):
            return False
        path = path_of(node.func)
        if not path or path[0] != self.me:
            return False
        if len(path) == 1:
            return True
        method = self.facts.classes.methods(self.c).get(path[1])
        if method is not None and len(path) == 2:
            return path[1] == "forward" or any(
                self._is_model(n) for n in walk(method, ast.Call) if path_of(n.func)[1:2] != path[1:]
            )
        if len(path) > 2 and path[-1] in OF_TENSORS:
            return False
        made = [v.func for v in self.facts.mixing.made.get(path[1], ()) if isinstance(v, ast.Call)]
        of_loss = bool(made) and all(LOSS.search(last_of(f)) for f in made)  # self.crit = nn.CrossEntropyLoss()
        measures = any(LOSS.search(p) or MEASURE.search(p) for p in path[1:])
        return path[1] not in NO_MODEL and not of_loss and not measures

    def _new_name(self, e: ast.expr) -> str:
        call = next(n for n in walk(e) if self._is_model(n))
        assert isinstance(call, ast.Call)
        path = path_of(call.func)
        return self._free(f"{path[-1]}_output" if len(path) > 1 and path[-1] != "forward" else "output")


def _part_of(n: ast.Attribute | ast.Subscript, name: str, by_key: bool) -> str | None:
    """`logits` of `out.logits`, and of `out["logits"]` where that is no batch."""
    if not isinstance(n.ctx, ast.Load) or ast.unparse(n.value) != name:
        return None
    if isinstance(n, ast.Attribute):
        return n.attr if n.attr not in TENSORS_HAVE else None
    key = n.slice.value if isinstance(n.slice, ast.Constant) else None
    return key if by_key and isinstance(key, str) else None


def calls_model(facts: Facts, c: ast.ClassDef, method: ast.FunctionDef) -> bool:
    """Whether a method calls a model of its class."""
    if is_static(method):
        return False
    cutter = _Cutter(facts, c, method, Flow(), 0, "", False)
    return any(cutter._is_model(n) for n in walk(method))


def behind_models(facts: Facts, c: ast.ClassDef, step: ast.FunctionDef, flow: Flow, at: int) -> int:
    """The place of a later cut: behind model calls that nothing mixed goes into; `at` where there is none."""
    cutter = _Cutter(facts, c, step, flow, at, "", False)
    is_model = cutter._is_model
    mixes, found = set(flow.mixes), at
    for i, s in enumerate(step.body[at:], at):
        if any(cutter._draws(n) for n in walk(s)):
            return found  # what is drawn is drawn before the model draws
        if not any(is_model(n) for n in walk(s)):
            continue
        mixed = derived(cutter.names, step.body[at:i], flow)
        if any(n in mixes or (isinstance(n, ast.Name) and n.id in mixed) for n in walk(s)):
            return found
        found = i + 1
    return found
