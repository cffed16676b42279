"""T9, first: of branches that ask how many processes there are, a plain script takes one, and the others go.

`if args.distributed:`, `"RANK" in os.environ`, `if get_world_size() == 1: return x` and what comes after it. What the
tests asked for, and nothing else reads, goes with them: a flag, a helper, an option. Questions for rank 0 stay.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from itertools import chain
from typing import Any

from ..facts.alone import always_true
from ..facts.effects import SEEDS, only_asks
from ..facts.loops import last_part
from ..facts.nodes import walk
from ..facts.operands import joined
from ..facts.process_names import RANK_NAME
from ..facts.runtime_names import imported_as, runtime_name
from ..facts.script import Facts
from ..facts.world import PLAIN, Known
from ..facts.worlds import Worlds
from ..report import Note
from ._changed_alone import changed_alone
from ._own_draws import own_draws
from ._prepared import prepares_files
from ._set_off import branch_of
from ._unread_branches import WHY, UnreadBranches
from .base import Change
from .branch_rewrites import body_only, first_gone, take_elif
from .once import ASKS, FIRST, ON_NODE
from .plain_numbers import PlainNumbers
from .rank_guards import (
    chosen_and_sent,
    done_once,
    goes_over_data,
    loads_state,
    makes_network,
    needed_to_send,
    sent_to_all,
    there_for_all,
)
from .rewrites import source, take_branch, without_condition

CONDITIONS = (ast.Compare, ast.BoolOp, ast.UnaryOp)
CHOOSING = (*CONDITIONS, ast.IfExp)
DREW = "goes with its branch: one process that is connected draws by it, too, and now as the other branch says"


class PlainBranches(UnreadBranches):
    code = "PTM420"
    name = "plain-branches"

    def __init__(self, asked: bool = False) -> None:
        self.asked = asked  # whether something that asked for ranks has gone before

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.facts, self.worlds = facts, facts.worlds
        self.gone, self.left = set(), []
        self._tell_of_functions(facts)
        numbers = PlainNumbers(self.gone)
        for change in chain(self._branches(facts), numbers.plan(facts)):
            for part in change.gone:
                self.gone.update(walk(part))
            yield change
        self.left[:0] = numbers.left
        if self.gone or self.asked:
            yield from self.unread(facts)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _tell(self, facts: Facts, node: ast.AST, says: str) -> None:
        line, column, _, _ = facts.text.key(node)
        self.left.append(Note(line, column + 1, self.code, says))

    def _tell_of_functions(self, facts: Facts) -> None:
        """`if is_main_process:`, which lacks its call."""
        tests = [n.test for n in facts.walk(ast.If)] + [n.test for n in facts.walk(ast.IfExp)]
        for test in tests:
            for node in walk(test):
                if always_true(facts, node):
                    says = "a function, which is not called here, and so always true: every process comes there"
                    self._tell(facts, node, f"`{facts.short(node)}`: {says}")

    # -- branches ---------------------------------------------------------------------------------------------

    def _branches(self, facts: Facts) -> Iterator[Change]:
        for s in [n for n in facts.scopes.parents if isinstance(n, ast.stmt)]:  # the outer ones first
            if s in self.gone:
                continue
            if isinstance(s, ast.If):
                yield from self._if(facts, s)
            elif isinstance(s, ast.Assert):
                known = self.worlds.plain(s.test)
                holds = known is not None and (not known.value or not self._counts_more(s.test))
                if holds and only_asks(facts.names, s.test):
                    says = f"`{facts.short(s)}` removed: {WHY}"
                    yield Change(s, self.edit(facts, s, says), None, (s,))
            for field in ("body", "orelse", "finalbody"):
                yield from self._unreached(facts, getattr(s, field, None))
        yield from self._expressions(facts)

    def _if(self, facts: Facts, s: ast.If) -> Iterator[Change]:
        known = self._decided(facts, s.test)
        if known is None:
            return
        taken, left = (s.body, s.orelse) if known.value else (s.orelse, s.body)
        says = f"`if {facts.short(s.test)}:` is {bool(known.value)} in a plain script: {WHY}"
        for call in own_draws(facts, s.test, left):
            self._tell(facts, call, f"`{facts.short(call)}` {DREW}")
        if taken and self.worlds.reached.refuses(taken):  # it wants several processes, which the runtime gives it
            taken, left = left, taken
            says = f"`if {facts.short(s.test)}:` refuses one process: {WHY}"
        yield from self._asked_there(facts, left)
        parts: tuple[ast.AST, ...] = (s.test, *left)
        if facts.text.is_elif(s):
            yield Change(s, self.edit(facts, s, says), take_elif(taken is s.body), parts)
            return
        if not taken:
            yield Change(s, self.edit(facts, s, says), None, (s,))
        elif taken is s.body:
            yield Change(s, self.edit(facts, s, says), body_only, parts)
        else:
            yield Change(s, self.edit(facts, s, says), first_gone, parts)

    def _asked_there(self, facts: Facts, left: list[ast.stmt]) -> Iterator[Change]:
        """`main = True` of one process, where the branch that goes has `main = rank == 0`: it still means rank 0."""
        going = [n for s in left for n in walk(s)]
        for asked in going:
            if not (isinstance(asked, ast.Assign) and len(asked.targets) == 1 and _is_condition(asked.value)):
                continue
            target = asked.targets[0]
            if not isinstance(target, (ast.Name, ast.Attribute)):
                continue
            zero, scope = self.worlds.by_rank(asked.value), facts.scopes.scope_of(target)
            for s in facts.walk(ast.Assign) if zero is not None else ():
                same = [ast.unparse(t) for t in s.targets] == [ast.unparse(target)]
                if same and s not in going and _is(s.value, zero) and facts.scopes.scope_of(s.targets[0]) is scope:
                    new = f"{imported_as(facts, ASKS)}()"
                    new = new if zero else f"not {new}"
                    yield Change(s.value, self.edit(facts, s, f"`{facts.short(s)}` is `{new}`: {WHY}"), source(new))

    def _decided(self, facts: Facts, test: ast.expr) -> Known | None:
        known = self.worlds.plain(test)
        asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
        if known is None or self.worlds.counts_cards(asked):  # `if args.n_gpu:` asks whether there is one
            return None
        if not only_asks(facts.names, _without_local_calls(test, self.worlds)):
            return None
        return None if any(self._seeds(facts, n) for n in walk(test)) else known

    def _seeds(self, facts: Facts, n: ast.AST) -> bool:
        """`if init(4):` whose function sets seeds in a plain script, too: they have to be set."""
        f = facts.devices.function_of(n) if isinstance(n, ast.Call) else None
        calls = list(walk(f, ast.Call)) if f is not None else []
        return any(SEEDS.search(last_part(c.func) or "") and self.worlds.reached.live(c, PLAIN) for c in calls)

    def _unreached(self, facts: Facts, block: Any) -> Iterator[Change]:
        """What stands after a branch that a plain script always leaves by."""
        if not isinstance(block, list) or not block or not isinstance(block[0], ast.stmt):
            return
        for i, s in enumerate(block[:-1]):
            if (
                isinstance(s, ast.If)
                and self.worlds.reached.exits(s, PLAIN)
                and self._decided(facts, s.test) is not None
            ):
                for rest in block[i + 1 :]:
                    if rest not in self.gone:
                        says = f"`{facts.short(rest)}` removed: a plain script is gone before"
                        yield Change(rest, self.edit(facts, rest, says), None, (rest,))
                end = self._bare_end(facts, s) if isinstance(facts.scopes.parents.get(s), ast.FunctionDef) else None
                if end is not None:
                    yield Change(end, self.edit(facts, end, "`return` removed: it stands at the end now"), None, (end,))
                return

    def _bare_end(self, facts: Facts, s: ast.If) -> ast.Return | None:
        """The bare `return` by which a plain script leaves a branch, below other statements of it."""
        known = self._decided(facts, s.test)
        taken = [] if known is None else s.body if known.value else s.orelse
        last = taken[-1] if taken and not self.worlds.reached.refuses(taken) else None
        if isinstance(last, ast.If):
            return self._bare_end(facts, last)
        return last if isinstance(last, ast.Return) and last.value is None and len(taken) > 1 else None

    def _expressions(self, facts: Facts) -> Iterator[Change]:
        """Choices and conditions inside of statements that stay."""
        roots: list[ast.If | ast.While | ast.IfExp] = [
            *facts.walk(ast.If), *facts.walk(ast.While), *facts.walk(ast.IfExp)
        ]  # fmt: skip
        tests: set[ast.AST] = {n.test for n in roots}
        inside: set[ast.AST] = set()
        for node, up in facts.scopes.parents.items():
            if not (isinstance(node, CHOOSING) or isinstance(up, ast.keyword) or node in tests):
                continue
            if not isinstance(node, ast.expr) or node in self.gone or node in inside:
                continue
            if facts.is_fixed(node):
                continue
            if isinstance(up, ast.comprehension):
                holder = facts.scopes.parents[up]
                if node in up.ifs and not isinstance(holder, ast.GeneratorExp) and self._is_share(node):
                    inside.update(walk(node))
                    yield self._all_of_it(facts, node, up)
                if not (node in up.ifs and isinstance(node, ast.BoolOp)):
                    continue
            if isinstance(node, ast.IfExp) and (known := self._decided(facts, node.test)) is not None:
                field, other = ("body", node.orelse) if known.value else ("orelse", node.body)
                says = f"`{facts.short(node.test)}` is {bool(known.value)} in a plain script: {WHY}"
                if isinstance(up, ast.Assign) and [ast.unparse(getattr(node, field))] == [
                    *map(ast.unparse, up.targets)
                ]:
                    inside.update(walk(node))  # model = DDP(model) if distributed else model
                    yield Change(up, self.edit(facts, node, says), None, (up,))
                    continue
                inside.update([*walk(node.test), *walk(other)])
                yield Change(node, self.edit(facts, node, says), branch_of(facts, node, field), (node.test, other))
                continue
            choice = self._sent_choice(facts, node) if isinstance(node, ast.IfExp) else self._sent_if(facts, node)
            if choice is not None:
                inside.update(walk(node))
                yield choice
                continue
            asks = _is_condition(node) or node in tests or self._is_shuffle(facts, node)
            if asks and (changes := list(self._condition(facts, node, node in tests))):
                inside.update(walk(node))
                yield from changes

    def _sent_choice(self, facts: Facts, node: ast.IfExp) -> Change | None:
        """`names = [x] if rank == 0 else [None]`, which rank 0 sent the others, or what it was computed from."""
        zero = self.worlds.by_rank(node.test)
        sent = chosen_and_sent(facts, node) if zero is not None else None
        field, other = ("body", node.orelse) if zero else ("orelse", node.body)
        if sent is None and zero is not None and isinstance(other, ast.Constant) and other.value is None:
            holder = facts.scopes.parents.get(node)
            of = holder if isinstance(holder, ast.Assign) and holder.value is node else None
            sent = needed_to_send(facts, of, self._is_zero) if of is not None else None
            if sent is None and makes_network(facts, getattr(node, field)):
                says = f"`{facts.short(node.test)}` removed: every process makes the network, as one alone does"
                return Change(node, self.edit(facts, node, says), take_branch(field), (node.test, other))
        if sent is None:
            return None
        says = f"every process computes `{sent}`, which rank 0 sent the others"
        self._tell(facts, node, f"`if {facts.short(node.test)}` removed: {says}")
        edit = self.edit(facts, node, f"`{facts.short(node.test)}` removed: nothing is sent to others any more")
        return Change(node, edit, take_branch(field), (node.test, other))

    def _sent_if(self, facts: Facts, node: ast.expr) -> Change | None:
        """`stop = [late and rank == 0]`, which rank 0 sent the others."""
        if not isinstance(node, ast.BoolOp):
            return None
        left = self._without_guard(facts, node)
        sent = chosen_and_sent(facts, node) if left else None
        if left is None or sent is None or isinstance(facts.scopes.statement_of(node), (ast.If, ast.While)):
            return None
        says = f"every process computes `{sent}`, which rank 0 sent the others"
        self._tell(facts, node, f"`{facts.short(node)}` became `{left}`: {says}")
        edit = self.edit(facts, node, f"`{facts.short(node)}` became `{left}`: nothing is sent to others any more")
        asks = [v for v in node.values if self.worlds.by_rank(v) is True]
        return Change(node, edit, source(left), tuple(asks))

    def _counts_more(self, test: ast.expr) -> bool:
        """Whether a test asks for other numbers, too: `total % (batch * world_size) == 0`."""
        names = (n for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load))
        known = (self.worlds.value(n, PLAIN) for n in names)
        return any(k is not None and not k.asked for k in known)

    def _is_share(self, test: ast.expr) -> bool:
        """`i % world == rank`, which takes every sample on one process."""
        known = self.worlds.plain(test) if isinstance(test, ast.Compare) else None
        return known is not None and known.value is True and only_asks(self.facts.names, test)

    def _all_of_it(self, facts: Facts, test: ast.expr, part: ast.comprehension) -> Change:
        """`[i for i in xs if i % world == rank]` to `[i for i in xs]`."""
        whole = facts.scopes.parents[part]
        rewrite = without_condition(whole.generators.index(part), part.ifs.index(test))  # type: ignore[attr-defined]
        says = f"`if {facts.short(test)}` removed: one process has all of it, and {WHY}"
        return Change(whole, self.edit(facts, test, says), rewrite, (test,))

    def _is_shuffle(self, facts: Facts, node: ast.AST) -> bool:
        up = facts.scopes.parents.get(node)
        return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(up, ast.keyword) and up.arg == "shuffle"

    def _condition(self, facts: Facts, node: ast.expr, tests: bool) -> Iterator[Change]:
        up = outer = facts.scopes.parents.get(node)
        while isinstance(outer, CONDITIONS):  # shuffle=train and sampler is None
            outer = facts.scopes.parents.get(outer)
        if isinstance(outer, ast.keyword) and outer.arg == "shuffle" and self._names_sampler(facts, node, outer):
            return
        sent = self._sent_from(facts, up) if isinstance(up, ast.If) and tests else None
        once = isinstance(up, ast.If) and tests and done_once(facts, up) and self._known_to_all(facts, up)
        if isinstance(up, ast.If) and tests and (once or sent or loads_state(facts, up)):
            left = self._without_guard(facts, node)
            if left is not None and not (left and up.orelse):
                if sent is not None and not once:
                    says = f"every process computes `{sent}`, which rank 0 sent the others, and does all else there"
                    alone = changed_alone(facts, up, self._is_zero)
                    says += "; it reads what rank 0 alone fills, and the others compute another value" if alone else ""
                    self._tell(facts, up, f"`if {facts.short(node)}:` removed: {says}")
                why = "what only one process may do is done once by the runtime"
                says = f"`if {facts.short(node)}:` removed: {why if once else 'nothing is sent to others any more'}"
                change = (up, body_only) if left == "" else (node, source(left))
                asks = [v for v in getattr(node, "values", [node]) if self.worlds.by_rank(v) is True]
                yield Change(change[0], self.edit(facts, up, says), change[1], tuple(asks) if left else (node,))
                return
        self._kept: set[ast.AST] = set()
        self._tell_of_draws(facts, node, up)
        new = self._simplified(facts, node, tests)
        if new is None or (isinstance(up, ast.Assert) and new == "True"):  # its numbers are others now
            return
        if isinstance(up, ast.Assign) and up.value is node and [new] == [*map(ast.unparse, up.targets)]:
            says = f"`{facts.short(up)}` removed: it changes nothing in a plain script"
            yield Change(up, self.edit(facts, up, says), None, (up,))  # force = force or world_size > 8
            return
        gone = tuple(n for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute)) and n not in self._kept)
        says = f"`{facts.short(node)}` became `{' '.join(new.split())}`: {WHY}"
        number = isinstance(up, ast.Call) and ast.unparse(up) == f"bool({ast.unparse(node)})"
        whole: ast.AST = up if number and up is not None and new in ("True", "False") else node
        yield Change(whole, self.edit(facts, node, says), source(new), gone)

    def _sent_from(self, facts: Facts, branch: ast.If) -> str | None:
        """What a guarded block gives a value that rank 0 sent the others, or what that was computed from."""
        sent = sent_to_all(facts, branch)
        return sent if sent is not None or branch.orelse else needed_to_send(facts, branch, self._is_zero)

    def _known_to_all(self, facts: Facts, branch: ast.If) -> bool:
        """Whether a guarded block reads nothing that rank 0 alone has, or has another value of."""
        return there_for_all(facts, branch, self._is_zero) and not changed_alone(facts, branch, self._is_zero)

    def _is_zero(self, test: ast.expr) -> bool:
        return self.worlds.by_rank(test) is True

    def _tell_of_draws(self, facts: Facts, test: ast.expr, branch: ast.AST | None) -> None:
        """An evaluation that rank 0 goes on making alone, among what the others are not to do."""
        if not isinstance(branch, ast.If) or test is not branch.test or self._without_guard(facts, test) is None:
            return
        calls = [n for s in branch.body for n in walk(s, ast.Call)]
        if (call := next((c for c in calls if goes_over_data(facts, c)), None)) is not None:
            says = "rank 0 alone makes this evaluation: what it draws, the seed of a loader at least, the others do not"
            self._tell(facts, call, f"`{facts.short(call)}`: {says}")

    def _names_sampler(self, facts: Facts, node: ast.expr, k: ast.keyword) -> bool:
        """`shuffle=(sampler is None)` goes with the sampler of the same call."""
        call = facts.scopes.parents.get(k)
        given = {ast.unparse(x.value) for x in getattr(call, "keywords", ()) if x.arg == "sampler"}
        return any(ast.unparse(n) in given for n in walk(node) if isinstance(n, ast.expr))

    def _without_guard(self, facts: Facts, test: ast.expr) -> str | None:
        """`rank == 0` to nothing, `rank == 0 and epoch > 3` to `epoch > 3`."""
        if self.worlds.by_rank(test) is True:
            return ""
        if not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)):
            return None
        left = [v for v in test.values if self.worlds.by_rank(v) is not True]
        if len(left) == len(test.values) or any(self.worlds.by_rank(n) is not None for v in left for n in _exprs(v)):
            return None
        return joined((facts.text.get(v) for v in left), "and")

    def _simplified(self, facts: Facts, node: ast.expr, asked: bool = True) -> str | None:
        """The source of a condition as it is in a plain script; None when it is the same."""
        zero = self.worlds.by_rank(node)
        if zero is not None and (_is_condition(node) or (asked and RANK_NAME.search(_last(node)))):
            asks = imported_as(facts, ON_NODE if self._first_on_node(node) else ASKS)
            return f"{asks}()" if zero else f"not {asks}()"
        if zero is None and (known := self._decided(facts, node)) is not None and type(known.value) is bool:
            return str(known.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._simplified(facts, node.operand)
            return f"not ({inner})" if inner is not None else None
        if isinstance(node, ast.BoolOp):
            return self._simplified_parts(facts, node)
        self._kept.update(walk(node))
        return None

    def _first_on_node(self, test: ast.expr) -> bool:
        """Whether one process of every machine prepares something there: the others of it wait, or find files there."""
        if not self.worlds.once_a_node(test):
            return False
        ups = list(self.facts.scopes.ancestors(test))
        if any(isinstance(up, ast.With) and _is_turn(self.facts, up.items[0].context_expr) for up in ups):
            return True
        branch = next((up for up in ups if isinstance(up, ast.stmt)), None)
        return isinstance(branch, ast.If) and test in walk(branch.test) and prepares_files(self.facts, branch.body)

    def _simplified_parts(self, facts: Facts, node: ast.BoolOp) -> str | None:
        """`args.save and not distributed` is `args.save`."""
        passes = str(isinstance(node.op, ast.And))
        parts = [(v, self._simplified(facts, v)) for v in node.values]
        if all(new is None for _, new in parts):
            return None
        left = [facts.text.get(v) if new is None else new for v, new in parts if new != passes]
        return joined(left, "and" if passes == "True" else "or") if left else passes


def _is_turn(facts: Facts, context: ast.expr) -> bool:
    return isinstance(context, ast.Call) and runtime_name(facts, context.func) == FIRST


def _is(value: ast.expr, what: bool | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is what


def _is_condition(node: ast.expr) -> bool:
    """What is true or false; `-rank` is a number."""
    return isinstance(node, CONDITIONS) and not (isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not))


def _exprs(node: ast.expr) -> list[ast.expr]:
    return [n for n in walk(node) if isinstance(n, ast.expr)]


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _without_local_calls(test: ast.expr, worlds: Worlds) -> ast.expr:
    """The test with the calls whose value is known left out of what may have an effect."""

    def rebuilt(node: Any) -> Any:
        if isinstance(node, ast.Call) and worlds.value(node, PLAIN) is not None:
            return ast.Constant(None)
        new = copy.copy(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(new, name, rebuilt(value))
            elif isinstance(value, list):
                setattr(new, name, [rebuilt(v) if isinstance(v, ast.expr) else v for v in value])
        return new

    return rebuilt(test)
