"""T8 and T13: what a step does that makes the host wait or that the Trainer does by itself.

`torch.cuda.empty_cache()` at every step goes, and so does `zero_grad()` in a step that the Trainer optimizes; neither
changes a number. `.item()` in a hot loop is told of: to keep a tensor instead may round otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod

WAITS = ("item", "cpu", "numpy", "tolist")


class EmptyCache(Codemod):
    code = "PTM309"
    name = "empty-cache"

    def plan(self, facts: Facts) -> Iterator[Change]:
        for call in facts.walk(ast.Call):
            if facts.names.resolve(call.func) != "torch.cuda.empty_cache":
                continue
            holder = facts.scopes.parents.get(call)
            hot = facts.loops.hot(call)
            if isinstance(holder, ast.Expr) and hot is not None and not hot.guarded:
                says = "`torch.cuda.empty_cache()` removed: at every step it makes the host wait"
                yield Change(holder, self.edit(facts, call, says), None, (holder,))


class Waits(Codemod):
    code = "PTM301"
    name = "item-in-hot-loop"

    def plan(self, facts: Facts) -> Iterator[Change]:
        return iter(())

    def notes(self, facts: Facts) -> Iterator[Note]:
        for call in facts.walk(ast.Call):
            f = call.func
            if not (isinstance(f, ast.Attribute) and f.attr == "item" and not call.args and not call.keywords):
                continue
            hot = facts.loops.hot(call)
            if hot is not None and not hot.guarded and hot.kind == "trains":
                line, column, _, _ = facts.text.key(call)
                says = f"`{facts.short(call)}` at every step of the loop on line {hot.line}: `.detach()` would not wait"
                yield Note(line, column + 1, self.code, says)


class ZeroedByTrainer(Codemod):
    code = "PTM505"
    name = "zeroed-gradients"

    def plan(self, facts: Facts) -> Iterator[Change]:
        for c in facts.classes.run_by_trainer:
            step = facts.classes.methods(c).get("training_step")
            if step is None or self._by_hand(c):
                continue
            for s in step.body:
                call = s.value if isinstance(s, ast.Expr) else None
                if (
                    isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Attribute)
                    and call.func.attr == "zero_grad"
                ):
                    says = f"`{facts.short(call)}` removed: the Trainer zeroes the gradients of its steps"
                    yield Change(s, self.edit(facts, call, says), None, (s,))

    def _by_hand(self, c: ast.ClassDef) -> bool:
        """Manual optimization, gradients kept over several steps, or a zeroing of the module's own."""
        for n in ast.walk(c):
            if isinstance(n, ast.Attribute) and n.attr in (
                "automatic_optimization",
                "manual_backward",
                "backward",
                "step",
            ):
                return True
            if isinstance(n, ast.FunctionDef) and n.name in (
                "optimizer_zero_grad",
                "automatic_optimization",
                "backward",
            ):
                return True
        return False
