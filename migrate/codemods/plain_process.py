"""T9: distribution made by hand goes back to a plain script, which the runtime distributes.

Process groups, devices chosen by rank, wrappers, `.module`, spawning, hand reductions and batch sizes divided by the
world go; a rank is 0 and a world is 1. A script whose processes talk in other ways is left alone, and told of.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from ..facts.arguments import argument_at, given_to
from ..facts.distribution import (
    CHECKPOINTS,
    CHOOSE_CARD,
    GATHERS,
    STATEMENTS,
    Distribution,
    distribution_of,
)
from ..facts.effects import only_asks
from ..facts.environment import asked_by_name, asks_elsewhere, asks_launcher, handed_on, sets_addresses
from ..facts.gathered import ALONE, ALONE_VALUES
from ..facts.handles import statements_of
from ..facts.nodes import walk
from ..facts.operands import ATOM, closed
from ..facts.runtime_names import imported_as
from ..facts.script import Facts
from ..facts.spelled import spelled
from ..facts.world import PEERS
from ..facts.wrapped import CONVERTERS, WRAPPERS
from ..report import Note
from ._addresses import demanded, only_for_addresses
from ._by_mpi import told_of_mpi
from ._names_one_down import compared_names, counted_parts
from ._set_off import branch_of
from ._wrapped_names import loads_old_keys, names_that_go, wrapped_names
from .base import Change, Codemod, assigns_itself
from .branch_rewrites import body_only
from .empty_functions import WHY, empty_blocks, empty_functions
from .in_strings import InStrings
from .once import ASKS, ENVIRON
from .rewrites import put_together, source, statement_line, take_argument, take_value

REDUCES = {f"torch.distributed.{n}" for n in ("all_reduce", "reduce", "broadcast", "barrier")}
OF_A_WRAPPER = "only a wrapped model has it, and nothing wraps the model"
# what DistributedDataParallel has and a model has not
OF_WRAPPERS = dict.fromkeys(
    "_set_static_graph _register_builtin_comm_hook _register_fused_optim require_backward_grad_sync "
    "require_forward_param_sync find_unused_parameters device_ids output_device reducer".split(),
    OF_A_WRAPPER,
) | {"register_comm_hook": "gradients are sent as they are now; DDPStrategy(ddp_comm_hook=...) has a hook again"}


class PlainProcess(Codemod):
    code = "PTM420"
    name = "plain-process"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        found = distribution_of(facts)
        blocking = list(found.blocking())
        if blocking:
            for call in blocking:
                self._tell(facts, call, f"`{facts.short(call)}`: processes talk here in a way that is not rewritten")
            return
        for call, full in found.full.items():
            if full is not None and full.startswith(CHECKPOINTS):
                says = "needs DeepSpeed's engine set up for it; torch.utils.checkpoint goes with any strategy"
                self._tell(facts, call, f"`{facts.short(call)}`: {says}")
        yield from self._wrappers(facts, found)
        yield from self._card_blocks(facts)
        if not found.by_hand:
            yield from self._cards(facts, found)
            for call, full in found.full.items():
                if full in REDUCES or full in ALONE:
                    self._tell(
                        facts, call, f"`{facts.short(call)}`: the group that it needs is made elsewhere, or not at all"
                    )
            self._tell_of_launcher(facts)
            yield from self._in_strings(facts, found, set())
            return
        self._tell_of_own_files(facts)
        removed: set[ast.AST] = set()
        for change in self._statements(facts, found):
            removed.add(change.node)
            yield change
        for s in only_for_addresses(facts, {s for s in removed if _meets(facts, found, s)}):
            removed.add(s)
            yield Change(s, self.edit(facts, s, f"`{facts.short(s)}` removed: {WHY}"), None, (s,))
        for change in list(empty_blocks(self, facts, removed)):
            removed.add(change.node)
            yield change
        yield from self._gathers(facts, found)
        yield from empty_functions(self, facts, removed)
        yield from self._values(facts, found, removed)
        yield from self._spawns(facts, found)
        yield from self._in_strings(facts, found, removed)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left
        yield from told_of_mpi(facts, self.code)

    def _tell(self, facts: Facts, node: ast.AST, says: str) -> None:
        line, column, _, _ = facts.text.key(node)
        self.left.append(Note(line, column + 1, self.code, says))

    def _tell_of_launcher(self, facts: Facts) -> None:
        """A training that makes no group, and asks what the runtime's launcher says: `lr * int(os.environ[...])`."""
        trains = "backward" in facts.attributes and not facts.classes.run_by_trainer and not facts.handle
        for key in asks_launcher(facts) if trains else ():
            guards = (up for up in facts.scopes.ancestors(key) if isinstance(up, ast.Compare))
            if not any(ast.unparse(g.comparators[-1]) in ("0", "'0'") for g in guards):
                says = (
                    "several processes have it from their launcher, and one has not: what depends on it is another run"
                )
                self._tell(facts, key, f"`{facts.text.get(key)}`: {says}")

    def _tell_of_own_files(self, facts: Facts) -> None:
        """`open(f"log_{rank}.txt", "w")`: each process had a file of its own."""
        for call in facts.walk(ast.Call) if "open" in facts.text.text else ():
            mode = argument_at(call, "mode", 1) if getattr(call.func, "id", "") == "open" and call.args else None
            writes = isinstance(mode, ast.Constant) and re.search("[wax+]", str(mode.value))
            if writes and any(_is_rank(facts, n) for n in walk(call.args[0])) and False in facts.alone.reached_by(call):
                says = "its name had the rank, which is 0 now: every process writes the one file"
                self._tell(facts, call, f"`{facts.short(call)}`: {says}")

    # -- wrappers --------------------------------------------------------------------------------------------

    def _wrappers(self, facts: Facts, found: Distribution) -> Iterator[Change]:
        facts.unwrapped = {c: inner for c in found.wrapped if (inner := argument_at(c, "module", 0)) is not None}
        attributes = [a for a in found.module_attributes() if not facts.is_fixed(a)]
        facts.unwrapped |= {a: a.value for a in attributes}
        facts.unwrapped |= {choice: getattr(choice, field) for choice, field in found.unwrapping_choices()}
        if (loads := loads_old_keys(facts, found)) is not None:
            self._tell(facts, loads[0], f"`{facts.short(loads[0])}`: {loads[1]}")
        for a in found.own_modules():
            says = "a class has a `module` of its own, and may be asked for that; nothing wraps the model"
            self._tell(facts, a, f"`{facts.short(a)}`: {says}")
        compared = list(compared_names(facts, found)) if found.wrapped else []
        for _, node, new in compared:
            says = f"`{facts.short(node)}` became `{new}`: nothing wraps the model, whose names have no `module.` now"
            yield Change(node, self.edit(facts, node, says), source(new))
        for node, says in wrapped_names(facts, found) if found.wrapped else ():
            if all(c is not node for c, _, _ in compared):
                self._tell(facts, node, says)
        for node, says in counted_parts(facts, found) if found.wrapped else ():
            self._tell(facts, node, says)
        yield from self._of_wrappers(facts, found)
        yield from self._to_themselves(facts, found)
        for call in found.wrapped:
            inner = facts.unwrapped[call]
            place = given_to(call).index(inner)
            others = (a for a in (*call.args, *call.keywords) if a is not inner and getattr(a, "value", 0) is not inner)
            says = f"`{facts.short(call)}` removed: {_whose(facts, found, call)}"
            yield Change(call, self.edit(facts, call, says), take_argument(place), (call.func, *others))
        for choice, field in found.unwrapping_choices():
            says = f"`{facts.short(choice)}`: nothing wraps the model"
            yield Change(choice, self.edit(facts, choice, says), branch_of(facts, choice, field), (choice.test,))
        for attribute in attributes:
            says = f"`{facts.short(attribute)}`: nothing wraps the model"
            yield Change(attribute, self.edit(facts, attribute, says), take_value)

    def _of_wrappers(self, facts: Facts, found: Distribution) -> Iterator[Change]:
        """`model.register_comm_hook(...)`, `model.require_backward_grad_sync = ...`: only a wrapper has them."""
        named = [a for a in facts.walk(ast.Attribute) if a.attr in OF_WRAPPERS]
        for a in named if found.wrapped else ():
            if getattr(a.value, "attr", getattr(a.value, "id", "")) not in found.wrapped_names:
                continue
            up = facts.scopes.parents.get(a)
            s = facts.scopes.parents.get(up) if isinstance(up, ast.Call) and up.func is a else up
            alone = isinstance(s, ast.Expr) or (isinstance(s, ast.Assign) and s.targets == [a])
            if s is not None and alone:
                says = f"`{facts.short(s)}` removed: nothing wraps the model"
                yield Change(s, self.edit(facts, s, says), None, (s,))
            if not alone or a.attr == "register_comm_hook":
                self._tell(facts, a, f"`{facts.short(up if alone and up else a)}`: {OF_WRAPPERS[a.attr]}")

    def _to_themselves(self, facts: Facts, found: Distribution) -> Iterator[Change]:
        """What would be `model = model`, or `model if many else model`, and what asks whether it is wrapped."""
        seen: set[ast.AST] = set()
        for branch in facts.walk(ast.If):
            if found.asks_if_wrapped(branch.test) and not branch.orelse and not facts.text.is_elif(branch):
                seen.add(branch)
                says = f"`{facts.short(branch)}` removed: nothing wraps the model"
                yield Change(branch, self.edit(facts, branch, says), None, (branch,))
        for branch in facts.walk(ast.If):
            if branch not in seen and _returns_alike(facts, branch):
                says = f"`if {facts.short(branch.test)}:` removed: nothing wraps the model"
                yield Change(branch, self.edit(facts, branch, says), None, (branch,))
        for s in facts.walk(ast.Assign):
            if len(s.targets) == 1 and assigns_itself(s.targets[0], s.value, partial(_unwrapped, facts)):
                wrapper = next((n for n in facts.unwrapped if s in facts.scopes.ancestors(n)), s)
                says = f"`{facts.short(wrapper)}` removed: {_whose(facts, found, wrapper)}"
                yield Change(s, self.edit(facts, wrapper, says), None, (s,))
        for call in found.wrapped:
            holder = facts.scopes.statement_of(call)
            if isinstance(holder, ast.Assign) and _given_before(facts, holder):
                says = f"`{facts.short(holder)}` removed: {_whose(facts, found, call)}"
                yield Change(holder, self.edit(facts, holder, says), None, (holder,))
        for choice in facts.walk(ast.IfExp):
            left = _unwrapped(facts, choice)
            if left is not choice and choice not in facts.unwrapped:
                field = "body" if choice.body is left else "orelse"
                says = f"`{facts.short(choice)}` removed: the runtime wraps the model"
                gone = (choice.test, choice.orelse if field == "body" else choice.body)
                yield Change(choice, self.edit(facts, choice, says), branch_of(facts, choice, field), gone)

    def _cards(self, facts: Facts, found: Distribution) -> Iterator[Change]:
        """`torch.cuda.set_device(args.gpu)` of a script that is one process."""
        for call, full in found.full.items():
            holder = facts.scopes.parents.get(call)
            if full in CHOOSE_CARD and isinstance(holder, ast.Expr):
                says = f"`{facts.short(call)}` removed: the runtime chooses the device"
                yield Change(holder, self.edit(facts, call, says), None, (holder,))

    def _card_blocks(self, facts: Facts) -> Iterator[Change]:
        """`with torch.cuda.device(args.gpu):`, which raises without CUDA; a library's or a tensor's stays."""
        if facts.is_library or "cuda" not in facts.text.text:
            return
        for s in facts.walk(ast.With):
            item, call = s.items[0], s.items[0].context_expr
            if len(s.items) > 1 or item.optional_vars is not None or not isinstance(call, ast.Call):
                continue
            chooses = facts.names.resolve(call.func) == "torch.cuda.device"
            where = argument_at(call, "device", 0) if chooses else None
            if where is not None and facts.devices.says_where(where):
                says = f"`with {facts.short(call)}:` removed: the runtime chooses the device"
                yield Change(s, self.edit(facts, call, says), body_only, (item,))

    # -- statements ------------------------------------------------------------------------------------------

    def _statements(self, facts: Facts, found: Distribution) -> Iterator[Change]:
        gone: set[ast.AST] = set()
        for call in facts.walk(ast.Call):
            full = facts.names.resolve(call.func)
            told = full in ALONE_VALUES and isinstance(facts.scopes.parents.get(call), ast.Expr)
            for s in statements_of(facts, call) or () if full in STATEMENTS or told or found.only_sends(call) else ():
                if s not in gone:
                    gone.add(s)
                    shown = s.value if isinstance(s, ast.Expr) else s
                    yield Change(s, self.edit(facts, shown, f"`{facts.short(shown)}` removed: {WHY}"), None, (s,))
            holder = facts.scopes.parents.get(call)
            if isinstance(holder, ast.Expr) and found.averages_in_place(call):
                says = f"`{facts.short(call)}` removed: nothing was summed over processes"
                yield Change(holder, self.edit(facts, call, says), None, (holder,))
        for kind in (ast.Assign, ast.AugAssign, ast.Expr) if "environ" in facts.text.text else ():
            for s in (s for s in facts.walk(kind) if sets_addresses(facts, s)):
                yield Change(s, self.edit(facts, s, f"`{facts.short(s)}` removed: {WHY}"), None, (s,))
        for s in facts.walk(ast.Assign):
            if found.divides_batch(s):
                says = f"`{facts.short(s)}` removed: a batch is divided by the runtime"
                yield Change(s, self.edit(facts, s, says), None, (s,))
        for a in facts.walk(ast.AugAssign):
            if found.averages(a):
                says = f"`{facts.short(a)}` removed: nothing was summed over processes"
                yield Change(a, self.edit(facts, a, says), None, (a,))
        for s in facts.walk(ast.Assign):  # avg = avg / world
            q, t = s.value, spelled(s.targets[0])
            if len(s.targets) == 1 and isinstance(q, ast.BinOp) and ast.unparse(q.left) == t and found.divides_a_sum(q):
                says = f"`{facts.short(s)}` removed: nothing was summed over processes"
                yield Change(s, self.edit(facts, s, says), None, (s,))
        for quotient in facts.walk(ast.BinOp):
            if found.divides_a_sum(quotient) and not facts.is_fixed(quotient):
                says = f"`{facts.short(quotient)}`: nothing was summed over processes"
                left = source(facts.text.get(quotient.left))
                yield Change(quotient, self.edit(facts, quotient, says), left, (quotient.right,))

    def _gathers(self, facts: Facts, found: Distribution) -> Iterator[Change]:
        """`dist.all_gather(parts, x)` puts x into the only part."""
        for call, full in found.full.items():
            new = found.alone(call) if full in ALONE or full in ALONE_VALUES else None
            if new is not None and not facts.is_fixed(call):
                says = f"`{facts.short(call)}` became `{new}`: {WHY}"
                holder = facts.scopes.parents.get(call)
                given = found.gathered(call) if isinstance(holder, ast.Expr) else None
                if holder is not None and given is not None:
                    every = given_to(call)
                    others = [n for a in every if a not in given for n in parts_but(a, given)]
                    places = [i for g in given for i, a in enumerate(every) if a is g or g in ast.iter_child_nodes(a)]
                    asks = (imported_as(facts, ASKS), facts.indentation) if found.is_for_one(call) else None
                    rewrite = put_together(ALONE[full or ""][-1], places, asks)
                    yield Change(holder, self.edit(facts, call, says), rewrite, (call.func, *others))
                else:
                    yield self._alone(facts, call, new, says)

    def _alone(self, facts: Facts, call: ast.Call, new: str, says: str) -> Change:
        """What a call gives back; nothing is left of `x = hvd.broadcast(x, 0)`."""
        s = facts.scopes.parents.get(call)
        if isinstance(s, ast.Assign) and [ast.unparse(t) for t in s.targets] == [new]:
            return Change(s, self.edit(facts, call, f"`{facts.short(call)}` removed: {WHY}"), None, (s,))
        return Change(call, self.edit(facts, call, says), source(new))

    # -- values ----------------------------------------------------------------------------------------------

    def _values(self, facts: Facts, found: Distribution, removed: set[ast.AST]) -> Iterator[Change]:
        for node, value in found.constants():
            if any(up in removed for up in facts.scopes.ancestors(node)) or facts.is_fixed(node):
                continue
            says = f"`{facts.short(node)}` is {value} in a plain script: {WHY}"
            yield Change(node, self.edit(facts, node, says), source(value), tuple(ast.iter_child_nodes(node)))
        yield from self._asked_by_name(facts, removed)
        shown = {node for node, _ in found.constants()}
        for node in demanded(facts):
            if not any(up in removed for up in facts.scopes.ancestors(node)):
                says = "an error where the cluster's own launcher does not start the script"
                self._tell(facts, node, f"`{facts.short(node)}`: {says}")
        for call, full in found.full.items():
            if full == "torch.distributed.get_backend" and call not in shown:
                self._tell(facts, call, f"`{facts.short(call)}` asks a group that there is only once a Trainer runs")

    def _asked_by_name(self, facts: Facts, removed: set[ast.AST]) -> Iterator[Change]:
        """`os.environ.get(name)` in a function that is asked for "RANK": ptrun sets that, too."""
        for call in handed_on(facts):
            if asks_elsewhere(facts, call) and not any(up in removed for up in facts.scopes.ancestors(call)):
                self._tell(facts, call, f"`{facts.short(call)}`: on several processes it has what the launcher sets")
        for node, method in asked_by_name(facts):
            if any(up in removed for up in facts.scopes.ancestors(node)) or facts.is_fixed(node):
                continue
            if not facts.ours:
                self._tell(facts, node, f"`{facts.short(node)}`: on several processes it has what the launcher sets")
                continue
            new = f"{imported_as(facts, ENVIRON)}(){method}"
            yield Change(node, self.edit(facts, node, f"`{facts.short(node)}` became `{new}`: {WHY}"), source(new))

    def _in_strings(self, facts: Facts, found: Distribution, removed: set[ast.AST]) -> Iterator[Change]:
        """`f"{dist.get_rank()}: {model.module.bias}"`"""
        strings = InStrings(facts, self)
        values: list[tuple[ast.AST, str | None]] = [(a, ast.unparse(a.value)) for a in found.module_attributes()]
        if found.by_hand:
            values += found.constants()
            values += [(c, found.alone(c)) for c, full in found.full.items() if full in ALONE or full in ALONE_VALUES]
        for node, value in values:
            if not facts.is_fixed(node) or any(up in removed for up in facts.scopes.ancestors(node)):
                continue
            if value is not None:
                strings.add(node, value)
        yield from strings.changes(WHY if found.by_hand else "nothing wraps the model")

    def _spawns(self, facts: Facts, found: Distribution) -> Iterator[Change]:
        for call in found.spawns:
            target = argument_at(call, "fn", 0)
            assert target is not None
            new = f"{closed(facts.text.get(target), ATOM)}({', '.join(found.started_with(call))})"
            says = f"`{facts.short(call)}` became `{new}`: {WHY}"
            yield Change(call, self.edit(facts, call, says), source(new))
        for one in found.started:
            new = f"{one.fn.id}({', '.join(found.started_with(one))})"
            says = f"`{facts.short(one.call)}` became `{new}`: {WHY}"
            parts = (one.loop.target, one.loop.iter, *one.loop.body)
            yield Change(one.loop, self.edit(facts, one.loop, says), statement_line(new), parts)
            for s in one.others:
                yield Change(s, self.edit(facts, s, f"`{facts.short(s)}` removed: {WHY}"), None, (s,))


def parts_but(node: ast.expr, kept: tuple[ast.expr, ...]) -> list[ast.AST]:
    """The parts of `parts if rank == 0 else None` that go, where one of them stays."""
    inner = list(ast.iter_child_nodes(node))
    return [n for n in inner if n not in kept] if any(n in kept for n in inner) else [node]


def _is_rank(facts: Facts, node: ast.AST) -> bool:
    """What is another number in each process."""
    known = [facts.worlds.value(node, w) for w in PEERS] if isinstance(node, ast.expr) else []
    ranks = [k.value for k in known if k is not None and k.asked]
    return len(ranks) == len(PEERS) == len(set(map(str, ranks)))


def _meets(facts: Facts, found: Distribution, s: ast.AST) -> bool:
    """Whether a statement says where the processes meet."""
    if isinstance(s, ast.stmt) and sets_addresses(facts, s):
        return True
    call = s.value if isinstance(s, ast.Expr) else None
    return isinstance(call, ast.Call) and found.full.get(call) == "torch.distributed.init_process_group"


def _whose(facts: Facts, found: Distribution, wrapper: ast.AST) -> str:
    if isinstance(wrapper, ast.Call) and found.full.get(wrapper) in CONVERTERS:
        return "the Trainer's sync_batchnorm= does it"
    return f"the runtime wraps the model{names_that_go(facts, found, wrapper)}"


def _unwrapped(facts: Facts, value: ast.expr) -> ast.expr:
    """What is left of an expression once nothing wraps a model; itself where nothing does."""
    if value in facts.unwrapped:
        return _unwrapped(facts, facts.unwrapped[value])
    if isinstance(value, ast.IfExp):
        body, orelse = _unwrapped(facts, value.body), _unwrapped(facts, value.orelse)
        changed = body is not value.body or orelse is not value.orelse
        return orelse if changed and ast.unparse(body) == ast.unparse(orelse) else value
    if isinstance(value, ast.Attribute):  # model.module.log_prob
        inner = _unwrapped(facts, value.value)
        return value if inner is value.value else ast.Attribute(inner, value.attr, value.ctx)
    return value


def _returns_alike(facts: Facts, branch: ast.If) -> bool:
    """`if many: return DDP(model)` above `return model`."""
    block = facts.scopes.block_of(branch)
    rest = block[block.index(branch) + 1 :] if block else []
    here, below = branch.body[0], rest[0] if rest else None
    if not (isinstance(here, ast.Return) and isinstance(below, ast.Return)) or branch.orelse or len(branch.body) > 1:
        return False
    if here.value is None or below.value is None or not only_asks(facts.names, branch.test):
        return False
    left = _unwrapped(facts, here.value)
    return left is not here.value and ast.unparse(left) == ast.unparse(_unwrapped(facts, below.value))


def _given_before(facts: Facts, s: ast.Assign) -> bool:
    """`self.model = model.to(device)` above `self.model = DDP(model)`: it has the model already."""
    left, target = _unwrapped(facts, s.value), ast.unparse(s.targets[0])
    block = facts.scopes.block_of(s)
    if left is s.value or not isinstance(left, ast.Name) or len(s.targets) > 1:
        return False
    for above in reversed(block[: block.index(s)]):
        if isinstance(above, ast.Assign) and [ast.unparse(t) for t in above.targets] == [target]:
            value: ast.expr = above.value
            while isinstance(value, ast.Call) and (moved := facts.devices.moved(value)) is not None:
                value = moved
            return ast.unparse(value) == left.id
        stored = {n.id for n in ast.walk(above) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if left.id in stored or not isinstance(above, (ast.Assign, ast.Expr)):
            return False
    return False


__all__ = ["GATHERS", "WRAPPERS", "PlainProcess"]
