"""T9: a ZeroRedundancyOptimizer is the optimizer whose state it divides; it needs a process group even on one process.

A strategy that divides optimizers (`ddp_sharded`) divides any. What gathers the parts for saving them goes with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument_at
from ..facts.distribution import distribution_of
from ..facts.nodes import walk
from ..facts.operands import ATOM, closed
from ..facts.script import Facts
from ..report import Note
from .argument_rewrites import change_call
from .base import Change, Codemod
from .branch_rewrites import else_only
from .rewrites import source

ZERO = (
    "torch.distributed.optim.ZeroRedundancyOptimizer",
    "torch.distributed.optim.zero_redundancy_optimizer.ZeroRedundancyOptimizer",
)
PARAMETERS = ("params", "optimizer_class", "process_group", "parameters_as_bucket_view", "overlap_with_ddp")
OWN = set(PARAMETERS[1:])
GATHERS = "consolidate_state_dict"
WHY = 'the optimizer is whole; Trainer(strategy="ddp_sharded") divides its state again'


class PlainOptimizers(Codemod):
    code = "PTM420"
    name = "plain-optimizers"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        if "ZeroRedundancyOptimizer" not in facts.text.text:
            return
        made = [c for c in facts.walk(ast.Call) if facts.names.resolve(c.func) in ZERO]
        plain = [c for c in made if distribution_of(facts).by_hand and _is_plain(c)]
        for call in made:
            if call in plain:
                yield from self._whole(facts, call)
            else:
                line, column, _, _ = facts.text.key(call)
                says = f"`{facts.short(call)}` divides an optimizer over a process group of the script's own"
                self.left.append(Note(line, column + 1, self.code, says))
        if plain and len(plain) == len(made):
            yield from self._gathers(facts)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _whole(self, facts: Facts, call: ast.Call) -> Iterator[Change]:
        kind = argument_at(call, "optimizer_class", 1)
        assert kind is not None
        branch = _alike(facts, call, kind)
        if branch is not None:
            says = f"`if {facts.short(branch.test)}:` removed: {WHY}"
            yield Change(branch, self.edit(facts, branch, says), else_only, (branch.test, *branch.body))
            return
        others = [k for k in call.keywords if k.arg in OWN and k.value is not kind]
        new = closed(facts.text.get(kind), ATOM)
        edit = self.edit(facts, call, f"`{facts.short(call)}` became `{new}`: {WHY}")
        yield Change(call.func, edit, source(new))
        yield Change(call, edit, change_call(PARAMETERS, OWN, {}), (*call.args[1:], *others), told=False)

    def _gathers(self, facts: Facts) -> Iterator[Change]:
        """`optimizer.consolidate_state_dict(to=0)`, and the question whether it is such an optimizer."""
        gone: set[ast.AST] = set()
        for call in facts.walk(ast.Call):
            holder = facts.scopes.parents.get(call)
            asked = isinstance(call.func, ast.Attribute) and call.func.attr == GATHERS
            if not (asked and isinstance(holder, ast.Expr)):
                continue
            up = facts.scopes.parents.get(holder)
            alone = isinstance(up, ast.If) and up.body == [holder] and not up.orelse and not facts.text.is_elif(up)
            node = up if isinstance(up, ast.If) and alone and _asks_kind(facts, up.test) else holder
            if node not in gone:
                gone.add(node)
                says = f"`{facts.short(call)}` removed: {WHY}"
                yield Change(node, self.edit(facts, call, says), None, (node,))


def _is_plain(call: ast.Call) -> bool:
    """Whether the optimizer that it divides shows, and steps are its own: no hook of a wrapped model makes them."""
    overlap = argument_at(call, "overlap_with_ddp", 4)
    own_steps = overlap is None or (isinstance(overlap, ast.Constant) and not overlap.value)
    spread = any(isinstance(a, ast.Starred) for a in call.args)
    return own_steps and not spread and argument_at(call, "optimizer_class", 1) is not None


def _asks_kind(facts: Facts, test: ast.expr) -> bool:
    """`isinstance(optimizer, ZeroRedundancyOptimizer)`"""
    if not (isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"):
        return False
    return len(test.args) == 2 and facts.names.resolve(test.args[1]) in ZERO


def _alike(facts: Facts, call: ast.Call, kind: ast.expr) -> ast.If | None:
    """The choice `if sharded: o = ZeroRedundancyOptimizer(ps, Adam, lr=1)`, `else: o = Adam(ps, lr=1)`."""
    holder = facts.scopes.parents.get(call)
    branch = facts.scopes.parents.get(holder) if holder is not None else None
    if not (isinstance(branch, ast.If) and branch.body == [holder] and len(branch.orelse) == 1):
        return None
    looks = not any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for n in walk(branch.test))
    if facts.text.is_elif(branch) or not looks:
        return None
    stays = [k for k in call.keywords if k.arg not in OWN]
    plain = ast.unparse(ast.Call(kind, call.args[:1], stays))
    here = ast.unparse(holder).replace(ast.unparse(call), plain, 1)  # type: ignore[arg-type]
    return branch if here == ast.unparse(branch.orelse[0]) else None
