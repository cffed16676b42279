"""What an evaluation logs as a mean of values that are each process's, or each batch's, own: that of all is another.

`self.log("acc", self.correct / self.total, sync_dist=True)` at the end of an epoch weighs every process alike, however
many batches it had; `self.log("ppl", torch.exp(loss))` is the mean of the exponentials.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from ..facts.batch_values import BATCH
from ..facts.nodes import Function, walk
from ..facts.script import Facts

ENDS = {f"{on}{kind}_epoch_end" for on in ("", "on_") for kind in ("validation", "test")}
STEPS = tuple(f"{kind}_{what}" for kind in ("validation", "test") for what in ("step", "step_end"))
IN_STEPS = (*STEPS, *(f"on_{kind}_batch_end" for kind in ("validation", "test")))
FILLS = ("append", "extend", "add_", "appendleft", "add", "update", "setdefault", "insert")
TOGETHER = ("gather", "reduce", "broadcast")  # in the name of what brings the processes' values together


class OwnValues:
    """Of the evaluations of a class; `metrics`: its attributes that hold metric objects, which are reduced."""

    def __init__(self, facts: Facts, c: ast.ClassDef, metrics: set[str]) -> None:
        self.facts, self.c = facts, c
        methods = {name: f for near in facts.classes.kin(c) for name, f in facts.classes.methods(near).items()}
        steps = [methods[name] for name in IN_STEPS if name in methods]
        self.kept = {a for f in steps for a in _filled(facts, f)} - metrics

    def of_process(self, hook: Function, call: ast.Call) -> bool:
        """Whether a hook at the end of an epoch logs there what is made of the batches of its process."""
        if hook.name not in ENDS or any(_brings_together(n) for n in walk(hook)):
            return False
        outputs = [a.arg for a in hook.args.args[1:2]] if not hook.name.startswith("on_") else []
        own = set(outputs)
        for s in sorted((n for n in walk(hook) if isinstance(n, (ast.Assign, ast.AugAssign, ast.For))), key=_line):
            value = s.iter if isinstance(s, ast.For) else s.value
            if self._is_of(value, own):
                targets = s.targets if isinstance(s, ast.Assign) else [s.target]
                own |= {n.id for t in targets for n in walk(t, ast.Name) if n.id != "self"}
        given = [*call.args[:2], *(k.value for k in call.keywords if k.arg in ("value", "dictionary"))]
        return any(self._is_of(value, own) for value in given)

    def _is_of(self, value: ast.AST, own: set[str]) -> bool:
        for n in walk(value):
            if isinstance(n, ast.Name) and n.id in own:
                return True
            if isinstance(n, ast.Attribute) and n.attr in self.kept and self.facts.classes.is_self(n.value):
                return True
        return False

    def of_batches(self, step: Function) -> Iterator[ast.AST]:
        """What a step logs that is no mean over its batch, but was made of one: its root, its exponential."""
        parameters = [a.arg for a in (*step.args.posonlyargs, *step.args.args)][1:]
        if step.name in STEPS and parameters:
            flow = self.facts.mixing.flow(step, {parameters[0]: replace(BATCH, holds=True)}, self.c)
            yield from dict.fromkeys(n for v in flow.logged for n in v.all_bent())


def _line(n: ast.AST) -> int:
    return getattr(n, "lineno", 0)


def _brings_together(n: ast.AST) -> bool:
    last = n.func.attr if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) else ""
    last = n.func.id if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) else last
    return any(word in last for word in TOGETHER)


def _filled(facts: Facts, f: ast.AST) -> Iterator[str]:
    """The attributes of `self` that a function gives values, or adds to."""
    for n in walk(f):
        target: ast.AST | None = n if isinstance(getattr(n, "ctx", None), ast.Store) else None
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in FILLS:
            target = n.func.value
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Attribute) and facts.classes.is_self(target.value):
            yield target.attr
