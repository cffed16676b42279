"""T4, first: `train_sampler, test_sampler = DistributedSampler(a), DistributedSampler(b)` is a statement for each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Facts
from ._apart import apart, parts
from .base import Change, Codemod
from .sampler_arguments import SAMPLER, draws_all


class SamplerPairs(Codemod):
    code = "PTM401"
    name = "sampler-pairs"

    def plan(self, facts: Facts) -> Iterator[Change]:
        for s in facts.walk(ast.Assign):
            made = [v for _, v in parts(facts, s) if self._is_sampler(facts, v)]
            if made and s.lineno == s.end_lineno:  # all that is told later has the line that it had
                says = f"`{facts.short(s)}`: each of them has its own, so that a sampler can go"
                yield Change(s, self.edit(facts, s, says), apart())

    def _is_sampler(self, facts: Facts, value: ast.expr) -> bool:
        if isinstance(value, ast.IfExp):
            return self._is_sampler(facts, value.body) or self._is_sampler(facts, value.orelse)
        return isinstance(value, ast.Call) and facts.names.resolve(value.func) == SAMPLER and not draws_all(value)
