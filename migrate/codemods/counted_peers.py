"""T9: an option that says how many processes are started is 1 where it is read for more than to start them.

What gathers from as many peers has one place for each: the others would stay as they were made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument_at
from ..facts.distribution import Distribution, distribution_of
from ..facts.gathered import ALONE
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.spelled import spelled
from ..facts.world import PLAIN
from .base import Change, Codemod
from .empty_functions import WHY
from .rewrites import source

LISTS = {full for full, (*_, new) in ALONE.items() if new.startswith("{0}[0]")}


class CountedPeers(Codemod):
    code = "PTM420"
    name = "counted-peers"

    def plan(self, facts: Facts) -> Iterator[Change]:
        found = distribution_of(facts)
        if not found.by_hand or next(found.blocking(), None) is not None:
            return
        yield from self._options(facts, found)
        for call, full in found.full.items():
            number = _number_of_places(facts, found, call) if full in LISTS else None
            if number is not None and not _is_one(facts, number):
                says = f"`{facts.short(number)}` is 1 in a plain script: {WHY}"
                yield Change(number, self.edit(facts, number, says), source("1"))

    def _options(self, facts: Facts, found: Distribution) -> Iterator[Change]:
        """`args.nprocs` and `args["nprocs"]` of `mp.spawn(main, nprocs=args.nprocs)`."""
        started = [*((argument_at(c, "nprocs", 2), c) for c in found.spawns), *((s.n, s.loop) for s in found.started)]
        numbers = {spelled(n) for n, _ in started if isinstance(n, (ast.Attribute, ast.Subscript))}
        within = {part for _, start in started for part in walk(start)} if numbers else set()
        reads: list[ast.Attribute | ast.Subscript] = []
        if numbers:
            reads += [*facts.walk(ast.Attribute), *facts.walk(ast.Subscript)]
        alike = [n for n in reads if spelled(n) in numbers]
        given = {spelled(n) for n in alike if not isinstance(n.ctx, ast.Load)}  # a number of the script's own
        for node in alike:
            if node in within or spelled(node) in given or facts.is_fixed(node):
                continue
            says = f"`{facts.short(node)}` is 1 in a plain script: {WHY}"
            yield Change(node, self.edit(facts, node, says), source("1"), tuple(ast.iter_child_nodes(node)))


def _number_of_places(facts: Facts, found: Distribution, call: ast.Call) -> ast.expr | None:
    """`n` of `parts = [torch.zeros_like(x) for _ in range(n)]` or `parts = [None] * n`, which the call fills."""
    given = found.gathered(call)
    scope = facts.scopes.scope_of(given[0]).lookup(given[0].id) if given and isinstance(given[0], ast.Name) else None
    made = facts.devices.assigned(given[0].id, scope) if given and scope and isinstance(given[0], ast.Name) else None
    value = made[0] if made is not None and len(made) == 1 else None
    if isinstance(value, ast.ListComp) and len(value.generators) == 1 and not value.generators[0].ifs:
        over = value.generators[0].iter
        ranged = isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "range"
        return over.args[0] if isinstance(over, ast.Call) and ranged and len(over.args) == 1 else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and isinstance(value.left, ast.List):
        return value.right if len(value.left.elts) == 1 else None
    return None


def _is_one(facts: Facts, number: ast.expr) -> bool:
    known = facts.worlds.value(number, PLAIN)
    return known is not None and known.value == 1
