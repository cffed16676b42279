"""T9: distribution made by hand goes back to a plain script, which the runtime distributes.

Process groups, devices chosen by rank, wrappers, `.module`, spawning, hand reductions and batch sizes divided by the
world go; a rank is 0 and a world is 1. A script whose processes talk in other ways is left alone, and told of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.devices import argument_at
from ..facts.distribution import GATHERS, STATEMENTS, WRAPPERS, Distribution
from ..facts.effects import only_asks
from ..facts.script import Facts
from ..report import Note
from .base import Change, Codemod
from .rewrites import source, take_argument, take_branch, take_value

REDUCES = {f"torch.distributed.{n}" for n in ("all_reduce", "reduce", "broadcast", "barrier")}
WHY = "the runtime starts and connects the processes"


class PlainProcess(Codemod):
    code = "PTM420"
    name = "plain-process"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        found = Distribution(facts)
        blocking = list(found.blocking())
        if blocking:
            for call in blocking:
                self._tell(facts, call, f"`{facts.short(call)}`: processes talk here in a way that is not rewritten")
            return
        yield from self._wrappers(facts, found)
        if not found.by_hand:
            yield from self._cards(facts, found)
            for call, full in found.full.items():
                if full in REDUCES:
                    self._tell(
                        facts, call, f"`{facts.short(call)}`: the group that it needs is made elsewhere, or not at all"
                    )
            return
        removed: set[ast.AST] = set()
        for change in self._statements(facts, found):
            removed.add(change.node)
            yield change
        yield from self._empty_functions(facts, removed)
        yield from self._values(facts, found, removed)
        yield from self._spawns(facts, found)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _tell(self, facts: Facts, node: ast.AST, says: str) -> None:
        line, column, _, _ = facts.text.key(node)
        self.left.append(Note(line, column + 1, self.code, says))

    # -- wrappers --------------------------------------------------------------------------------------------

    def _wrappers(self, facts: Facts, found: Distribution) -> Iterator[Change]:
        for call in found.wrapped:
            up = facts.scopes.parents.get(call)
            inner = argument_at(call, "module", 0)
            assert inner is not None
            says = f"`{facts.short(call)}` removed: the runtime wraps the model"
            holder = up
            while isinstance(holder, ast.Call | ast.Attribute) and _only_places(
                facts, holder
            ):  # DataParallel(m).cuda()
                holder = facts.scopes.parents.get(holder)
            if isinstance(holder, ast.Assign) and [ast.unparse(t) for t in holder.targets] == [ast.unparse(inner)]:
                yield Change(holder, self.edit(facts, call, says), None, (holder,))
            else:
                place = [*call.args, *[k.value for k in call.keywords]].index(inner)
                parts = (
                    call.func,
                    *[
                        a
                        for a in (*call.args, *call.keywords)
                        if a is not inner and getattr(a, "value", 0) is not inner
                    ],
                )
                yield Change(call, self.edit(facts, call, says), take_argument(place), parts)
        for choice, field in found.unwrapping_choices():
            yield Change(
                choice,
                self.edit(facts, choice, f"`{facts.short(choice)}`: nothing wraps the model"),
                take_branch(field),
                (choice.test,),
            )
        for attribute in found.module_attributes():
            says = f"`{facts.short(attribute)}`: nothing wraps the model"
            yield Change(attribute, self.edit(facts, attribute, says), take_value)

    def _cards(self, facts: Facts, found: Distribution) -> Iterator[Change]:
        """`torch.cuda.set_device(args.gpu)` of a script that is one process."""
        for call, full in found.full.items():
            holder = facts.scopes.parents.get(call)
            if full == "torch.cuda.set_device" and isinstance(holder, ast.Expr):
                says = f"`{facts.short(call)}` removed: the runtime chooses the device"
                yield Change(holder, self.edit(facts, call, says), None, (holder,))

    # -- statements ------------------------------------------------------------------------------------------

    def _statements(self, facts: Facts, found: Distribution) -> Iterator[Change]:
        for call in facts.walk(ast.Call):
            full = facts.names.resolve(call.func)
            holder = facts.scopes.parents.get(call)
            if full in STATEMENTS and isinstance(holder, ast.Expr):
                yield Change(holder, self.edit(facts, call, f"`{facts.short(call)}` removed: {WHY}"), None, (holder,))
        for s in facts.walk(ast.Assign):
            if found.sets_environment(s) or found.divides_batch(s):
                why = "a batch is divided by the runtime" if found.divides_batch(s) else WHY
                yield Change(s, self.edit(facts, s, f"`{facts.short(s)}` removed: {why}"), None, (s,))
        for a in facts.walk(ast.AugAssign):
            if found.averages(a):
                says = f"`{facts.short(a)}` removed: nothing was summed over processes"
                yield Change(a, self.edit(facts, a, says), None, (a,))

    def _empty_functions(self, facts: Facts, removed: set[ast.AST]) -> Iterator[Change]:
        """`setup()` and `cleanup()` that have nothing left to do go with their calls."""
        for f in facts.walk(ast.FunctionDef):
            body = [s for s in f.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
            if not body or not all(_is_out(facts, s, removed) for s in body) or facts.is_library:
                continue
            uses = facts.devices.uses_of_function(f)
            holders = [facts.scopes.parents.get(u) for u in uses]
            if all(isinstance(u, ast.Call) for u in uses) and all(isinstance(h, ast.Expr) for h in holders):
                yield Change(f, self.edit(facts, f, f"{f.name}() removed: {WHY}"), None, (f,))
                for h in holders:
                    assert h is not None
                    yield Change(h, self.edit(facts, h, f"`{facts.short(h)}` removed: {WHY}"), None, (h,))

    # -- values ----------------------------------------------------------------------------------------------

    def _values(self, facts: Facts, found: Distribution, removed: set[ast.AST]) -> Iterator[Change]:
        for node, value in found.constants():
            if any(up in removed for up in facts.scopes.ancestors(node)) or facts.in_formatted_string(node):
                continue
            says = f"`{facts.short(node)}` is {value} in a plain script: {WHY}"
            yield Change(node, self.edit(facts, node, says), source(value), tuple(ast.iter_child_nodes(node)))

    def _spawns(self, facts: Facts, found: Distribution) -> Iterator[Change]:
        for call in found.spawns:
            target = argument_at(call, "fn", 0)
            given = argument_at(call, "args", 1)
            arguments = [facts.text.get(e) for e in given.elts] if isinstance(given, ast.Tuple | ast.List) else []
            assert target is not None
            if given is not None and not isinstance(given, ast.Tuple | ast.List):
                arguments = [f"*{facts.text.get(given)}"]
            new = f"{facts.text.get(target)}({', '.join(['0', *arguments])})"
            says = f"`{facts.short(call)}` became `{new}`: {WHY}"
            yield Change(call, self.edit(facts, call, says), source(new))


def _only_places(facts: Facts, node: ast.Call | ast.Attribute) -> bool:
    call = node if isinstance(node, ast.Call) else facts.scopes.parents.get(node)
    return facts.handle is None and isinstance(call, ast.Call) and facts.devices.moved(call) is not None


def _is_out(facts: Facts, s: ast.stmt, removed: set[ast.AST]) -> bool:
    """Whether a statement goes, or nothing is left in it."""
    inside = isinstance(s, ast.If) and only_asks(facts.names, s.test)
    return s in removed or (inside and all(_is_out(facts, x, removed) for x in (*s.body, *s.orelse)))  # type: ignore[attr-defined]


__all__ = ["GATHERS", "WRAPPERS", "PlainProcess"]
