"""Horovod by hand: what a script has of it, and what of that has a plain form.

Ranks, sizes, broadcasts and reductions go as those of torch.distributed go; DistributedOptimizer gives back the
optimizer that it wraps: https://horovod.readthedocs.io/en/stable/pytorch.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from .arguments import argument_at
from .gathered import ALONE_VALUES
from .handles import statements_of
from .nodes import walk
from .process_names import LAUNCHED, RANKS, WORLDS, H
from .refusals import is_optional

if TYPE_CHECKING:
    from .script import Facts

WRAPS = H + "DistributedOptimizer"
RUNS = "horovod.run"
# statements without which a plain script does the same
STATEMENTS = {
    H + n for n in ("init", "shutdown", "barrier", "join", "broadcast_parameters", "broadcast_optimizer_state")
}


class Horovod:
    def __init__(self, facts: Facts, full: dict[ast.Call, str | None]) -> None:
        self.facts, self.full = facts, full

    @cached_property
    def named(self) -> list[ast.Name | ast.Attribute]:
        """What of Horovod is named, whole: `hvd.rank`, `hvd.Compression.fp16`."""
        if "horovod" not in self.facts.text.text:
            return []
        nodes: list[ast.Name | ast.Attribute] = [*self.facts.walk(ast.Attribute), *self.facts.walk(ast.Name)]
        parents, resolve = self.facts.scopes.parents, self.facts.names.resolve
        whole = (n for n in nodes if isinstance(n.ctx, ast.Load) and not isinstance(parents.get(n), ast.Attribute))
        return [n for n in whole if (resolve(n) or "").startswith("horovod.")]

    @cached_property
    def wrapped(self) -> dict[ast.Call, ast.expr]:
        """The calls that wrap an optimizer, and the optimizer of each."""
        calls = ((c, argument_at(c, "optimizer", 0)) for c, full in self.full.items() if full == WRAPS)
        return {c: inner for c, inner in calls if inner is not None}

    @cached_property
    def by_hand(self) -> bool:
        """Whether the script starts it, or has it wrap an optimizer; one way of several stays where it cannot go."""
        starts = [c for c, full in self.full.items() if full in (H + "init", WRAPS)]
        whole = next(self.blocking(), None) is None
        return any(whole or not is_optional(self.facts, c) for c in starts)

    def blocking(self) -> Iterator[ast.expr]:
        """What has no plain form."""
        settings = {n for s in self.settings() for n in walk(s)}
        within = {n for c in self.wrapped for n in walk(c)}
        for n in self.named:
            call = self.facts.scopes.parents.get(n)
            plain = isinstance(call, ast.Call) and call.func is n and self._has_plain_form(call)
            if not plain and n not in settings and n not in within:
                yield call if isinstance(call, ast.Call) and call.func is n else n

    def _has_plain_form(self, call: ast.Call) -> bool:
        full = self.full.get(call) or ""
        if full in ALONE_VALUES or full == RUNS:
            return bool(call.args) and not isinstance(call.args[0], ast.Starred)
        if full in STATEMENTS:
            return statements_of(self.facts, call) is not None
        return full in RANKS or full in WORLDS or full in LAUNCHED or call in self.wrapped

    def settings(self) -> Iterator[ast.Assign]:
        """`compression = hvd.Compression.fp16 if args.fp16 else hvd.Compression.none`, read by what wraps alone."""
        within = {n for c in self.wrapped for n in walk(c)}
        for s in {self.facts.scopes.statement_of(n) for n in self.named if n not in within}:
            target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
            if isinstance(s, ast.Assign) and isinstance(target, ast.Name) and not walk(s.value, ast.Call):
                reads = list(self.facts.scopes.reads(target.id, self.facts.scopes.scope_of(s)))
                if reads and within.issuperset(reads):
                    yield s

    def waits(self) -> Iterator[ast.Attribute]:
        """`optimizer.synchronize` and `optimizer.skip_synchronize`, which an optimizer has that was wrapped."""
        skips = self.facts.attributes.get("skip_synchronize", ())
        yield from skips
        for a in self.facts.attributes.get("synchronize", ()) if skips or self.wrapped else ():
            if self.facts.names.resolve(a) is None and "opt" in ast.unparse(a.value).lower():
                yield a
