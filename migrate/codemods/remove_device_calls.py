"""T1: the runtime places modules and batches, so `.cuda()` and `.to(device)` go.

`.to(device, dtype)` keeps the dtype; an assignment of a name to itself goes whole. A tensor that the script makes itself
(`torch.zeros(3).cuda()`) is not placed by the runtime and is left to T2.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.script import Facts
from .base import Change, Codemod

# what these return is a tensor that nobody else will move
MAKES_TENSORS = {
    "torch." + n
    for n in (
        "tensor as_tensor from_numpy zeros ones full empty rand randn randint randperm arange linspace eye "
        "zeros_like ones_like rand_like randn_like full_like empty_like Tensor FloatTensor LongTensor normal bernoulli"
    ).split()
} | {"torch.autograd.Variable"}


class RemoveDeviceCalls(Codemod):
    code = "PTM101"
    name = "remove-device-calls"

    def plan(self, facts: Facts) -> Iterator[Change]:
        gone: set[ast.AST] = set()
        for statement in facts.walk(ast.Assign):
            if self._moves_to_itself(facts, statement):
                gone.update(ast.walk(statement))
                says = f"`{facts.short(statement)}` removed: the runtime places batches and modules"
                yield Change(statement, self.edit(facts, statement, says), None, (statement,))
        for call in facts.walk(ast.Call):
            if call in gone:
                continue
            receiver = facts.devices.moved(call)
            if receiver is None or not placed_by_runtime(facts, receiver):
                continue
            kept = self._what_stays(facts, call)
            says = f"`{facts.short(call)}`: the runtime places batches and modules"
            holder = facts.scopes.parents.get(call)
            if not kept and isinstance(holder, ast.Expr):
                yield Change(holder, self.edit(facts, call, says), None, (holder,))
                continue
            where = tuple(a for i, a in enumerate([*call.args, *call.keywords]) if i not in kept)
            yield Change(call, self.edit(facts, call, says), _keep(kept) if kept else _unwrap, where)

    def _moves_to_itself(self, facts: Facts, statement: ast.Assign) -> bool:
        """`x = x.cuda()`, `a, b = a.to(device), b.to(device)`, `model = model.to(device)`."""
        if len(statement.targets) != 1:
            return False
        target, value = statement.targets[0], statement.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        some = False
        for t, v in pairs:
            if isinstance(v, ast.Call) and not self._what_stays(facts, v):
                receiver = facts.devices.moved(v)
                if receiver is not None and placed_by_runtime(facts, receiver):
                    v, some = receiver, True
            if ast.unparse(t) != ast.unparse(v):
                return False
        return some

    def _what_stays(self, facts: Facts, call: ast.Call) -> list[int]:
        """The places, in the text, of the arguments of a `.to()` that do not say where."""
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "to"):
            return []
        where = facts.devices.device_arguments(call)
        return [i for i, a in enumerate([*call.args, *call.keywords]) if a not in where]


def placed_by_runtime(facts: Facts, receiver: ast.expr) -> bool:
    """Whether the runtime will move this value itself: modules, batches, and what is computed from them."""
    if isinstance(receiver, ast.Call):
        if isinstance(receiver.func, ast.Attribute):
            full = facts.names.resolve(receiver.func)
            if full is None:
                return placed_by_runtime(facts, receiver.func.value)
            return full not in MAKES_TENSORS
        return facts.names.resolve(receiver.func) not in MAKES_TENSORS
    if isinstance(receiver, ast.Subscript | ast.Attribute):
        return placed_by_runtime(facts, receiver.value)
    if isinstance(receiver, ast.Name):
        scope = facts.scopes.scope_of(receiver).lookup(receiver.id)
        if scope is None or receiver.id in scope.params:
            return True
        values = facts.devices.assigned(receiver.id, scope) or []
        made = [v for v in values if not _mentions(v, receiver.id)]
        return not made or all(placed_by_runtime(facts, v) for v in made)
    return not isinstance(receiver, ast.Constant)


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def _unwrap(original: Any, updated: Any) -> Any:
    """`x.to(device)` to `x`, with the parentheses that stood around the call."""
    receiver = updated.func.value
    if updated.lpar:
        receiver = receiver.with_changes(lpar=[*updated.lpar, *receiver.lpar], rpar=[*receiver.rpar, *updated.rpar])
    return receiver


def _keep(places: list[int]) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        args = [updated.args[i] for i in places]
        args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated.with_changes(args=args)

    return rewrite
