"""T10: in a module that a Trainer runs, half precision is the Trainer's: `precision=` instead of autocast and a scaler.

In a loop of the script's own, autocast and GradScaler are left as they are written, and told of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.autocast import AUTOCAST
from ..facts.classes import STEPS
from ..facts.nodes import walk
from ..facts.refusals import takes_gradients
from ..facts.scalers import SCALER, Scalers, Unfollowed
from ..facts.script import Facts
from ..report import Note
from ._full_precision import EVALUATED, beside_autocast, full_steps
from .argument_rewrites import set_keyword
from .base import Change, Codemod
from .branch_rewrites import body_only
from .rewrites import source

APEX = {"apex.amp.initialize", "apex.amp.scale_loss"}
TRAINERS = {"pytorch_lightning.Trainer", "lightning.Trainer", "lightning.pytorch.Trainer", "ptmigrate.runtime.Trainer"}


class AmpInModules(Codemod):
    code = "PTM605"
    name = "precision"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        done: set[ast.AST] = set()
        found = list(self._half(facts)) if facts.classes.run_by_trainer else []
        kinds = {kind for kind, _, _ in found}
        fits = len(kinds) == 1 and self._trains(facts, [n for _, n, _ in found]) and not self._is_full(facts)
        scaled = self._scaled(facts) if fits else None
        if scaled is not None:
            precision = kinds.pop()
            for _, node, index in found:
                call = node.items[0].context_expr if isinstance(node, ast.With) else node.decorator_list[index]
                done.update(walk(call))
                sign = "with " if isinstance(node, ast.With) else "@"
                says = f"`{sign}{facts.short(call)}` removed: pass precision={precision} to the Trainer"
                rewrite = body_only if isinstance(node, ast.With) else _without_decorator(index)
                yield Change(node, self.edit(facts, call, says), rewrite, (call,))
            for change in scaled:
                done.update(walk(change.node))
                yield change
            yield from self._trainers(facts, precision)
            self._evaluated(facts, [node for _, node, _ in found])
        self._rest(facts, done)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _half(self, facts: Facts) -> Iterator[tuple[str, ast.With | ast.FunctionDef, int]]:
        """The precision, and the `with` or the step with its decorator's place, that asks for autocast."""
        for c in facts.classes.run_by_trainer:
            for n in walk(c):
                if isinstance(n, ast.With) and len(n.items) == 1 and n.items[0].optional_vars is None:
                    kind = self._autocast(facts, n.items[0].context_expr)
                    if kind is not None:
                        yield kind, n, 0
                elif isinstance(n, ast.FunctionDef) and n.name in (*STEPS, "forward") and n in c.body:
                    for i, decorator in enumerate(n.decorator_list):
                        kind = self._autocast(facts, decorator)
                        if kind is not None:
                            yield kind, n, i

    def _trains(self, facts: Facts, nodes: list[ast.With | ast.FunctionDef]) -> bool:
        """Whether training is what autocast stands in: the Trainer's precision is that of every step."""
        inside = {n for node in nodes for n in (node, *facts.scopes.ancestors(node))}
        for c in facts.classes.run_by_trainer:
            step = facts.classes.methods(c).get("training_step")
            if step is None or not any(n in inside for n in walk(c)):
                continue
            if any(n in nodes for n in walk(step)[1:]) and beside_autocast(facts, step) is not None:
                return False
            known = {name: m for d in facts.classes.kin(c) for name, m in facts.classes.methods(d).items()}
            seen, pending = {step}, [step]
            while pending:
                for n in walk(pending.pop()):
                    called = "forward" if _is_self(n) else n.attr if isinstance(n, ast.Attribute) else ""
                    if called in known and known[called] not in seen:
                        seen.add(known[called])
                        pending.append(known[called])
            if not any(f in inside for f in seen):
                return False
        return True

    def _is_full(self, facts: Facts) -> bool:
        """Whether a Trainer of the file is told a precision that autocast is not."""
        given = [k.value for c in _trainers(facts) for k in c.keywords if k.arg == "precision"]
        return any(isinstance(v, ast.Constant) and str(v.value).startswith(("32", "64")) for v in given)

    def _autocast(self, facts: Facts, call: ast.expr) -> str | None:
        """The precision that `autocast()` asks for; None for any other, such as one that is switched or for the CPU."""
        full = facts.names.resolve(call.func) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or full not in AUTOCAST - {"torch.cpu.amp.autocast"}:
            return None
        switched = any(k.arg in ("enabled", None) for k in call.keywords) or len(call.args) > 2
        on_cpu = any(isinstance(n, ast.Constant) and n.value == "cpu" for n in walk(call))
        if switched or on_cpu or (full == "torch.cuda.amp.autocast" and call.args):
            return None
        half = any(n.attr == "bfloat16" for n in walk(call, ast.Attribute))
        return '"bf16-mixed"' if half else '"16-mixed"'

    def _scaled(self, facts: Facts) -> list[Change] | None:
        """The module's own scaler taken away, where the Trainer's does all that it does; None where that does not show.

        With both, gradients would be scaled twice.
        """
        try:
            scalers = Scalers(facts)
            return list(self._of_scalers(facts, scalers)) if scalers.made else []
        except Unfollowed:
            return None

    def _of_scalers(self, facts: Facts, scalers: Scalers) -> Iterator[Change]:
        steps = 0
        for read in scalers.reads():
            f = facts.scopes.parents.get(read)
            call = facts.scopes.parents.get(f) if isinstance(f, ast.Attribute) else None
            if not (isinstance(f, ast.Attribute) and isinstance(call, ast.Call)):
                raise Unfollowed
            up = facts.scopes.parents.get(call)
            holder = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) else up
            taken = facts.text.get(call.args[0]) if len(call.args) == 1 and not call.keywords else None
            if f.attr == "update" and isinstance(up, ast.Expr):
                says = f"`{facts.short(call)}` removed: the Trainer's optimizers do it when they step"
                yield Change(up, self.edit(facts, call, says), None, (up,))
                continue
            if f.attr == "step" and taken is not None:
                new, node, steps = f"{taken}.step()", call, steps + 1
            elif f.attr == "scale" and taken is not None and _is_backward(up, holder):
                assert isinstance(holder, ast.Call)
                new, node = f"self.manual_backward({taken})", holder
            else:
                raise Unfollowed
            yield Change(node, self.edit(facts, node, f"`{facts.short(node)}` became `{new}`"), source(new))
        if steps > len(scalers.made) or any(facts.scopes.parents.get(c) is not s for c, s in scalers.made.items()):
            raise Unfollowed  # stepped for several optimizers, or not always there
        for call, made in scalers.made.items():
            if call.keywords:
                raise Unfollowed
            says = f"`{facts.short(made)}` removed: the Trainer's precision= scales"
            yield Change(made, self.edit(facts, made, says), None, (made,))

    def _evaluated(self, facts: Facts, nodes: list[ast.With | ast.FunctionDef]) -> None:
        """Tells of the steps that evaluate in full precision, where autocast stood in the step that trains alone."""
        for c in facts.classes.run_by_trainer:
            step = facts.classes.methods(c).get("training_step")
            alone = step is not None and all(n in walk(step) for n in nodes if n in walk(c))
            for other in full_steps(facts, c) if alone else ():
                line, column, _, _ = facts.text.key(other)
                self.left.append(Note(line, column + 1, self.code, EVALUATED))

    def _trainers(self, facts: Facts, precision: str) -> Iterator[Change]:
        found = _trainers(facts)
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
            full = facts.names.resolve(c.func) or ""
            told = full in AUTOCAST | SCALER | APEX or full.startswith("apex.fp16_utils.")
            told = told or takes_gradients(c)
            if c not in done and told and not _is_off(c):
                line, column, _, _ = facts.text.key(c)
                says = f"`{facts.short(c)}` left as it is: a Trainer or Runtime takes precision= instead"
                self.left.append(Note(line, column + 1, self.code, says))
        for kind in (ast.Name, ast.Attribute) if "autocast" in facts.text.text else ():
            for n in facts.walk(kind):
                if facts.names.resolve(n) in AUTOCAST and n not in done and _is_handed_on(facts, n):
                    line, column, _, _ = facts.text.key(n)
                    says = f"`{facts.short(n)}` left as it is, handed on: a Trainer or Runtime takes precision= instead"
                    self.left.append(Note(line, column + 1, self.code, says))


def _trainers(facts: Facts) -> list[ast.Call]:
    return [c for c in facts.walk(ast.Call) if facts.names.resolve(c.func) in TRAINERS]


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "self"


def _is_handed_on(facts: Facts, n: ast.AST) -> bool:
    """`self.half = autocast if wanted else nullcontext`: read, and neither called nor given another name."""
    up = facts.scopes.parents.get(n)
    named = isinstance(up, ast.Assign) and all(isinstance(t, ast.Name) for t in up.targets)
    called = isinstance(up, ast.Call) and up.func is n
    return isinstance(getattr(n, "ctx", None), ast.Load) and not (called or named or isinstance(up, ast.arg))


def _is_off(call: ast.Call) -> bool:
    """`autocast(enabled=False)`: full precision within half, which stays what it is."""
    return any(
        k.arg == "enabled" and isinstance(k.value, ast.Constant) and k.value.value is False for k in call.keywords
    )


def _is_backward(up: ast.AST | None, holder: ast.AST | None) -> bool:
    plain = isinstance(holder, ast.Call) and not holder.args and not holder.keywords
    return plain and isinstance(up, ast.Attribute) and up.attr == "backward"


def _without_decorator(index: int) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        gone = updated.decorators[index]
        kept = [d for i, d in enumerate(updated.decorators) if i != index]
        above = [*gone.leading_lines, *(kept[0].leading_lines if kept and not index else ())]
        if index:
            return updated.with_changes(decorators=kept)
        if kept:
            return updated.with_changes(decorators=[kept[0].with_changes(leading_lines=above), *kept[1:]])
        lines = [*above, *updated.lines_after_decorators]
        return updated.with_changes(
            decorators=kept, leading_lines=[*updated.leading_lines, *lines], lines_after_decorators=[]
        )

    return rewrite
