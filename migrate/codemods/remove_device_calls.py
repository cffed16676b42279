"""T1: the runtime places modules and batches, so `.cuda()` and `.to(device)` go.

`.to(device, dtype)` keeps the dtype; an assignment of a name to itself goes whole. What the runtime does not place (a
tensor that the script makes itself, data read at once) keeps its call, and is told of: PTM104 is about those.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any

from ..facts.arguments import argument_at
from ..facts.effects import only_asks
from ..facts.nodes import walk
from ..facts.plain import is_bare_variable
from ..facts.plain_lists import given_to_plain_list
from ..facts.script import Facts
from ..report import Note
from ._asked_cpu import asked_for_cpu
from ._handed_on import handed_on
from ._idle_statements import has_effect, idle_statements
from ._moves_that_do_more import moves_that_do_more
from ._own_moves import own_moves
from ._parts_apart import brought_to_parts, parts_apart
from ._pins import pinned_for
from ._places_by_name import places_by_name
from ._set_off import branch_of
from ._several_cards import another_card
from ._whatever_movers import calls_itself, moves_whatever
from ._without_moves import plain, what_stays
from .argument_rewrites import DropArgument, keep_arguments
from .base import Change, Codemod, assigns_itself
from .branch_rewrites import body_only, else_only
from .rewrites import take_argument, take_items, take_iterable, unwrap

Mover = ast.FunctionDef | ast.Lambda
WHY = "the runtime places batches and modules"
BARE = "nothing wraps the model"
GAVE = f"gave its argument without a wrapper; {BARE}"


class RemoveDeviceCalls(Codemod):
    code = "PTM101"
    name = "remove-device-calls"

    def __init__(self) -> None:
        self.helpers: dict[Mover, list[ast.Call]] = {}
        self._helped: set[ast.Call] = set()
        self._unwrapping: set[ast.Call] = set()

    def plan(self, facts: Facts) -> Iterator[Change]:
        yield from pinned_for(self, facts)
        gone: set[ast.AST] = set(facts.buffered)
        for change in self._helper_functions(facts):
            gone.update(walk(change.node))
            yield change
        for statement in facts.walk(ast.Assign):
            if statement not in gone and self._moves_to_itself(facts, statement):
                gone.update(walk(statement))
                says = f"`{facts.short(statement)}` removed: {WHY}"
                yield Change(statement, self.edit(facts, statement, says), None, (statement,))
        for s in idle_statements(facts, partial(self.stripped, facts), partial(self._only_moves, facts)):
            gone.update(walk(s))
            yield Change(s, self.edit(facts, s, f"`{facts.short(s)}` removed: {WHY}"), None, (s,))
        for change in self._branches(facts, gone):
            gone.update(n for part in change.gone for n in walk(part))
            gone.add(change.node)
            yield change
        yield from self._same_branches(facts, gone)
        yield from self._same_choices(facts, gone)
        several: list[ast.ListComp | ast.GeneratorExp] = [*facts.walk(ast.ListComp), *facts.walk(ast.GeneratorExp)]
        for comprehension in several:
            if comprehension not in gone and self._is_unpacked(facts, comprehension):
                gone.update(n for n in walk(comprehension.elt))
                says = f"`{facts.short(comprehension)}`: {WHY}"
                node, rewrite = _taking_iterable(facts, comprehension)
                yield Change(node, self.edit(facts, comprehension, says), rewrite, (comprehension.elt,))
        for keyword in facts.walk(ast.keyword):
            given = keyword.value
            if keyword.arg is None and isinstance(given, ast.DictComp) and self.stripped(facts, given) is not given:
                gone.update(n for part in (given.key, given.value) for n in walk(part))
                says = f"`{facts.short(given)}`: {WHY}"
                yield Change(given, self.edit(facts, given, says), take_items, (given.key, given.value))
        for call in facts.walk(ast.Call):
            if call not in gone and self._mapped(facts, call) is not None and _takes_any_iterable(facts, call):
                gone.update(n for n in walk(call.args[0]))
                says = f"`{facts.short(call)}`: {WHY}"
                yield Change(call, self.edit(facts, call, says), take_argument(1), (call.args[0], call.func))
        for call in facts.walk(ast.Call):
            if call not in gone:
                yield from self._call(facts, call)
        for call, part in brought_to_parts(facts):
            says = f"`{facts.short(call)}`: `{part}` is where the runtime places it"
            yield Change(call, self.edit(facts, call, says), unwrap, (*call.args, *call.keywords))

    def _helper_functions(self, facts: Facts) -> Iterator[Change]:
        """Functions that only move what they get, or take a wrapper off it, and of which every call goes."""
        movers: list[Mover] = [*facts.walk(ast.FunctionDef), *facts.walk(ast.Lambda)]
        self.helpers = {f: calls for f in movers if (calls := self._calls_of_helper(facts, f))}
        self._helped = {call for calls in self.helpers.values() for call in calls}
        for f in self.helpers:
            s = facts.scopes.statement_of(f)
            bare = any(n in facts.unwrapped for n in walk(f)) and not any(self._is_move(facts, n) for n in walk(f))
            says = f"{facts.classes.name_of(f)}() removed: it only " + (GAVE if bare else f"moved its argument; {WHY}")
            self._unwrapping.update(self.helpers[f] if bare else ())
            yield Change(s, self.edit(facts, s, says), None, (s,))

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from places_by_name(facts, self.code)
        yield from another_card(facts, self.code)
        yield from handed_on(facts, self.code)
        yield from own_moves(facts, self.code)
        yield from moves_that_do_more(facts, self.code)
        yield from asked_for_cpu(facts, self.code)
        yield from parts_apart(facts, self.code)

    def _calls_of_helper(self, facts: Facts, f: Mover) -> list[ast.Call]:
        """The calls of a function that gives its first argument back, moved: `def to_gpu(x): return x.cuda()`."""
        parameters = [*f.args.posonlyargs, *f.args.args]
        if not parameters or f.args.vararg or f.args.kwarg or facts.is_library:
            return []
        recursive = isinstance(f, ast.FunctionDef) and calls_itself(f)
        whatever = isinstance(f, ast.FunctionDef) and recursive and moves_whatever(facts, f)
        if not (whatever or (not recursive and self._moves_argument(facts, f, parameters[0].arg))):
            return []
        uses = facts.classes.uses_of(f) if facts.classes.holder(f) is None else [f]
        uses = [u for u in uses if u is f or f not in facts.scopes.ancestors(u)] if recursive else uses
        calls = [u for u in uses if isinstance(u, ast.Call)]
        plain = all(
            len(c.args) > 0
            and not isinstance(c.args[0], ast.Starred)
            and all(self._goes_with_it(facts, a) for a in (*c.args[1:], *(k.value for k in c.keywords)))
            and facts.placed.by_runtime(c.args[0])
            for c in calls
        )
        return calls if len(calls) == len(uses) and plain else []

    def _moves_argument(self, facts: Facts, f: Mover, x: str) -> bool:
        """Whether all that a function does is to give an argument back, moved or without its wrapper."""
        block = f.body if isinstance(f, ast.FunctionDef) else [ast.Return(f.body)]
        body = [s for s in block if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        last = body.pop() if body else None
        if not (isinstance(last, ast.Return) and last.value is not None and _is(self.stripped(facts, last.value), x)):
            return False
        return all(self._only_moves_to_itself(facts, s) for s in body) and (bool(body) or not _is(last.value, x))

    def _goes_with_it(self, facts: Facts, given: ast.expr) -> bool:
        """What else a function that moves alone is given, `non_blocking=True`, is for the move."""
        return isinstance(given, (ast.Constant, ast.Name, ast.Attribute)) or self._says_where(facts, given)

    def _says_where(self, facts: Facts, value: ast.expr) -> bool:
        return facts.devices.is_device(value) and not facts.devices.effects.has(value)

    def _only_moves_to_itself(self, facts: Facts, s: ast.stmt) -> bool:
        if isinstance(s, ast.If):
            return all(self._only_moves_to_itself(facts, inner) for inner in (*s.body, *s.orelse))
        return isinstance(s, ast.Assign) and self._moves_to_itself(facts, s)

    def _call(self, facts: Facts, call: ast.Call) -> Iterator[Change]:
        if facts.is_fixed(call):
            return
        if call in self._helped:
            parts = (*call.args[1:], *call.keywords, call.func)
            says = f"`{facts.short(call)}`: {BARE if call in self._unwrapping else WHY}"
            alone = facts.scopes.parents.get(call)
            if isinstance(alone, ast.Expr) and not has_effect(call.args[0]):  # `to_device(model, device)`
                yield Change(alone, self.edit(facts, call, says), None, (alone,))
                return
            yield Change(call, self.edit(facts, call, says), take_argument(0), parts)
            return
        receiver = facts.devices.moved(call)
        if receiver is None:
            yield from self._made_there(facts, call)
            return
        placed = self._is_placed(facts, receiver) or facts.placed.becomes_module(call)
        if not placed and not _kept_by_loss(facts, call):
            return
        kept = what_stays(facts, call)
        says = f"`{facts.short(call)}`: {WHY}"
        holder = facts.scopes.parents.get(call)
        if not kept and isinstance(holder, ast.Expr):
            if has_effect(receiver):
                yield Change(call, self.edit(facts, call, says), unwrap, (*call.args, *call.keywords))
            else:
                yield Change(holder, self.edit(facts, call, says), None, (holder,))
            return
        where = tuple(a for i, a in enumerate([*call.args, *call.keywords]) if i not in kept)
        yield Change(call, self.edit(facts, call, says), keep_arguments(kept) if kept else unwrap, where)
        if _unpinned(receiver) is not receiver:  # what is on a card cannot be pinned
            yield Change(receiver, self.edit(facts, receiver, f"`{facts.short(receiver)}`: {WHY}"), unwrap, ())

    def _made_there(self, facts: Facts, call: ast.Call) -> Iterator[Change]:
        """`nn.Linear(3, 4, device=device)`: a module that is made on a device is placed all the same."""
        if not (facts.placed.is_module(call) and facts.placed.by_runtime(call)) or not (
            facts.names.resolve(call.func) or ""
        ).startswith("torch.nn."):
            return
        for i, k in enumerate(call.keywords):
            if k.arg == "device" and self._says_where(facts, k.value):
                says = f"`{facts.short(k)}`: {WHY}"
                yield Change(call, self.edit(facts, k.value, says), DropArgument(len(call.args) + i), (k.value,))

    def _branches(self, facts: Facts, gone: set[ast.AST]) -> Iterator[Change]:
        """`x.cuda() if use_cuda else x` is `x`."""
        for choice in facts.walk(ast.IfExp):
            if choice in gone:
                continue
            body, orelse = self.stripped(facts, choice.body), self.stripped(facts, choice.orelse)
            if (body is choice.body and orelse is choice.orelse) or ast.unparse(body) != ast.unparse(orelse):
                continue
            plain_body = body is choice.body
            says = f"`{facts.short(choice)}`: {WHY}"
            holder = facts.scopes.parents.get(choice)
            if isinstance(holder, ast.Expr) and isinstance(body, (ast.Name, ast.Attribute)):
                yield Change(holder, self.edit(facts, choice, says), None, (holder,))  # `x.cuda() if use_cuda else x`
                continue
            parts = (choice.test, choice.orelse if plain_body else choice.body)
            rewrite = branch_of(facts, choice, "body" if plain_body else "orelse")
            yield Change(choice, self.edit(facts, choice, says), rewrite, parts)

    def _same_branches(self, facts: Facts, gone: set[ast.AST]) -> Iterator[Change]:
        """`if use_cuda: y = f(x).cuda()` `else: y = f(x)`: the branch that moves things is left of the two."""
        for branch in facts.walk(ast.If):
            up = facts.scopes.parents.get(branch)
            chained = isinstance(up, ast.If) and up.orelse == [branch]
            if branch in gone or chained or not branch.orelse or isinstance(branch.orelse[0], ast.If):
                continue
            blocks = (branch.body, branch.orelse)
            moved = [[n for s in b for n in walk(s) if self._is_move(facts, n)] for b in blocks]
            moves = [bool(m) for m in moved]
            if sum(moves) != 1 or not only_asks(facts.names, branch.test):
                continue
            if not all(self._goes(facts, n) for m in moved for n in m):
                continue
            body, orelse = ([plain(facts, s) for s in b] for b in (branch.body, branch.orelse))
            if [s for s in body if s] != [s for s in orelse if s]:
                continue
            other = branch.orelse if moves[0] else branch.body
            gone.update(n for part in (branch.test, *other) for n in walk(part))
            says = f"`if {facts.short(branch.test)}:` removed: its branches differ by a device alone; {WHY}"
            rewrite = body_only if moves[0] else else_only
            yield Change(branch, self.edit(facts, branch, says), rewrite, (branch.test, *other))

    def _same_choices(self, facts: Facts, gone: set[ast.AST]) -> Iterator[Change]:
        """`f(x.cuda()) if use_cuda else f(x)` is `f(x)`."""
        for choice in facts.walk(ast.IfExp):
            if choice in gone or not only_asks(facts.names, choice.test) or facts.is_fixed(choice):
                continue
            moved = [[n for n in walk(side) if self._is_move(facts, n)] for side in (choice.body, choice.orelse)]
            if sum(map(bool, moved)) != 1 or not all(self._goes(facts, n) for m in moved for n in m):
                continue
            if plain(facts, choice.body) != plain(facts, choice.orelse):
                continue
            left, other = ("orelse", choice.body) if moved[0] else ("body", choice.orelse)
            gone.update(n for part in (choice.test, other) for n in walk(part))
            says = f"`{facts.short(choice)}`: {WHY}"
            yield Change(choice, self.edit(facts, choice, says), branch_of(facts, choice, left), (choice.test, other))

    def _is_move(self, facts: Facts, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and facts.devices.moved(node) is not None

    def _goes(self, facts: Facts, call: ast.AST) -> bool:
        receiver = facts.devices.moved(call) if isinstance(call, ast.Call) else None
        if receiver is None or facts.is_fixed(call):
            return False
        return call in facts.buffered or facts.placed.by_runtime(receiver) or _kept_by_loss(facts, call)  # type: ignore[arg-type]

    def stripped(self, facts: Facts, value: ast.expr) -> ast.expr:
        """What is left of an expression once it is not moved any more; the expression itself when nothing moves it."""
        if value in facts.unwrapped:
            return self.stripped(facts, facts.unwrapped[value])
        if isinstance(value, ast.IfExp):
            body, orelse = self.stripped(facts, value.body), self.stripped(facts, value.orelse)
            moved = body is not value.body or orelse is not value.orelse
            return body if moved and ast.unparse(body) == ast.unparse(orelse) else value
        if isinstance(value, ast.Call) and value in self._helped:
            return self.stripped(facts, value.args[0])
        if isinstance(value, ast.Call) and is_bare_variable(facts, value):
            return self.stripped(facts, value.args[0])
        if isinstance(value, ast.Call) and not what_stays(facts, value):
            receiver = facts.devices.moved(value)
            if receiver is not None and self._is_placed(facts, receiver):
                return self.stripped(facts, _unpinned(receiver))
        if isinstance(value, (ast.DictComp, ast.ListComp)) and self._only_moves(facts, value):
            source = value.generators[0].iter
            if isinstance(value, ast.ListComp):
                return source
            assert isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute)
            return source.func.value
        if isinstance(value, ast.GeneratorExp) and self._only_moves(facts, value):
            source = value.generators[0].iter
            return source if isinstance(source, (ast.Tuple, ast.List)) else value
        if isinstance(value, ast.Call) and isinstance(self._mapped(facts, value), (ast.Tuple, ast.List)):
            return value.args[1]
        return value

    def _is_placed(self, facts: Facts, receiver: ast.expr) -> bool:
        return facts.placed.by_runtime(receiver) and not given_to_plain_list(facts, receiver)

    def _mapped(self, facts: Facts, call: ast.Call) -> ast.expr | None:
        """`batch` of `map(lambda t: t.to(device), batch)`."""
        if not (isinstance(call.func, ast.Name) and call.func.id == "map" and len(call.args) == 2):
            return None
        f, source = call.args
        if not isinstance(f, ast.Lambda) or len(f.args.args) != 1 or call.keywords:
            return None
        moves = self.stripped(facts, f.body) is not f.body and _is(self.stripped(facts, f.body), f.args.args[0].arg)
        elements = source.elts if isinstance(source, (ast.Tuple, ast.List)) else [source]
        return source if moves and all(facts.placed.by_runtime(e) for e in elements) else None

    def _only_moves(self, facts: Facts, value: ast.DictComp | ast.ListComp | ast.GeneratorExp) -> bool:
        """`[t.to(device) for t in batch]`, `{k: v.to(device) for k, v in batch.items()}`."""
        if len(value.generators) != 1 or value.generators[0].ifs or value.generators[0].is_async:
            return False
        target, source = value.generators[0].target, value.generators[0].iter
        element = value.value if isinstance(value, ast.DictComp) else value.elt
        left = self.stripped(facts, element)
        if left is element:
            return False
        if not isinstance(value, ast.DictComp):
            return ast.unparse(left) == ast.unparse(target) and facts.placed.by_runtime(source)
        return (
            isinstance(source, ast.Call)
            and isinstance(source.func, ast.Attribute)
            and source.func.attr == "items"
            and not source.args
            and ast.unparse(target) == ast.unparse(ast.Tuple([value.key, left], ast.Load()))
        )

    def _is_unpacked(self, facts: Facts, value: ast.ListComp | ast.GeneratorExp) -> bool:
        """`x, y = [t.to(device) for t in batch]`, `tuple(t.to(device) for t in batch)`."""
        return _takes_any_iterable(facts, value) and self._only_moves(facts, value)

    def _moves_to_itself(self, facts: Facts, statement: ast.Assign) -> bool:
        """`x = x.cuda()`, `a, b = a.to(device), b.to(device)`, `model = model.to(device)`."""
        targets = statement.targets
        if _gives_back(facts, statement, self.stripped(facts, statement.value)):
            return True
        return len(targets) == 1 and assigns_itself(targets[0], statement.value, partial(self.stripped, facts))


def _unpinned(node: ast.expr) -> ast.expr:
    """`x` of the `x.pin_memory()` in `x.pin_memory().cuda()`."""
    pins = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "pin_memory"
    return node.func.value if pins and not node.args and not node.keywords else node  # type: ignore[attr-defined]


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _gives_back(facts: Facts, s: ast.Assign, left: ast.expr) -> bool:
    """`state[k] = v.cuda()` in `for k, v in state.items():`."""
    if left is s.value or not isinstance(left, ast.Name) or not isinstance(s.targets[0], ast.Subscript):
        return False
    held, loop = s.targets[0], next((u for u in facts.scopes.ancestors(s) if isinstance(u, ast.For)), None)
    if loop is None or len(s.targets) > 1:
        return False
    pair = ast.unparse(ast.Tuple([held.slice, left], ast.Load()))
    return ast.unparse(loop.target) == pair and ast.unparse(loop.iter) == f"{ast.unparse(held.value)}.items()"


def _takes_any_iterable(facts: Facts, value: ast.expr) -> bool:
    """Whether it is taken apart, or made a tuple or a list, so that what it goes through does as well."""
    holder = facts.scopes.parents.get(value)
    if isinstance(holder, ast.Assign):
        return all(isinstance(t, (ast.Tuple, ast.List)) for t in holder.targets)
    if isinstance(holder, ast.Starred):
        return isinstance(facts.scopes.parents.get(holder), ast.Call)
    called = holder.func if isinstance(holder, ast.Call) and len(holder.args) == 1 else None
    return isinstance(called, ast.Name) and called.id in ("tuple", "list") and value is not called


def _taking_iterable(facts: Facts, value: ast.ListComp | ast.GeneratorExp) -> tuple[ast.AST, Any]:
    """What is rewritten: a generator's own place is another in libcst, for which its parentheses are not its own."""
    holder = facts.scopes.parents[value]
    if isinstance(value, ast.ListComp):
        return value, take_iterable
    if isinstance(holder, ast.Assign):
        return holder, _assigned_iterable
    call = holder if isinstance(holder, ast.Call) else facts.scopes.parents[holder]
    assert isinstance(call, ast.Call)
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    ordered = sorted(arguments, key=lambda a: (a.lineno, a.col_offset))
    place = next(i for i, a in enumerate(ordered) if a in (value, holder))

    def argument(original: Any, updated: Any) -> Any:
        args = list(updated.args)
        args[place] = args[place].with_changes(value=args[place].value.for_in.iter)
        return updated.with_changes(args=args)

    return call, argument


def _assigned_iterable(original: Any, updated: Any) -> Any:
    """`x, y = batch` of `x, y = (t.cuda() for t in batch)`, beside which another change may have put a statement."""
    if hasattr(updated, "with_changes"):
        generator: Any = getattr(updated, "value", None)
        return updated.with_changes(value=generator.for_in.iter) if hasattr(generator, "for_in") else updated
    return type(updated)([_assigned_iterable(original, s) for s in updated])


def _kept_by_loss(facts: Facts, call: ast.Call) -> bool:
    """`nn.CrossEntropyLoss(weight=w.to(device))`, `nn.Parameter(w.cuda())`: a module keeps it, and is placed."""
    up = facts.scopes.parents.get(call)
    holder = facts.scopes.parents.get(up) if isinstance(up, ast.keyword) else up
    if not (isinstance(holder, ast.Call) and (facts.names.resolve(holder.func) or "").startswith("torch.nn.")):
        return False
    full = facts.names.resolve(holder.func) or ""
    if full == "torch.nn.Parameter":
        assigned = facts.scopes.parents.get(_moved(facts, holder))
        return isinstance(assigned, ast.Assign) and any(isinstance(t, ast.Attribute) for t in assigned.targets)
    given = {argument_at(holder, "weight", 0), argument_at(holder, "pos_weight", 99)}
    return full.endswith("Loss") and call in given


def _moved(facts: Facts, made: ast.AST) -> ast.AST:
    """`made.to(device)`, where something that is made moves at once."""
    named = facts.scopes.parents.get(made)
    call = facts.scopes.parents.get(named) if isinstance(named, ast.Attribute) else None
    moves = isinstance(call, ast.Call) and (named.attr == "cuda" or facts.devices.device_arguments(call))  # type: ignore[union-attr]
    return call if moves and call is not None else made
