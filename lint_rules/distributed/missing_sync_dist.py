"""PTM402: without sync_dist a metric of an evaluation is that of one rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.nodes import walk
from ptmigrate.migrate.facts.stages import SYNC_DIST_AT, only_in_training

from ..file import File, argument, is_constant, is_self, keyword, last_part, passes_unknown, root
from ..rule import Finding, Rule
from .guards import EVALUATION_METHODS, evaluation_step_of

HOLDING = ("items", "values")  # of a dictionary of metrics


class MissingSyncDist(Rule):
    code = "PTM402"
    name = "missing-sync-dist"
    why = (
        "Each rank evaluates its share of the data. Without sync_dist=True what is logged, and what checkpoints and "
        "early stopping look at, is the mean of one share."
    )
    fix = "unsafe"
    settled_by = "sync_logging"
    calls = ("log", "log_dict")

    BAD = """
        import pytorch_lightning as pl
        class Net(pl.LightningModule):
            def validation_step(self, batch, batch_idx):
                loss = self.loss(batch)
                self.log("val_loss", loss)
        """
    GOOD = """
        import pytorch_lightning as pl
        class Net(pl.LightningModule):
            def validation_step(self, batch, batch_idx):
                loss = self.loss(batch)
                self.log("val_loss", loss, sync_dist=True)
                self.log("val_accuracy", self.accuracy)
                for name, metric in self.others.items():
                    self.log(name, metric)
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        func = call.func
        if not isinstance(func, ast.Attribute) or passes_unknown(call):
            return
        hook = _hook_of_callback(call, file)
        if hook is None and not _is_this(func, file):
            return
        given = argument(call, SYNC_DIST_AT.get(func.attr, 8), "sync_dist")
        if (given is not None and not is_constant(given, False)) or keyword(call, "rank_zero_only") is not None:
            return
        method = hook or evaluation_step_of(call, file)
        if method is not None and not _is_metric(_logged(call), file) and not _is_for_training(call, file):
            here = file.classes.method_of(call)
            place = method if here is None or here.name == method else f"{here.name}, which {method} calls,"
            text = f"`{file.source(func)}` in {place} without sync_dist=True: one rank's share only"
            yield self.finding(call, text, file)


def _is_this(func: ast.Attribute, file: File) -> bool:
    """`self.log`, `super().log`, or `m.log` after `m = self`; not where the class has a method of that name itself."""
    holder = file.nodes.class_of(func)
    if isinstance(func.value, ast.Call):
        return isinstance(func.value.func, ast.Name) and func.value.func.id == "super"
    if holder is not None and any(isinstance(s, ast.FunctionDef) and s.name == func.attr for s in holder.body):
        return False
    if is_self(func.value):
        return True
    given = file.tensors.assigned(func.value) if isinstance(func.value, ast.Name) else None
    return bool(given) and all(v is not None and is_self(v) for v in given or ())


def _hook_of_callback(call: ast.Call, file: File) -> str | None:
    """The evaluation hook of a callback in which its module logs: `on_test_epoch_end(self, trainer, pl_module)`."""
    method = file.classes.method_of(call)
    given = [a.arg for a in method.args.args] if method is not None else []
    if method is None or len(given) < 3 or given[1] != "trainer" or method.name not in EVALUATION_METHODS:
        return None
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    return method.name if isinstance(receiver, ast.Name) and receiver.id == given[2] else None


def _logged(call: ast.Call) -> ast.expr | None:
    if last_part(call.func) == "log_dict":
        return argument(call, 0, "dictionary")
    return argument(call, 1, "value")


def _is_metric(value: ast.expr | None, file: File) -> bool:
    """Whether a metric object is logged, which sums over the ranks itself: `self.accuracy`, `self.f1.compute()`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        inner = value.func.value
        return value.func.attr == "compute" or (value.func.attr == "item" and _is_metric(inner, file))
    if isinstance(value, ast.Call) and last_part(value.func) == "getattr":
        return bool(value.args) and is_self(value.args[0])
    if isinstance(value, ast.Name):
        values = file.tensors.assigned(value)
        if not any(values) and (_is_metric_of_loop(value, file) or _is_given_metrics(value, file)):
            return True
        return bool(values) and all(
            v is not None and not isinstance(v, ast.Name) and _is_metric(v, file) for v in values
        )
    if isinstance(value, ast.DictComp):
        return _is_metric(value.value, file)
    if isinstance(value, ast.Dict):
        return all(_is_metric(v, file) for v in value.values)
    if isinstance(value, ast.Subscript):
        return _is_metric(value.value, file)
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Attribute) and is_self(root(value)))


def _is_given_metrics(name: ast.Name, file: File) -> bool:
    """A parameter that every call in the class gives an attribute: `self._shared(batch, self.val_accuracy)`."""
    method = file.nodes.function_of(name)
    names = [a.arg for a in method.args.args] if method is not None else []
    if method is None or file.nodes.class_of(method) is None or name.id not in names[1:]:
        return False
    place = names.index(name.id) - 1
    calls = [c for c in file.nodes.calls.get(method.name, []) if isinstance(c.func, ast.Attribute)]
    given = [argument(c, place, name.id) for c in calls if is_self(c.func.value)]  # type: ignore[attr-defined]
    return bool(given) and all(isinstance(g, (ast.Attribute, ast.Subscript)) and _is_metric(g, file) for g in given)


def _is_metric_of_loop(name: ast.Name, file: File) -> bool:
    """`for name, metric in self.metrics.items():`"""
    for up in file.nodes.ancestors(name):
        for g in [up] if isinstance(up, ast.For) else getattr(up, "generators", ()):
            if any(n.id == name.id for n in walk(g.target, ast.Name)):
                return _holds_metrics(g.iter, file)
    return False


def _holds_metrics(over: ast.expr, file: File) -> bool:
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in HOLDING:
        over = over.func.value
    parts = over.args if isinstance(over, ast.Call) and last_part(over.func) in ("enumerate", "zip") else [over]
    return any(is_self(root(p)) if isinstance(p, ast.Attribute) else _is_computed(p, file) for p in parts)


def _is_computed(node: ast.expr, file: File) -> bool:
    """`scores` of `scores = self.metrics.compute()`."""
    known = isinstance(node, ast.Call) or (isinstance(node, ast.Name) and any(file.tensors.assigned(node)))
    return known and _is_metric(node, file)


def _is_for_training(call: ast.Call, file: File) -> bool:
    """In a helper that training calls too: `self.log("train_loss", ...)`, or under `if stage == "train":`."""
    names = [n for a in call.args[:1] for n in (a.keys if isinstance(a, ast.Dict) else [a])]
    if any(isinstance(n, ast.Constant) and str(n.value).startswith("train") for n in names):
        return True
    return only_in_training(call, file.nodes.ancestors(call))
