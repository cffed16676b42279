"""T10: a lifted loop's autocast and GradScaler are the Trainer's `precision=`.

The Trainer scales the loss, unscales before it clips and steps. Where the script steps by hand (accumulation under an
`if`) its optimizer does the same, if the script neither unscales by itself nor has the scaler step twice; else the
script's own scaler stays.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from typing import Any

from ..facts.arguments import argument_at, default_of
from ..facts.autocast import AUTOCAST, is_autocast
from ..facts.choice import _fold, accelerator
from ..facts.nodes import walk
from ..facts.operands import joined
from ..facts.scalers import Scalers, Unfollowed
from ..facts.script import Facts
from ..report import Note
from ._full_precision import EVALUATED, beside_autocast, full_evaluations
from .argument_rewrites import DropArgument
from .base import Change, Codemod
from .branch_rewrites import body_only, else_only, without_item
from .remove_unused_devices import without_parameter
from .rewrites import source, take_argument

ON_CUDA = {"torch.cuda.amp.autocast"}
HALF = '"16-mixed"'
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
        except (Mixed, Unfollowed):
            return None

    def told(self, facts: Facts) -> Iterator[Note]:
        """What the Trainer's precision is for that the script's was not: it shows on a card alone."""
        for loop in full_evaluations(facts):
            yield self._note(facts, loop, EVALUATED)
        scaled = any(on_cuda == HALF for on_cuda, _ in self.asked) and not self.scalers.made
        for s in facts.walk(ast.With) if scaled else ():
            if self._is_autocast(facts, s):
                says = "no GradScaler: the Trainer's 16-mixed scales the loss, and leaves out a step that overflows"
                yield self._note(facts, s.items[0].context_expr, says)
                return

    def _note(self, facts: Facts, node: ast.AST, says: str) -> Note:
        line, column, _, _ = facts.text.key(node)
        return Note(line, column + 1, self.code, says)

    @property
    def keeps(self) -> bool:
        """Whether the script has to keep its scaler, as far as that shows before the loop is lifted."""
        return self.waits and not self.by_hand

    @property
    def by_hand(self) -> bool:
        """Whether an optimizer that is stepped by hand does the same: it unscales, steps and updates at once."""
        return self.methods.count("step") <= len(self.scalers.made) and "unscale_" not in self.methods

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.asked: set[tuple[str, str]] = set()  # the precisions that autocast asks for, on CUDA and without
        self.conditions: set[str] = set()
        self.methods: list[str] = []  # what the script has its scalers do
        self.waits = False  # whether a step is made under a condition that stays: by hand, then
        self.choices: set[ast.AST] = set()  # conditions that go
        self.scalers = self._scalers(facts)
        gone: set[ast.AST] = set()
        for branch in facts.walk(ast.If):
            if branch.orelse and branch not in gone and self._is_choice(facts, branch):
                gone.update(n for s in branch.body for n in walk(s))
                gone.update(walk(branch.test))
                self.choices.add(branch)
                says = f"`if {facts.short(branch.test)}:`: both ways are the same step, {WHY}"
                yield Change(branch, self.edit(facts, branch, says), else_only, (branch.test, *branch.body))
        for s in facts.walk(ast.With):
            if self._is_inner(facts, s):
                continue  # full precision within half, which stays what it is
            self._ask(facts, s)
            if s not in gone and self._is_autocast(facts, s):
                says = f"`with {facts.short(s.items[0].context_expr)}:` removed: {WHY}"
                yield Change(s, self.edit(facts, s, says), body_only, (s.items[0],))
            elif s not in gone and (item := _autocast_beside(facts, s)) is not None:
                says = f"`{facts.short(item.context_expr)}` removed: {WHY}"
                edit = self.edit(facts, item.context_expr, says)
                yield Change(s, edit, without_item(s.items.index(item)), (item,), head=True)
        self._around_training(facts)
        yield from self._of_scalers(facts, gone)

    def _around_training(self, facts: Facts) -> None:
        """The Trainer computes its whole step that way: autocast has to stand where the gradients are taken."""
        for call in facts.walk(ast.Call):
            if not (isinstance(call.func, ast.Attribute) and call.func.attr == "backward"):
                continue
            loop = next((u for u in facts.scopes.ancestors(call) if isinstance(u, (ast.For, ast.FunctionDef))), None)
            if loop is None or not any(
                self._is_autocast(facts, n) or _autocast_beside(facts, n) for n in walk(loop, ast.With)
            ):
                raise Mixed
            if beside_autocast(facts, loop, self.choices) is not None:
                raise Mixed  # there it would be half precision, too

    # -- what is there ----------------------------------------------------------------------------------------

    def _scalers(self, facts: Facts) -> Scalers:
        found = Scalers(facts)
        self.conditions.update(facts.text.get(test) for test in found.conditions)
        for call in found.made:
            if any(k.arg not in ("enabled", "device") for k in call.keywords):
                raise Mixed  # a growth of its own
            self._enabled(facts, call, found)
        return found

    def _enabled(self, facts: Facts, call: ast.Call, scalers: Scalers) -> None:
        given = self._given(facts, call)
        if given is None or scalers.asks(given) or (isinstance(given, ast.Constant) and given.value is True):
            return
        if isinstance(given, ast.Constant):
            raise Mixed  # switched off by hand
        self.conditions.add(facts.text.get(given))

    def _given(self, facts: Facts, call: ast.Call) -> ast.expr | None:
        """The `enabled=` of autocast or a scaler."""
        given = next((k.value for k in call.keywords if k.arg == "enabled"), None)
        by_place = facts.names.resolve(call.func) in ON_CUDA and call.args
        return call.args[0] if given is None and by_place else given

    def _is_inner(self, facts: Facts, s: ast.With) -> bool:
        """`with autocast(enabled=False):` inside of autocast."""
        if not self._is_autocast(facts, s):
            return False
        call = s.items[0].context_expr
        given = self._given(facts, call)  # type: ignore[arg-type]
        off = isinstance(given, ast.Constant) and given.value is False
        return off and any(isinstance(u, ast.With) and self._is_autocast(facts, u) for u in facts.scopes.ancestors(s))

    def _ask(self, facts: Facts, s: ast.With) -> None:
        for item in s.items:
            call = item.context_expr
            full = facts.names.resolve(call.func) if isinstance(call, ast.Call) else None
            if full not in AUTOCAST or not isinstance(call, ast.Call):
                continue
            texts = [n.value for n in walk(call) if isinstance(n, ast.Constant)]
            kinds = [n.attr for n in walk(call, ast.Attribute) if "float" in n.attr]
            anywhere = full not in ON_CUDA and self._is_own_type(facts, argument_at(call, "device_type", 0))
            if len(s.items) > 1 and _autocast_beside(facts, s) is None:
                raise Mixed
            if "cpu" in texts or (full not in ON_CUDA and "cuda" not in texts and not anywhere):
                raise Mixed
            given = len(call.args) > 1 or any(k.arg == "dtype" for k in call.keywords)
            if given and (not kinds or (anywhere and kinds != ["bfloat16"])):
                raise Mixed
            self._enabled(facts, call, self.scalers)
            on_cuda = '"bf16-mixed"' if "bfloat16" in kinds else HALF
            self.asked.add((on_cuda, '"bf16-mixed"' if anywhere else '"32-true"'))  # on the CPU autocast takes bfloat16

    def _is_option(self, facts: Facts, when: str, names: list[ast.Name]) -> bool:
        """Whether a condition is the user's alone, and asks for no device: `args.amp`, a name that is True or False."""
        if not names:
            return re.fullmatch(r"\w+\.\w+", when) is not None
        scope = facts.scopes.scope_of(names[0]).lookup(when)
        values = facts.devices.assigned(when, scope) if scope is not None and when not in scope.params else None
        return bool(values) and all(isinstance(v, ast.Constant) for v in values or ())

    def _is_own_type(self, facts: Facts, where: ast.expr | None) -> bool:
        """`device.type`, or a device that is a text: CUDA where there is one, which the Trainer takes too."""
        if isinstance(where, ast.Attribute) and where.attr == "type":
            where = where.value
        elif where is not None and not facts.devices.texts(where):
            return False
        if where is None or isinstance(where, ast.Constant) or not facts.devices.is_device(where):
            return False
        others = [n.value for n in facts.walk(ast.Constant) if n.value in ("mps", "xpu", "hpu")]
        return not others and not facts.devices.is_host(where) and accelerator(facts) is None

    def _is_autocast(self, facts: Facts, s: ast.With) -> bool:
        """Whether it opens autocast alone."""
        return len(s.items) == 1 and is_autocast(facts, s.items[0].context_expr)

    # -- branches ---------------------------------------------------------------------------------------------

    def _is_choice(self, facts: Facts, branch: ast.If) -> bool:
        """`if use_amp:` one step with a scaler, `else:` the same without."""
        if not any(self._is_scaling(facts, n) for s in branch.body for n in walk(s)):
            return False
        body, other = self._stripped(facts, branch.body), self._stripped(facts, branch.orelse)
        if [ast.dump(s) for s in body] != [ast.dump(s) for s in other]:
            raise Mixed
        if not self.scalers.asks(branch.test):
            self.conditions.add(facts.text.get(branch.test))
        return True

    def _is_scaling(self, facts: Facts, n: ast.AST) -> bool:
        if isinstance(n, ast.With):
            return self._is_autocast(facts, n)
        return self.scalers.is_one(n)

    def _stripped(self, facts: Facts, block: list[ast.stmt]) -> list[ast.stmt]:
        """A copy of a block without autocast and scaler."""
        found: list[ast.stmt] = []
        for s in block:
            if isinstance(s, ast.With) and self._is_autocast(facts, s):
                found += self._stripped(facts, s.body)
            elif self._method(s) not in ("update", "unscale_"):
                found.append(_Unscaled(self.scalers.texts).visit(copy.deepcopy(s)))
        return found

    def _method(self, s: ast.AST) -> str:
        f = s.value.func if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) else None
        return f.attr if isinstance(f, ast.Attribute) and self.scalers.is_one(f.value) else ""

    # -- the scaler -------------------------------------------------------------------------------------------

    def _of_scalers(self, facts: Facts, gone: set[ast.AST]) -> Iterator[Change]:
        handed_on = {value for given in self.scalers.arguments.values() for _, value in given}
        for read in self.scalers.reads():
            asking = next((u for u in facts.scopes.ancestors(read) if isinstance(u, (ast.With, ast.stmt))), None)
            inside = isinstance(asking, ast.With) and self._is_autocast(facts, asking)
            if read not in gone and read not in handed_on and not inside:
                yield self._use(facts, read)
        for made in self.scalers.made.values():
            yield Change(made, self.edit(facts, made, f"`{facts.short(made)}` removed: {WHY}"), None, (made,))
        for f, name in self.scalers.parameters:
            says = f"parameter `{name}` of {f.name}() removed: {WHY}"
            arg = facts.scopes.by_node[f].params[name]
            default = default_of(f, name)
            parts = (arg,) if default is None else (arg, default)
            yield Change(f, self.edit(facts, arg, says), without_parameter(name), parts, head=True)
        for call, given in self.scalers.arguments.items():
            for f, value in given:
                place = next(i for i, a in enumerate([*call.args, *call.keywords]) if value in (a, _value(a)))
                says = f"argument `{facts.short(value)}` of {f.name}() removed: {WHY}"
                yield Change(call, self.edit(facts, value, says), DropArgument(place), (value,))

    def _use(self, facts: Facts, read: ast.expr) -> Change:
        f = facts.scopes.parents.get(read)
        call = facts.scopes.parents.get(f) if isinstance(f, ast.Attribute) else None
        holder = facts.scopes.parents.get(call) if isinstance(call, ast.Call) else None
        if not (isinstance(f, ast.Attribute) and isinstance(call, ast.Call) and holder is not None):
            raise Mixed
        self.methods.append(f.attr)
        if f.attr in ("update", "unscale_") and isinstance(holder, ast.Expr):
            return Change(holder, self.edit(facts, call, f"`{facts.short(call)}` removed: {WHY}"), None, (holder,))
        if f.attr == "scale" and len(call.args) == 1 and not call.keywords:
            says = f"`{facts.short(call)}` is `{facts.short(call.args[0])}`: {WHY}"
            return Change(call, self.edit(facts, call, says), take_argument(0), (call.func,))
        if f.attr == "step" and len(call.args) == 1 and not call.keywords:
            self.waits = self.waits or self._is_under_a_condition(facts, call)
            new = f"{facts.text.get(call.args[0])}.step()"
            return Change(call, self.edit(facts, call, f"`{facts.short(call)}` is `{new}`: {WHY}"), source(new))
        raise Mixed

    def _is_under_a_condition(self, facts: Facts, step: ast.Call) -> bool:
        """Whether a step waits for something: that of several batches, of one that is whole."""
        for up in facts.scopes.ancestors(step):
            if isinstance(up, ast.If) and up not in self.choices:
                return True
            if isinstance(up, (ast.For, ast.While, ast.FunctionDef)):
                return False
        return False

    def _precision(self, facts: Facts) -> str:
        if len(self.asked) > 1 or len(self.conditions) > 1:
            raise Mixed
        torch = next((a.asname or a.name for i in facts.walk(ast.Import) for a in i.names if a.name == "torch"), None)
        (asked, other), when = next(iter(self.asked)), next(iter(self.conditions), "")
        if torch is None or "\n" in when:
            raise Mixed
        if other != '"32-true"' and next(full_evaluations(facts), None) is not None:
            raise Mixed  # the CPU, too, would evaluate in another precision
        there = f"{torch}.cuda.is_available()"
        names = [n for n in facts.walk(ast.Name) if n.id == when and isinstance(n.ctx, ast.Load)]
        if other != '"32-true"':
            asked = asked if asked == other else f"{asked} if {there} else {other}"
            if not when:
                return asked
            if not self._is_option(facts, when, names):
                raise Mixed  # it may be off on the CPU
            return f'{asked} if {when} else "32-true"' if " if " not in asked else f'({asked}) if {when} else "32-true"'
        if when and there in when.split(" and "):
            there = when
        elif when and not (names and _fold(facts, names[0], 0) is True):  # more than whether there is a card
            there = joined([when, there], "and")
        return f'{asked} if {there} else "32-true"'


def _autocast_beside(facts: Facts, s: ast.With) -> ast.withitem | None:
    """The one item that opens autocast of `with torch.no_grad(), autocast():`; None for one that has a name."""
    found = [i for i in s.items if is_autocast(facts, i.context_expr)] if len(s.items) > 1 else []
    return found[0] if len(found) == 1 and found[0].optional_vars is None else None


def _value(argument: ast.AST) -> ast.expr | None:
    return argument.value if isinstance(argument, ast.keyword) else None


class _Unscaled(ast.NodeTransformer):
    def __init__(self, scalers: set[str]) -> None:
        self.scalers = scalers

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        f = node.func
        if isinstance(f, ast.Attribute) and ast.unparse(f.value) in self.scalers and node.args:
            if f.attr == "scale":
                return node.args[0]
            if f.attr == "step":
                return ast.Call(ast.Attribute(node.args[0], "step", ast.Load()), [], [])
        return node
