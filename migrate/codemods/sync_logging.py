"""T5: what validation and test steps log is reduced over the processes, so that each decides by the same numbers.

Metric objects reduce themselves. A helper that training logs through too synchronizes only when it does not train.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.classes import STEPS
from ..facts.script import Facts
from .base import Change, Codemod
from .rewrites import set_keyword

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


class SyncLogging(Codemod):
    code = "PTM402"
    name = "sync-logging"

    def plan(self, facts: Facts) -> Iterator[Change]:
        for c in facts.classes.run_by_trainer:
            metrics = self._metrics(facts, c)
            for name, method in facts.classes.methods(c).items():
                when = self._when(facts, c, name)
                if when is None:
                    continue
                for call in ast.walk(method):
                    if isinstance(call, ast.Call) and self._logs(call) and not self._is_metric(facts, call, metrics):
                        says = f"`{facts.short(call.func)}` in {name}: sync_dist={when}"
                        yield Change(call, self.edit(facts, call, says), set_keyword("sync_dist", when))

    def _when(self, facts: Facts, c: ast.ClassDef, name: str) -> str | None:
        """The source of `sync_dist=` in a method: True in evaluation, what tells training apart in a shared helper."""
        seen, pending, reached = {name}, [name], set()
        while pending:
            at = pending.pop()
            if at in EVALUATION | TRAINING or at in STEPS:
                reached.add(at)
                continue
            for caller in facts.classes.callers(c, at) - seen:
                seen.add(caller)
                pending.append(caller)
        if not reached & EVALUATION:
            return None
        return "not self.training" if reached - EVALUATION else "True"

    def _logs(self, call: ast.Call) -> bool:
        f = call.func
        return (
            isinstance(f, ast.Attribute)
            and f.attr in ("log", "log_dict")
            and isinstance(f.value, ast.Name)
            and f.value.id == "self"
            and not any(k.arg == "sync_dist" or k.arg is None for k in call.keywords)
            and not any(isinstance(a, ast.Starred) for a in call.args)
            and len(call.args) < 8
            and bool(call.args or call.keywords)
        )

    def _is_metric(self, facts: Facts, call: ast.Call, metrics: set[str]) -> bool:
        value = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "value"), None)
        if value is None and isinstance(call.func, ast.Attribute) and call.func.attr == "log_dict" and call.args:
            value = call.args[0]
        if isinstance(value, ast.Subscript):
            value = value.value
        return (
            isinstance(value, ast.Attribute)
            and isinstance(value.value, ast.Name)
            and value.value.id == "self"
            and value.attr in metrics
        )

    def _metrics(self, facts: Facts, c: ast.ClassDef) -> set[str]:
        """Attributes that hold metric objects: of torchmetrics or a Metric class, or clones of those."""
        found: set[str] = set()
        for n in ast.walk(c):
            if not (isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)):
                continue
            full = facts.names.resolve(n.value.func) or ast.unparse(n.value.func)
            if "metrics" in full.lower() or "Metric" in full or full.endswith(".clone"):
                found.update(t.attr for t in n.targets if isinstance(t, ast.Attribute))
        return found
