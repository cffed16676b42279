"""T10: a lifted loop's autocast and GradScaler are the Trainer's `precision=`.

The Trainer scales the loss, unscales before it clips and steps; so this holds where the whole step becomes the
Trainer's. Where the script steps by hand (accumulation under an `if`, several optimizers) its own scaler stays.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from ..facts.choice import _fold
from ..facts.script import Facts
from .amp_in_modules import SCALER
from .base import Change, Codemod
from .rewrites import body_only, else_only, source, take_argument

ON_CUDA = {"torch.cuda.amp.autocast"}
AUTOCAST = ON_CUDA | {"torch.amp.autocast", "torch.autocast"}
WHY = "the Trainer's precision= does it"


class Mixed(Exception):
    """Something is done with the scaler, or around autocast, that the Trainer does not do."""


class PrecisionOfLoops(Codemod):
    code = "PTM605"
    name = "precision-of-loops"

    def changes(self, facts: Facts) -> tuple[list[Change], str] | None:
        """The changes, and the source of the Trainer's `precision=`; None where it cannot all be the Trainer's."""
        try:
            changes = list(self.plan(facts))
            return (changes, self._precision(facts)) if changes and self.asked else None
        except Mixed:
            return None

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.asked: set[str] = set()  # the precisions that autocast asks for
        self.conditions: set[str] = set()
        self.scalers = self._scalers(facts)
        gone: set[ast.AST] = set()
        for branch in facts.walk(ast.If):
            if branch.orelse and branch not in gone and self._is_choice(facts, branch):
                gone.update(n for s in branch.body for n in ast.walk(s))
                gone.update(ast.walk(branch.test))
                says = f"`if {facts.short(branch.test)}:`: both ways are the same step, {WHY}"
                yield Change(branch, self.edit(facts, branch, says), else_only, (branch.test, *branch.body))
        for s in facts.walk(ast.With):
            self._ask(facts, s)
            if s not in gone and self._is_autocast(facts, s):
                says = f"`with {facts.short(s.items[0].context_expr)}:` removed: {WHY}"
                yield Change(s, self.edit(facts, s, says), body_only, (s.items[0],))
        self._around_training(facts)
        yield from self._of_scalers(facts, gone)

    def _around_training(self, facts: Facts) -> None:
        """The Trainer computes its whole step that way: autocast has to stand where the gradients are taken."""
        for call in facts.walk(ast.Call):
            if not (isinstance(call.func, ast.Attribute) and call.func.attr == "backward"):
                continue
            loop = next((u for u in facts.scopes.ancestors(call) if isinstance(u, ast.For | ast.FunctionDef)), None)
            if loop is None or not any(isinstance(n, ast.With) and self._is_autocast(facts, n) for n in ast.walk(loop)):
                raise Mixed

    # -- what is there ----------------------------------------------------------------------------------------

    def _scalers(self, facts: Facts) -> dict[str, ast.Assign]:
        found: dict[str, ast.Assign] = {}
        for call in facts.walk(ast.Call):
            if facts.names.resolve(call.func) not in SCALER:
                continue
            if any(k.arg != "enabled" for k in call.keywords):
                raise Mixed  # a growth of its own
            up = facts.scopes.parents.get(call)
            if isinstance(up, ast.IfExp) and up.body is call and ast.unparse(up.orelse) == "None":
                self.conditions.add(facts.text.get(up.test))
                up = facts.scopes.parents.get(up)
            if not (isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name)):
                raise Mixed
            self._enabled(facts, call)
            found[up.targets[0].id] = up
        return found

    def _enabled(self, facts: Facts, call: ast.Call) -> None:
        given = next((k.value for k in call.keywords if k.arg == "enabled"), None)
        if given is None and facts.names.resolve(call.func) in ON_CUDA and call.args:
            given = call.args[0]
        if given is not None and not (isinstance(given, ast.Constant) and given.value is True):
            self.conditions.add(facts.text.get(given))

    def _ask(self, facts: Facts, s: ast.With) -> None:
        for item in s.items:
            call = item.context_expr
            full = facts.names.resolve(call.func) if isinstance(call, ast.Call) else None
            if full not in AUTOCAST or not isinstance(call, ast.Call):
                continue
            texts = [n.value for n in ast.walk(call) if isinstance(n, ast.Constant)]
            kinds = [n.attr for n in ast.walk(call) if isinstance(n, ast.Attribute) and "float" in n.attr]
            if len(s.items) > 1 or "cpu" in texts or (full not in ON_CUDA and "cuda" not in texts):
                raise Mixed
            if any(k.arg == "dtype" for k in call.keywords) and not kinds:
                raise Mixed
            self._enabled(facts, call)
            self.asked.add('"bf16-mixed"' if "bfloat16" in kinds else '"16-mixed"')

    def _is_autocast(self, facts: Facts, s: ast.With) -> bool:
        call = s.items[0].context_expr
        return isinstance(call, ast.Call) and facts.names.resolve(call.func) in AUTOCAST

    # -- branches ---------------------------------------------------------------------------------------------

    def _is_choice(self, facts: Facts, branch: ast.If) -> bool:
        """`if use_amp:` one step with a scaler, `else:` the same without."""
        if not any(self._is_scaling(facts, n) for s in branch.body for n in ast.walk(s)):
            return False
        body, other = self._stripped(facts, branch.body), self._stripped(facts, branch.orelse)
        if [ast.dump(s) for s in body] != [ast.dump(s) for s in other]:
            raise Mixed
        text = ast.unparse(branch.test)
        if text not in {t for n in self.scalers for t in (n, f"{n} is not None")}:
            self.conditions.add(facts.text.get(branch.test))
        return True

    def _is_scaling(self, facts: Facts, n: ast.AST) -> bool:
        if isinstance(n, ast.With):
            return self._is_autocast(facts, n)
        return isinstance(n, ast.Name) and n.id in self.scalers

    def _stripped(self, facts: Facts, block: list[ast.stmt]) -> list[ast.stmt]:
        """A copy of a block without autocast and scaler."""
        found: list[ast.stmt] = []
        for s in block:
            if isinstance(s, ast.With) and self._is_autocast(facts, s):
                found += self._stripped(facts, s.body)
            elif self._method(s) not in ("update", "unscale_"):
                found.append(_Unscaled(set(self.scalers)).visit(copy.deepcopy(s)))
        return found

    def _method(self, s: ast.AST) -> str:
        f = s.value.func if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) else None
        of_scaler = isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id in self.scalers
        return f.attr if of_scaler else ""  # type: ignore[union-attr]

    # -- the scaler -------------------------------------------------------------------------------------------

    def _of_scalers(self, facts: Facts, gone: set[ast.AST]) -> Iterator[Change]:
        for name, made in self.scalers.items():
            scope = facts.scopes.scope_of(made.targets[0]).lookup(name)
            if scope is None or len(scope.stores[name]) != 1:
                raise Mixed
            for read in facts.scopes.reads(name, scope):
                if read not in gone:
                    yield self._use(facts, read)
            yield Change(made, self.edit(facts, made, f"`{facts.short(made)}` removed: {WHY}"), None, (made,))

    def _use(self, facts: Facts, read: ast.Name) -> Change:
        f = facts.scopes.parents.get(read)
        call = facts.scopes.parents.get(f) if isinstance(f, ast.Attribute) else None
        holder = facts.scopes.parents.get(call) if isinstance(call, ast.Call) else None
        if not (isinstance(f, ast.Attribute) and isinstance(call, ast.Call) and holder is not None):
            raise Mixed
        if f.attr in ("update", "unscale_") and isinstance(holder, ast.Expr):
            return Change(holder, self.edit(facts, call, f"`{facts.short(call)}` removed: {WHY}"), None, (holder,))
        if f.attr == "scale" and len(call.args) == 1 and not call.keywords:
            says = f"`{facts.short(call)}` is `{facts.short(call.args[0])}`: {WHY}"
            return Change(call, self.edit(facts, call, says), take_argument(0), (call.func,))
        if f.attr == "step" and len(call.args) == 1 and not call.keywords:
            new = f"{facts.text.get(call.args[0])}.step()"
            return Change(call, self.edit(facts, call, f"`{facts.short(call)}` is `{new}`: {WHY}"), source(new))
        raise Mixed

    def _precision(self, facts: Facts) -> str:
        if len(self.asked) > 1 or len(self.conditions) > 1:
            raise Mixed
        torch = next((a.asname or a.name for i in facts.walk(ast.Import) for a in i.names if a.name == "torch"), None)
        asked, when = next(iter(self.asked)), next(iter(self.conditions), "")
        if torch is None or "\n" in when:
            raise Mixed
        there = f"{torch}.cuda.is_available()"
        names = [n for n in facts.walk(ast.Name) if n.id == when and isinstance(n.ctx, ast.Load)]
        if when and not (names and _fold(facts, names[0], 0) is True):  # more than whether there is a card
            there = f"{when} and {there}" if " or " not in when else f"({when}) and {there}"
        elif when:
            there = when
        return f'{asked} if {there} else "32-true"'


class _Unscaled(ast.NodeTransformer):
    def __init__(self, scalers: set[str]) -> None:
        self.scalers = scalers

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        f = node.func
        if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id in self.scalers and node.args:
            if f.attr == "scale":
                return node.args[0]
            if f.attr == "step":
                return ast.Call(ast.Attribute(node.args[0], "step", ast.Load()), [], [])
        return node
