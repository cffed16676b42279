"""A script that ends where there is no CUDA demands it no more: what is left of it runs on any device.

`assert torch.cuda.is_available()`, `if not torch.cuda.is_available(): raise ...`, and the `else` of such a question. A
demand for so many cards, or by an option, is the user's own: the former is told of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.nodes import walk
from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod
from .branch_rewrites import body_only, first_gone, take_elif

THERE = {"torch.cuda.is_available", "torch.accelerator.is_available"}
COUNTED = {"torch.cuda.device_count", "torch.accelerator.device_count"}
SAYS = {"print", "warn", "warning", "error", "critical", "info", "debug", "exception", "fatal", "log"}
# what `device_count() OP n` says of whether there is a card at all
SOME: dict[tuple[type[ast.cmpop], object], bool] = {
    (ast.Gt, 0): True, (ast.GtE, 1): True, (ast.NotEq, 0): True,
    (ast.Eq, 0): False, (ast.Lt, 1): False, (ast.LtE, 0): False,
}  # fmt: skip
WHY = "what is left runs on any device"


class CudaDemands(Codemod):
    code = "PTM113"
    name = "cuda-demands"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        for s in facts.walk(ast.Assert):
            if _asks_for_cuda(facts, s.test) and not _in_a_test(facts, s):
                yield Change(s, self.edit(facts, s, f"`{facts.short(s)}` removed: {WHY}"), None, (s,))
        for branch in facts.walk(ast.If):
            there = _asks_for_cuda(facts, branch.test)
            ending = branch.orelse if there else branch.body
            if there is None or not _only_ends(facts, ending) or _in_a_test(facts, branch):
                self._tell_of_cards(facts, branch)
                continue
            yield self._without(facts, branch, there, ending)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _without(self, facts: Facts, branch: ast.If, there: bool, ending: list[ast.stmt]) -> Change:
        """The branch without the way that ends the script."""
        says = f"`if {facts.short(branch.test)}:` ends the script no more where there is no CUDA: {WHY}"
        edit, parts = self.edit(facts, branch, says), (branch.test, *ending)
        if facts.text.is_elif(branch):
            return Change(branch, edit, take_elif(there), parts)
        if not there and not branch.orelse:
            return Change(branch, edit, None, (branch,))
        return Change(branch, edit, body_only if there else first_gone, parts)

    def _tell_of_cards(self, facts: Facts, branch: ast.If) -> None:
        """`if torch.cuda.device_count() < 2: raise`: the runtime's devices need not be cards."""
        asked = [n for n in walk(branch.test, ast.Call) if facts.names.resolve(n.func) in COUNTED]
        if asked and isinstance(branch.test, ast.Compare) and _only_ends(facts, branch.body):
            line, column, _, _ = facts.text.key(branch)
            says = "ends the script: the runtime has as many devices as it is asked for"
            self.left.append(Note(line, column + 1, self.code, f"`if {facts.short(branch.test)}:` {says}"))


def _asks_for_cuda(facts: Facts, test: ast.expr, depth: int = 0) -> bool | None:
    """True for a test that holds where there is CUDA, False for one that holds where there is none; or None."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        asked = _asks_for_cuda(facts, test.operand, depth)
        return None if asked is None else not asked
    if isinstance(test, ast.Compare) and (said := _truth(test)) is not None:
        asked = _asks_for_cuda(facts, test.left, depth)
        return None if asked is None else asked is said
    if isinstance(test, ast.Call):
        return True if not test.args and facts.names.resolve(test.func) in THERE | COUNTED else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Call):
        number = test.comparators[0].value if isinstance(test.comparators[0], ast.Constant) else None
        counted = facts.names.resolve(test.left.func) in COUNTED and isinstance(number, int)
        return SOME.get((type(test.ops[0]), number)) if counted else None
    if isinstance(test, ast.Name) and depth < 3:
        home = facts.scopes.scope_of(test).lookup(test.id)
        given = facts.devices.assigned(test.id, home) if home is not None and test.id not in home.params else None
        known = {_asks_for_cuda(facts, v, depth + 1) for v in given or ()}
        return known.pop() if len(known) == 1 else None
    return None


def _truth(test: ast.Compare) -> bool | None:
    """What `there is False` and `there != True` ask for."""
    value = test.comparators[0].value if isinstance(test.comparators[0], ast.Constant) else None
    if len(test.ops) > 1 or not isinstance(value, bool):
        return None
    return value if isinstance(test.ops[0], (ast.Is, ast.Eq)) else not value


def _only_ends(facts: Facts, block: list[ast.stmt]) -> bool:
    """Whether statements only say something and end the script."""
    return bool(block) and all(map(_says, block[:-1])) and facts.worlds.reached.refuses(block)


def _says(s: ast.stmt) -> bool:
    call = s.value if isinstance(s, ast.Expr) else None
    if isinstance(call, ast.Constant):
        return True
    func = call.func if isinstance(call, ast.Call) else None
    return (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) in SAYS


def _in_a_test(facts: Facts, s: ast.stmt) -> bool:
    """In a test the demand is what is tested."""
    ups = facts.scopes.ancestors(s)
    return any(isinstance(up, ast.FunctionDef) and up.name.startswith("test") for up in ups)
