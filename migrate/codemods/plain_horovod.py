"""T9: `hvd.DistributedOptimizer(optimizer, ...)` is the optimizer, and nothing waits for the gradients of others.

What Horovod has as torch.distributed has it (ranks, sizes, broadcasts, reductions) is plain_process's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument_at, given_to
from ..facts.distribution import distribution_of
from ..facts.horovod_names import RUNS, Horovod
from ..facts.nodes import walk
from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod
from .branch_rewrites import body_only, without_item
from .empty_functions import WHY
from .rewrites import source, take_argument

AVERAGES = "horovod.torch.Average"
HANDED = "the runtime brings the gradients together"


class PlainHorovod(Codemod):
    code = "PTM420"
    name = "plain-horovod"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        if "horovod" not in facts.text.text and "skip_synchronize" not in facts.text.text:
            return
        found = distribution_of(facts)
        if next(found.blocking(), None) is not None:
            return
        for call, inner in found.horovod.wrapped.items():
            self._tell(facts, call)
            yield self._unwrapped(facts, call, inner)
        for s in found.horovod.settings():
            yield Change(s, self.edit(facts, s, f"`{facts.short(s)}` removed: {HANDED}"), None, (s,))
        yield from self._waits(facts, found.horovod)
        for call, full in found.full.items():
            if full == RUNS:
                yield self._run(facts, call)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _tell(self, facts: Facts, call: ast.Call) -> None:
        """Gradients that were summed, or brought together by Adasum: the runtime has their mean."""
        op = argument_at(call, "op", 4)
        if op is not None and facts.names.resolve(op) != AVERAGES:
            says = "gradients are averaged over the processes, and not otherwise"
            self._left(facts, op, f"`op={facts.short(op)}`: {says}")

    def _left(self, facts: Facts, node: ast.AST, says: str) -> None:
        line, column, _, _ = facts.text.key(node)
        self.left.append(Note(line, column + 1, self.code, says))

    def _unwrapped(self, facts: Facts, call: ast.Call, inner: ast.expr) -> Change:
        edit = self.edit(facts, call, f"`{facts.short(call)}` removed: {HANDED}")
        s = facts.scopes.parents.get(call)
        if isinstance(s, ast.Assign) and [ast.unparse(t) for t in s.targets] == [ast.unparse(inner)]:
            return Change(s, edit, None, (s,))
        others = (a for a in (*call.args, *call.keywords) if a is not inner and getattr(a, "value", 0) is not inner)
        return Change(call, edit, take_argument(given_to(call).index(inner)), (call.func, *others))

    def _waits(self, facts: Facts, horovod: Horovod) -> Iterator[Change]:
        for a in horovod.waits():
            call = facts.scopes.parents.get(a)
            up = facts.scopes.parents.get(call) if isinstance(call, ast.Call) and call.func is a else None
            says = f"`{facts.short(call or a)}` removed: {HANDED}"
            if isinstance(up, ast.Expr):
                yield Change(up, self.edit(facts, a, says), None, (up,))
            elif isinstance(up, ast.withitem) and isinstance(s := facts.scopes.parents.get(up), ast.With):
                alone = len(s.items) == 1
                rewrite = body_only if alone else without_item(s.items.index(up))
                yield Change(s, self.edit(facts, a, says), rewrite, (up,), head=not alone)
            else:
                self._left(facts, call or a, f"`{facts.short(call or a)}`: nothing wraps the optimizer")

    def _run(self, facts: Facts, call: ast.Call) -> Change:
        """`horovod.run(train, args=(args,), np=4)`: what each process gives, in a list."""
        given, options = argument_at(call, "args", 1), argument_at(call, "kwargs", 2)
        parts = [f"*{facts.text.get(given)}"] if given is not None else []
        if isinstance(given, (ast.Tuple, ast.List)):
            parts = [facts.text.get(e) for e in given.elts]
        parts += [f"**{facts.text.get(options)}"] if options is not None else []
        new = f"[{facts.text.get(call.args[0])}({', '.join(parts)})]"
        says = f"`{facts.short(call)}` became `{new}`: {WHY}"
        return Change(call, self.edit(facts, call, says), source(new), tuple(walk(call.func)))
