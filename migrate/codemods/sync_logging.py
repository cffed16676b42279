"""T5: what validation and test steps log is reduced over the processes, so that each decides by the same numbers.

Metric objects reduce themselves. A helper that training logs through too synchronizes only when it does not train.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument
from ..facts.asked_parts import PARTS, asked_mode
from ..facts.classes import STEPS
from ..facts.logged_metrics import LoggedMetrics, is_metric
from ..facts.nodes import Function, walk
from ..facts.script import Facts
from ..facts.stages import SYNC_DIST_AT, only_in_training
from ..report import Note
from ._own_values import OwnValues
from .argument_rewrites import set_keyword
from .base import Change, Codemod

EVALUATION = {
    f"{prefix}{kind}_{what}"
    for kind in ("validation", "test")
    for prefix in ("", "on_")
    for what in ("step", "step_end", "epoch_end", "batch_end", "epoch_start")
}
TRAINING = {
    "training_step",
    "training_step_end",
    "training_epoch_end",
    "on_train_epoch_end",
    "on_train_batch_end",
    "forward",
}
LOGS = ("log", "log_dict")
ALONE = ("single_device", "single_xla")
UNSEEN = "whether it has sync_dist does not show"
PARTIAL = ("functools.partial", "functools.partialmethod")


class SyncLogging(Codemod):
    code = "PTM402"
    name = "sync-logging"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        # with what they derive from: a class of helpers is a module by those that take them
        run = facts.classes.run_by_trainer
        for c in dict.fromkeys(near for own in run for near in facts.classes.kin(own)):
            metrics = self._metrics(facts, c)
            self._others = {name for near in facts.classes.kin(c) for name in self._other_names(facts, near)}
            own = OwnValues(facts, c, metrics)
            for name, method in facts.classes.methods(c).items():
                when = self._when(facts, c, name)
                if when is None:
                    continue
                self._tell_curved(facts, own, method)
                for call in walk(method):
                    if self._is_handed_on(facts, c, call):
                        self._tell(facts, call, f"`{facts.short(call)}` in {name} is handed on: {UNSEEN}")
                    if not (isinstance(call, ast.Call) and self._is_log(facts, c, call)):
                        continue
                    if when != "True" and only_in_training(call, facts.scopes.ancestors(call)):
                        continue
                    if self._is_metric(facts, call, metrics) or facts.alone.reached_by(call) != {False}:
                        continue  # where rank 0 comes alone nobody answers it
                    if own.of_process(method, call) and not self._asks_for_its_own(call):
                        says = "is the mean of the processes' own values, however many batches each had: log it in the"
                        self._tell(
                            facts, call, f"`{facts.short(call)}` in {name} {says} step, where batches are weighed"
                        )
                    starred = any(isinstance(a, ast.Starred) for a in call.args)
                    if (starred or _spread(facts, call) is None) and not any(
                        k.arg == "sync_dist" for k in call.keywords
                    ):
                        self._tell(facts, call, f"`{facts.short(call)}` in {name}: {UNSEEN}")
                    if self._logs(facts, call):
                        says = f"`{facts.short(call.func)}` in {name}: sync_dist={when}"
                        yield Change(call, self.edit(facts, call, says), set_keyword("sync_dist", when))
        yield from self._of_callbacks(facts)
        yield from self._of_helpers(facts)

    def _tell(self, facts: Facts, node: ast.AST, says: str) -> None:
        line, column, _, _ = facts.text.key(node)
        self.left.append(Note(line, column + 1, self.code, says))

    def _tell_curved(self, facts: Facts, own: OwnValues, method: Function) -> None:
        """`self.log("ppl", torch.exp(loss))`, where no step is cut for it."""
        mode = asked_mode(facts)
        if mode is None or mode in PARTS or mode in ALONE:
            return
        for node in own.of_batches(method):
            says = (
                f"`{facts.short(node)}` in {method.name} is logged as its mean over the batches of all processes, which"
            )
            self._tell(facts, node, f"{says} is not that of the mean: log what it is made of, and take it of its mean")

    def _asks_for_its_own(self, call: ast.Call) -> bool:
        """`sync_dist=False`, or what rank 0 logs alone."""
        given = {k.arg: getattr(k.value, "value", None) for k in call.keywords}
        return given.get("sync_dist") is False or given.get("rank_zero_only") is True

    def _of_helpers(self, facts: Facts) -> Iterator[Change]:
        """`module.log(...)` in a function that steps or hooks hand the module to."""
        metrics = {m for c in facts.walk(ast.ClassDef) for m in self._metrics(facts, c)}
        for call in facts.walk(ast.Call):
            f = call.func
            if not (isinstance(f, ast.Attribute) and f.attr in LOGS and isinstance(f.value, ast.Name)):
                continue
            name = self._another_name(facts, f.value)
            helper = next((u for u in facts.scopes.ancestors(call) if isinstance(u, ast.FunctionDef)), None)
            if helper is None or name == "self" or name not in facts.scopes.by_node[helper].params:
                continue
            reached = self._handed(facts, helper, name, frozenset())
            if not reached & EVALUATION or self._is_metric(facts, call, metrics):
                continue
            if self._logs(facts, call) and facts.alone.reached_by(call) == {False}:
                when = f"not {f.value.id}.training" if reached - EVALUATION else "True"
                says = f"`{facts.short(f)}` in {helper.name}: sync_dist={when}"
                yield Change(call, self.edit(facts, call, says), set_keyword("sync_dist", when))

    def _another_name(self, facts: Facts, node: ast.Name) -> str:
        """`module` of `m`, after `m = module`."""
        scope = facts.scopes.scope_of(node).lookup(node.id)
        given = facts.devices.assigned(node.id, scope) if scope is not None and node.id not in scope.params else None
        return given[0].id if given and len(given) == 1 and isinstance(given[0], ast.Name) else node.id

    def _handed(self, facts: Facts, f: ast.FunctionDef, name: str, seen: frozenset[ast.AST]) -> set[str]:
        """The steps and hooks that hand a function their module for a parameter."""
        holder, found = facts.classes.holder(f), set[str]()
        if f in seen or (holder in facts.classes.callbacks and f.name in EVALUATION | TRAINING):
            return found
        for call in facts.walk(ast.Call):
            func = call.func
            called = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            static = any(ast.unparse(d) == "staticmethod" for d in f.decorator_list)
            value = argument(call, f, name, holder is not None and not static) if called == f.name else None
            by = next((u for u in facts.scopes.ancestors(call) if isinstance(u, ast.FunctionDef)), None)
            if not isinstance(value, ast.Name) or by is None:
                continue
            owner = facts.classes.holder(by)
            if owner in facts.classes.callbacks and [a.arg for a in by.args.args][2:3] == [value.id]:
                found.add(by.name)
            elif owner is not None and facts.classes.is_self(value):
                found |= self._reached(facts, owner, by.name)
            elif value.id in facts.scopes.by_node[by].params:
                found |= self._handed(facts, by, value.id, seen | {f})
        return found

    def _of_callbacks(self, facts: Facts) -> Iterator[Change]:
        """`pl_module.log(...)` in `on_validation_epoch_end(self, trainer, pl_module)` of a callback.

        A Trainer gives each callback the module's own `log`, so that `self.log(...)` is that, too.
        """
        metrics = {m for c in facts.walk(ast.ClassDef) for m in self._metrics(facts, c)}
        for c in facts.classes.callbacks:
            for name, method in facts.classes.methods(c).items():
                given = [a.arg for a in method.args.args]
                if name not in EVALUATION or len(given) < 3:
                    continue
                modules = {given[2], f"{given[1]}.lightning_module"}
                if not any(m in facts.classes.methods(d) for d in facts.classes.kin(c) for m in LOGS):
                    modules.add(given[0])
                for call in (n for n in walk(method, ast.Call)):
                    f = call.func
                    if _log_by_text(call) and ast.unparse(call.args[0]) in modules:
                        self._tell(facts, call, f"`{facts.short(call)}` in {name} is handed on: {UNSEEN}")
                    if not (isinstance(f, ast.Attribute) and f.attr in LOGS):
                        continue
                    called = self._another_name(facts, f.value) if isinstance(f.value, ast.Name) else f.value
                    if (called if isinstance(called, str) else ast.unparse(called)) not in modules:
                        continue
                    if self._is_metric(facts, call, metrics) or facts.alone.reached_by(call) != {False}:
                        continue
                    if self._logs(facts, call):
                        says = f"`{facts.short(f)}` in {name}: sync_dist=True"
                        yield Change(call, self.edit(facts, call, says), set_keyword("sync_dist", "True"))

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _when(self, facts: Facts, c: ast.ClassDef, name: str) -> str | None:
        """The source of `sync_dist=` in a method: True in evaluation, what tells training apart in a shared helper."""
        reached = self._reached(facts, c, name)
        if not reached and facts.taken is not None and facts.taken(c.name) and not facts.classes.callers(c, name):
            return "not self.training"  # for the steps of a class that another file derives from it
        if not reached & EVALUATION:
            return None
        return "not self.training" if reached - EVALUATION else "True"

    def _reached(self, facts: Facts, c: ast.ClassDef, name: str) -> set[str]:
        """The steps and hooks that a method is, or is called from."""
        kin = facts.classes.kin(c)
        seen, pending, reached = {name}, [name], set()
        while pending:
            at = pending.pop()
            if at in EVALUATION | TRAINING or at in STEPS:
                reached.add(at)  # a step may be called from another one
            for caller in {name for d in kin for name in facts.classes.callers(d, at)} - seen:
                seen.add(caller)
                pending.append(caller)
        return reached

    def _is_log(self, facts: Facts, c: ast.ClassDef, call: ast.Call) -> bool:
        """`self.log(...)`, also by a name that was given it; a method of that name in the file is another matter."""
        f: ast.expr | None = call.func
        if (facts.names.resolve(call.func) or "").endswith(("LightningModule.log", "LightningModule.log_dict")):
            return bool(call.args) and facts.classes.is_self(call.args[0])  # pl.LightningModule.log(self, "a", 1)
        if isinstance(f, ast.Attribute) and f.attr in self._others and facts.classes.is_self(f.value):
            return True
        if facts.names.resolve(call.func) == "functools.partial" and call.args:
            f = call.args[0]
        elif isinstance(f, ast.Name):
            scope = facts.scopes.scope_of(f).lookup(f.id)
            values = facts.devices.assigned(f.id, scope) if scope is not None else None
            f = values[0] if values and len(values) == 1 else None
        if not (isinstance(f, ast.Attribute) and f.attr in LOGS and facts.classes.is_self(f.value)):
            return False
        own = any(f.attr in facts.classes.methods(d) for d in facts.classes.kin(c))
        return not own or isinstance(f.value, ast.Call)

    def _other_names(self, facts: Facts, c: ast.ClassDef) -> Iterator[str]:
        """What a class calls `self.log` beside that: `self.record = functools.partial(self.log, on_epoch=True)`."""
        own = ((t, s.value) for s in c.body if isinstance(s, ast.Assign) for t in s.targets)
        for target, value in [*own, *_stores(facts, c)]:
            what, of_self = value, False
            if isinstance(value, ast.Call) and facts.names.resolve(value.func) in PARTIAL and value.args:
                if any(k.arg in ("sync_dist", None) for k in value.keywords):
                    continue
                what = value.args[0]
                of_self = isinstance(what, ast.Attribute) and what.attr in LOGS and facts.classes.is_self(what.value)
            known = facts.names.resolve(what) or ""
            if of_self or known.endswith((".LightningModule.log", ".LightningModule.log_dict")):
                yield target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")

    def _is_handed_on(self, facts: Facts, c: ast.ClassDef, a: ast.AST) -> bool:
        """`self.log` as a value, where neither a call of it nor a name for it shows; `getattr(self, "log")`."""
        if isinstance(a, ast.Call):
            what = _log_by_text(a)
            own = any(what in facts.classes.methods(d) for d in facts.classes.kin(c))
            return what is not None and facts.classes.is_self(a.args[0]) and not own
        if not isinstance(a, ast.Attribute) or a.attr not in LOGS:
            return False
        if not facts.classes.is_self(a.value) or not isinstance(a.ctx, ast.Load):
            return False
        up = facts.scopes.parents.get(a)
        if isinstance(up, ast.Call):
            known = up.func is a or facts.names.resolve(up.func) == "functools.partial"
        else:
            known = isinstance(up, ast.Assign) and all(isinstance(t, ast.Name) for t in up.targets)
        return not known and not any(a.attr in facts.classes.methods(d) for d in facts.classes.kin(c))

    def _logs(self, facts: Facts, call: ast.Call) -> bool:
        spread = _spread(facts, call)
        return (
            spread is not None
            and not spread & {"sync_dist", "rank_zero_only"}
            and not any(k.arg in ("sync_dist", "rank_zero_only") for k in call.keywords)
            and not any(isinstance(a, ast.Starred) for a in call.args)
            and len(call.args) <= SYNC_DIST_AT.get(getattr(call.func, "attr", ""), 7)
            and bool(call.args or call.keywords)
        )

    def _is_metric(self, facts: Facts, call: ast.Call, metrics: set[str]) -> bool:
        value = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "value"), None)
        if value is None and isinstance(call.func, ast.Attribute) and call.func.attr == "log_dict" and call.args:
            value = call.args[0]
        return LoggedMetrics(facts, metrics).holds(value)

    def _metrics(self, facts: Facts, c: ast.ClassDef) -> set[str]:
        """Attributes that hold metric objects: of torchmetrics or a Metric class, or clones of those."""
        return {target.attr for target, value in _stores(facts, c) if is_metric(facts, c, value)}


def _log_by_text(call: ast.Call) -> str | None:
    """`"log"` of `getattr(self, "log")`."""
    got = isinstance(call.func, ast.Name) and call.func.id == "getattr" and len(call.args) > 1
    what = getattr(call.args[1], "value", None) if got else None
    return what if what in LOGS else None


def _stores(facts: Facts, c: ast.ClassDef) -> Iterator[tuple[ast.Attribute, ast.expr]]:
    """The attributes that a class gives a value, or an element, and that value."""
    for n in facts.walk(ast.Assign):
        if c not in facts.scopes.ancestors(n):
            continue
        for t in n.targets:
            pairs = [(t, n.value)]
            if isinstance(t, ast.Tuple) and isinstance(n.value, ast.Tuple) and len(t.elts) == len(n.value.elts):
                pairs = list(zip(t.elts, n.value.elts, strict=True))
            for part, value in pairs:
                kept = part.value if isinstance(part, ast.Subscript) else part
                if isinstance(kept, ast.Attribute):
                    yield kept, value


def _spread(facts: Facts, call: ast.Call) -> set[str] | None:
    """The names that `**options` adds to a call; None where they do not show."""
    found: set[str] = set()
    for k in call.keywords:
        if k.arg is not None:
            continue
        value: ast.expr | None = k.value
        if isinstance(value, ast.Name):
            scope = facts.scopes.scope_of(value).lookup(value.id)
            given = facts.devices.assigned(value.id, scope) if scope is not None else None
            value = given[0] if given and len(given) == 1 else None
        if isinstance(value, ast.Dict) and all(isinstance(x, ast.Constant) for x in value.keys):
            found |= {str(x.value) for x in value.keys if isinstance(x, ast.Constant)}
        elif isinstance(value, ast.Call) and ast.unparse(value.func) == "dict" and not value.args:
            if any(x.arg is None for x in value.keywords):
                return None
            found |= {str(x.arg) for x in value.keywords}
        else:
            return None
    return found
