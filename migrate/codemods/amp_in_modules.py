"""T10: in a module that a Trainer runs, half precision is the Trainer's: `precision=` instead of autocast and a scaler.

In a loop of the script's own, autocast and GradScaler are left as they are written, and told of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod
from .rewrites import body_only, set_keyword

AUTOCAST = {"torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"}
SCALER = {"torch.amp.GradScaler", "torch.cuda.amp.GradScaler"}
APEX = {"apex.amp.initialize", "apex.amp.scale_loss"}
TRAINERS = {"pytorch_lightning.Trainer", "lightning.Trainer", "lightning.pytorch.Trainer", "ptmigrate.runtime.Trainer"}


class AmpInModules(Codemod):
    code = "PTM605"
    name = "precision"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        inside = [s for c in facts.classes.run_by_trainer for s in ast.walk(c) if isinstance(s, ast.With)]
        asked: set[str] = set()
        done: set[ast.AST] = set()
        for s in inside:
            kind = self._autocast(facts, s)
            if kind is None:
                continue
            asked.add(kind)
            done.update(ast.walk(s.items[0]))
            says = f"`with {facts.short(s.items[0].context_expr)}:` removed: pass precision={kind} to the Trainer"
            yield Change(s, self.edit(facts, s, says), body_only, (s.items[0],))
        if len(asked) == 1:
            yield from self._trainers(facts, next(iter(asked)))
        self._rest(facts, done)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _autocast(self, facts: Facts, s: ast.With) -> str | None:
        """The precision that a `with autocast():` asks for; None for any other."""
        call = s.items[0].context_expr
        if len(s.items) != 1 or s.items[0].optional_vars is not None or not isinstance(call, ast.Call):
            return None
        if facts.names.resolve(call.func) not in AUTOCAST or any(k.arg == "enabled" for k in call.keywords):
            return None
        half = any(isinstance(n, ast.Attribute) and n.attr == "bfloat16" for n in ast.walk(call))
        return '"bf16-mixed"' if half else '"16-mixed"'

    def _trainers(self, facts: Facts, precision: str) -> Iterator[Change]:
        found = [c for c in facts.walk(ast.Call) if facts.names.resolve(c.func) in TRAINERS]
        for c in found:
            if not any(k.arg in ("precision", None) for k in c.keywords):
                yield Change(
                    c,
                    self.edit(facts, c, f"precision={precision} given to the Trainer"),
                    set_keyword("precision", precision),
                )
        if not found:
            self.left.append(
                Note(1, 1, self.code, f"pass precision={precision} to the Trainer: autocast left the steps")
            )

    def _rest(self, facts: Facts, done: set[ast.AST]) -> None:
        for c in facts.walk(ast.Call):
            full = facts.names.resolve(c.func)
            if c not in done and full in AUTOCAST | SCALER | APEX:
                line, column, _, _ = facts.text.key(c)
                says = f"`{facts.short(c)}` left as it is: a Trainer or Runtime takes precision= instead"
                self.left.append(Note(line, column + 1, self.code, says))
