"""T8 and T13: what a step does that makes the host wait or that the Trainer does by itself.

`torch.cuda.empty_cache()` at every step goes, and so does `zero_grad()` in a step that the Trainer optimizes; neither
changes a number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.seldom import decided_by_the_step
from ..facts.started import functions_from, names_read
from ..report import Note
from .argument_rewrites import set_keyword
from .base import Change, Codemod


class EmptyCache(Codemod):
    code = "PTM309"
    name = "empty-cache"

    def plan(self, facts: Facts) -> Iterator[Change]:
        for call in facts.called.get("torch.cuda.empty_cache", ()):
            holder = facts.scopes.parents.get(call)
            hot = facts.loops.hot(call)
            every = hot is not None and not hot.guarded
            if every and isinstance(holder, ast.Expr) and not decided_by_the_step(call, facts.scopes.ancestors(call)):
                says = "`torch.cuda.empty_cache()` removed: at every step it makes the host wait"
                yield Change(holder, self.edit(facts, call, says), None, (holder,))


class ZeroedByTrainer(Codemod):
    code = "PTM505"
    name = "zeroed-gradients"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        for c in facts.classes.run_by_trainer:
            step = facts.classes.methods(c).get("training_step")
            if step is None or _reads_gradients(step) or any(self._by_hand(d) for d in facts.classes.kin(c)):
                continue
            gone = list(self._zeroing(facts, step.body))
            if gone and _accumulates(facts):
                self._tell(facts, gone, "it takes back what accumulate_grad_batches keeps")
                continue
            self._tell(facts, self._left(facts, step, gone), "the Trainer zeroes the gradients of its steps already")
            for s in gone:
                says = f"`{facts.short(s)}` removed: the Trainer zeroes the gradients of its steps"
                yield Change(s, self.edit(facts, s, says), None, (s,))
            for s in step.body if gone else ():
                if self._only_for(facts, s, gone):
                    says = f"`{facts.short(s)}` removed: nothing reads it any more"
                    yield Change(s, self.edit(facts, s, says), None, (s,))

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _tell(self, facts: Facts, left: Iterable[ast.AST], says: str) -> None:
        for s in left:
            line, column, _, _ = facts.text.key(s)
            self.left.append(Note(line, column + 1, self.code, f"`{facts.short(s)}`: {says}"))

    def _left(self, facts: Facts, step: ast.AST, gone: list[ast.stmt]) -> Iterator[ast.AST]:
        """What sets gradients to zero in a `try`, a lambda or a function that the step calls."""
        if "zero_grad" not in facts.text.text:
            return
        inside = {n for s in gone for n in walk(s)}
        called = {f for name in names_read(step) for f in functions_from(facts, name, names_read)}
        for f in (step, *sorted(called - {step}, key=lambda f: f.lineno)):
            for n in walk(f, ast.Call):
                if n not in inside and self._of_an_optimizer(facts, n.func):
                    yield n

    def _zeroing(self, facts: Facts, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        """The statements of a block, and of the blocks in it, that do nothing but set gradients to zero."""
        for s in body:
            if self._zeroes(facts, s):
                yield s
            elif isinstance(s, (ast.If, ast.With, ast.For)):
                for block in (s.body, getattr(s, "orelse", [])):
                    found = list(self._zeroing(facts, block))
                    yield from found if len(found) < len(block) else ()  # what opens a block may do more

    def _zeroes(self, facts: Facts, s: ast.stmt) -> bool:
        """`zero_grad()` of what may be an optimizer or a module, at every step or now and then."""
        if isinstance(s, ast.If):
            looks = not any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for n in walk(s.test))
            return looks and not s.orelse and all(self._zeroes(facts, x) for x in s.body)
        if isinstance(s, ast.For):
            return _over_optimizers(s.iter) and not s.orelse and all(self._zeroes(facts, x) for x in s.body)
        func = s.value.func if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) else None
        if walk(s, ast.NamedExpr):
            return False  # what it names may be read below
        return func is not None and self._of_an_optimizer(facts, func)

    def _of_an_optimizer(self, facts: Facts, func: ast.expr) -> bool:
        """`opt.zero_grad` of what may be an optimizer or a module."""
        if not (isinstance(func, ast.Attribute) and func.attr == "zero_grad"):
            return False
        of = func.value
        given = facts.devices.attribute_values.get(of.attr, ()) if isinstance(of, ast.Attribute) else ()
        made = {v.func.id for v in given if isinstance(v, ast.Call) and isinstance(v.func, ast.Name)}
        others = {c.name for c in facts.walk(ast.ClassDef) if not c.bases}
        return not made & others  # a plain class of this file has a zero_grad of its own

    def _only_for(self, facts: Facts, s: ast.stmt, gone: list[ast.stmt]) -> bool:
        """`opt = self.optimizers()`, which only what goes read."""
        call = s.value if isinstance(s, ast.Assign) else None
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "self.optimizers" and len(s.targets) == 1):  # type: ignore[attr-defined]
            return False
        names = list(walk(s.targets[0], ast.Name))  # type: ignore[attr-defined]
        scope = facts.scopes.scope_of(s)
        inside = {n for g in gone for n in walk(g)}
        reads = [r for n in names for r in facts.scopes.reads(n.id, scope)]
        alone = all(len(scope.stores[n.id]) == 1 for n in names)
        return alone and bool(reads) and all(r in inside for r in reads)

    def _by_hand(self, c: ast.ClassDef) -> bool:
        """Manual optimization, gradients kept over several steps, or a zeroing of the module's own."""
        for n in walk(c):
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


class ShardedNeedsZeros(Codemod):
    """FairScale's ShardedDDP reads the gradients that it let go of: it trains wrongly, and silently, without zeros."""

    code = "PTM510"
    name = "sharded-needs-zeros"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        if not any("fairscale" in (s.module or "") for s in facts.walk(ast.ImportFrom)) and not any(
            "fairscale" in a.name for s in facts.walk(ast.Import) for a in s.names
        ):
            return
        made = [c for c in facts.walk(ast.Call) if _is_sharded(facts.names.resolve(c.func) or "")]
        for call in facts.walk(ast.Call) if made else ():
            f = call.func
            if not (isinstance(f, ast.Attribute) and f.attr == "zero_grad"):
                continue
            if not call.args and not call.keywords:
                says = f"`{facts.short(call)}`: set_to_none=False, without which ShardedDataParallel trains wrongly"
                yield Change(call, self.edit(facts, call, says), set_keyword("set_to_none", "False"))
            elif "False" not in map(ast.unparse, _given(call)):
                self._tell(facts, call)
        for s in facts.walk(ast.Assign) if made else ():
            clears = isinstance(s.value, ast.Constant) and s.value.value is None
            if clears and any(isinstance(t, ast.Attribute) and t.attr == "grad" for t in s.targets):
                self._tell(facts, s)

    def _tell(self, facts: Facts, node: ast.AST) -> None:
        line, column, _, _ = facts.text.key(node)
        says = f"`{facts.short(node)}`: ShardedDataParallel trains wrongly without zeros: set_to_none=False"
        self.left.append(Note(line, column + 1, self.code, says))

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left


def _reads_gradients(step: ast.AST) -> bool:
    """Whether a step looks at `p.grad`: zeros there are not what the step before left."""
    return any(n.attr == "grad" and isinstance(n.ctx, ast.Load) for n in walk(step, ast.Attribute))


def _over_optimizers(over: ast.expr) -> bool:
    """`for opt in self.optimizers():`"""
    return ast.unparse(over) in ("self.optimizers()", "self.trainer.optimizers")


def _accumulates(facts: Facts) -> bool:
    """Whether a Trainer of the file adds up the gradients of several batches."""
    if "accumulate_grad_batches" not in facts.text.text:
        return False
    given = [k.value for c in facts.walk(ast.Call) for k in c.keywords if k.arg == "accumulate_grad_batches"]
    return any(not (isinstance(v, ast.Constant) and v.value in (1, None)) for v in given)


def _given(call: ast.Call) -> list[ast.expr]:
    return given_to(call)


def _is_sharded(full: str) -> bool:
    return full.startswith("fairscale.") and full.endswith((".ShardedDataParallel", ".ShardedDDP"))
