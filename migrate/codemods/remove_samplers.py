"""T4: leave dividing the data to the runtime.

A DistributedSampler, the condition it stands under and its set_epoch calls go; what it said about shuffling comes back
as `shuffle=`. Every other sampler stays: it says which samples are drawn, not who draws them. A DistributedSampler used
for more than a DataLoader stays as that of one process, which draws every sample, and is told of.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from ..facts.arguments import argument_at
from ..facts.distribution import SAMPLER
from ..facts.dividing import dividing
from ..facts.effects import asks_alone
from ..facts.nodes import walk
from ..facts.script import Facts
from ..report import Note
from .argument_rewrites import change_call, change_dict
from .ask_for_cuda import stands_alone
from .base import Change, Codemod
from .branch_rewrites import body_only, else_only, first_gone
from .restored_shuffle import (
    asks_of_data,
    asks_of_processes,
    by_branch,
    by_other_than_processes,
    by_training,
    is_always_there,
    read_again,
    restored,
    said_by,
)
from .rewrites import source, under
from .sampler_arguments import chosen_by_hand, draws_all
from .sampler_classes import class_changes
from .sampler_data import brought, told_not_to, why_not, without_false
from .sampler_entries import WHY, entry_changes, told_off, without
from .sampler_returns import DropElement
from .sampler_subclasses import PARAMETERS, of_one
from .sampler_uses import LOADER, Use, is_none, is_text, use_of, uses_of_attribute, uses_of_name


class RemoveSamplers(Codemod):
    code = "PTM401"
    name = "remove-samplers"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        self.any_gone = facts.samplers_gone
        self._kept: set[ast.Call] = set()
        self._settled: set[ast.AST] = set()  # branches that become those of one process
        if told_not_to(facts):
            return
        made = [c for c in facts.called.get(SAMPLER, ()) if not draws_all(c)]
        chosen = {c for c in made if chosen_by_hand(facts, c)}
        handled = set(chosen)
        self._kept.update(chosen)
        for c in chosen:
            self._tell(facts, c, f"`{facts.short(c)}` draws a share that is chosen here, and {WHY}: it stays")
        for branch in facts.walk(ast.If):
            yield from self._other_branch(facts, branch, handled)
        entries: dict[ast.Dict, list[str]] = {}
        for call in made:
            if call in handled:
                continue
            use = use_of(facts, call)
            handled.update(use.made)
            why = why_not(facts, use) if not use.other else ""
            if chosen.intersection(use.made):
                why = "it stands beside one that draws a share that is chosen here"
            changes = self._with_reads(facts, use) if not (use.other or why) else []
            self.any_gone = self.any_gone or bool(changes)
            if changes:
                for display, key in use.entries:
                    entries.setdefault(display, []).append(key)
            else:
                self._kept.update(use.made)
                changes = [self._of_one(facts, c, use, why) for c in use.made if c not in chosen]
            yield from changes
        yield from self._of_dicts(facts, entries)
        if facts.by_hand:
            for change in self._without_one(facts, handled):
                self.any_gone = True
                yield change
        if self.any_gone:
            yield from self._epochs_of_loaders(facts)
        settled = list(of_one(self, facts))
        yield from (change for _, change in settled if change is not None)
        self._tell_of_own(facts, {name for name, _ in settled})
        handed: list[tuple[ast.AST, str]] = []
        yield from class_changes(self, facts, handed)
        for node, says in handed:
            self._tell(facts, node, f"{says}, {WHY}")

    def _with_reads(self, facts: Facts, use: Use) -> list[Change]:
        changes = list(self._changes(facts, use))
        reads = read_again(facts, use, changes) if use.restored else ()
        return [replace(c, reads=reads) for c in changes]

    def _of_dicts(self, facts: Facts, entries: dict[ast.Dict, list[str]]) -> Iterator[Change]:
        """What is left of dictionaries of samplers."""
        for made, keys in entries.items():
            s = facts.scopes.parents[made]
            node, rewrite = (s, None) if len(keys) == len(made.keys) else (made, change_dict(set(keys), {}))
            gone = [v for k, v in zip(made.keys, made.values, strict=True) if getattr(k, "value", None) in keys]
            yield Change(node, self.edit(facts, s, f"`{facts.short(s)}`: its samplers go, {WHY}"), rewrite, tuple(gone))

    def _tell(self, facts: Facts, node: ast.AST, says: str) -> None:
        line, column, _, _ = facts.text.key(node)
        self.left.append(Note(line, column + 1, self.code, says))

    def _tell_of_own(self, facts: Facts, settled: Collection[str]) -> None:
        """A sampler class of the script's own, or of a package, that takes every n-th sample: its author knows why."""
        for call, name in dividing(facts):
            says = f"`{name}` divides the samples by rank itself, and {WHY}: they would be divided twice"
            if name not in settled:
                self._tell(facts, call, says)

    def _without_one(self, facts: Facts, handled: set[ast.Call]) -> Iterator[Change]:
        """`sampler = None`, where the branch that made one was that of several processes."""
        for s in facts.walk(ast.Assign):
            target = s.targets[0]
            if not (is_none(s.value) and len(s.targets) == 1):
                continue
            use = Use([], [s], [s.value])
            if isinstance(target, ast.Name):
                uses_of_name(facts, target, use)
            elif isinstance(target, ast.Attribute):
                uses_of_attribute(facts, target, use)
            if use.handed and not use.other and not use.made and all(is_none(a) for a in use.alternatives):
                yield from self._with_reads(facts, use)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _of_one(self, facts: Facts, call: ast.Call, use: Use, why: str) -> Change:
        """A sampler that stays draws every sample: nobody divides the data twice, and it needs no process group."""
        where = f" (`{facts.short(use.other[0])}` on line {use.other[0].lineno})" if use.other else ""
        kept = f"DistributedSampler kept: it is used for more than a DataLoader{where}"
        if not use.other and any(not is_none(a) for a in use.alternatives):
            kept = "DistributedSampler kept: another sampler takes its place in another branch"
        if why:
            kept = f"DistributedSampler kept: {why}"
        elif not use.other and (len({said_by(facts, c) for c in use.made}) > 1 or by_other_than_processes(facts, use)):
            kept = "DistributedSampler kept: whether it shuffles depends on the branch"
        self._tell(facts, call, f"{kept}; it draws every sample, {WHY}")
        dropped = tuple(a for n, i in (("num_replicas", 1), ("rank", 2)) if (a := argument_at(call, n, i)) is not None)
        rewrite = change_call(PARAMETERS, set(), {"num_replicas": "1", "rank": "0"})
        return Change(
            call, self.edit(facts, call, f"`{facts.short(call)}` is that of one process: {WHY}"), rewrite, dropped
        )

    def _other_branch(self, facts: Facts, branch: ast.If, handled: set[ast.Call]) -> Iterator[Change]:
        """`if distributed: s = DistributedSampler(d)` `else: s = RandomSampler(d)`, either way round: those of one."""
        parent = facts.scopes.parents.get(branch)
        if (isinstance(parent, ast.If) and parent.orelse == [branch]) or not asks_alone(facts, branch.test):
            return
        first = self._one_process_has(facts, branch.body, branch.orelse)
        body = branch.body if first else branch.orelse
        made = [s.value for s in body if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)]
        if not first and not (asks_of_processes(branch.test) and self._one_process_has(facts, body, branch.body)):
            return
        if asks_of_data(branch.test) or not handled.isdisjoint(made):
            return  # the other branch is that of another phase
        handled.update(made)
        self._settled.add(branch)
        self.any_gone = True
        says = f"`if {facts.short(branch.test)}:` and its DistributedSampler removed: {WHY}"
        rewrite = first_gone if first else body_only
        yield Change(branch, self.edit(facts, branch, says), rewrite, (branch.test, *body))
        for t in [t for s in body if isinstance(s, ast.Assign) for t in s.targets]:
            for e in self._epochs_of(facts, t):
                up = facts.scopes.parents.get(e)
                alone = isinstance(up, ast.If) and up.body == [e] and not up.orelse and asks_alone(facts, up.test)
                node: ast.AST = up if alone and up is not None else e
                yield Change(node, self.edit(facts, node, f"`{facts.short(e)}` removed: {WHY}"), None, (node,))

    def _one_process_has(self, facts: Facts, body: list[ast.stmt], others: list[ast.stmt]) -> bool:
        """Whether statements only make DistributedSamplers, and the others give each of them another value."""
        assigns = [s for s in body if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)]
        if len(assigns) < len(body) or any(facts.names.resolve(s.value.func) != SAMPLER for s in assigns):  # type: ignore[attr-defined]
            return False
        apart = [n for s in others for n in walk(s, ast.Assign)]
        if any(isinstance(s.value, ast.Call) and facts.names.resolve(s.value.func) == SAMPLER for s in apart):
            return False
        bound = {ast.unparse(t) for s in assigns for t in s.targets}
        return bool(bound) and bound <= {ast.unparse(t) for s in apart for t in s.targets if not is_none(s.value)}

    def _epochs_of(self, facts: Facts, target: ast.expr) -> Iterator[ast.Expr]:
        """The statements `sampler.set_epoch(...)` of what a target binds."""
        reads: list[ast.expr] = []
        if isinstance(target, ast.Name):
            scope = facts.scopes.scope_of(target).lookup(target.id)
            reads += list(facts.scopes.reads(target.id, scope)) if scope is not None else []
        elif isinstance(target, ast.Attribute):
            own = facts.attributes[target.attr]
            reads += [a for a in own if ast.unparse(a) == ast.unparse(target)]
        for r in reads:
            f = facts.scopes.parents.get(r)
            call = facts.scopes.parents.get(f) if isinstance(f, ast.Attribute) and f.attr == "set_epoch" else None
            holder = facts.scopes.parents.get(call) if isinstance(call, ast.Call) else None
            if isinstance(holder, ast.Expr):
                yield holder

    # -- what becomes of it ----------------------------------------------------------------------------------

    def _changes(self, facts: Facts, use: Use) -> Iterator[Change]:
        others = [a for a in use.alternatives if not is_none(a)]
        if others:
            if not by_other_than_processes(facts, use):
                yield from self._alternative(facts, use, others)
            return
        gone_tests: set[ast.AST] = set()
        said = {said_by(facts, call) for call in use.made}
        shuffle = next(iter(said)) if len(said) == 1 and not use.alternatives else by_training(facts, use)
        if len(said) > 1:
            shuffle = by_branch(facts, use)
            if shuffle is None:
                return
        elif self._is_of_phase(facts, use, said, shuffle):
            return
        for read in use.handed:
            yield from self._handed(facts, read, shuffle, use, gone_tests)
        guards = self._guards(facts, use)
        if any(t not in gone_tests and not any(t in set(walk(g.test)) for g in guards) for t in use.tests):
            for t in use.tests:
                if t not in gone_tests and not any(t in set(walk(g.test)) for g in guards):
                    yield self._told_test(facts, t, use)
        for g in guards:
            yield Change(
                g, self.edit(facts, g, f"`if {facts.short(g.test)}:` removed with set_epoch: {WHY}"), None, (g,)
            )
        for e in use.epochs:
            if not any(e in g.body for g in guards):
                yield Change(e, self.edit(facts, e, f"`{facts.short(e)}` removed: {WHY}"), None, (e,))
        for read in use.given:
            yield Change(
                read, self.edit(facts, read, f"`{facts.short(read)}` is None now: {WHY}"), source("None"), (read,)
            )
        for whole, place in use.returned:
            says = f"`{facts.short(whole.elts[place])}` removed: {WHY}"
            edit, element = self.edit(facts, whole.elts[place], says), whole.elts[place]
            yield Change(facts.scopes.parents[whole], edit, DropElement(place), (element,))
        use.restored += [text for text in (shuffle, *said) if text]
        yield from without(self, facts, [*use.statements, *told_off(facts, use)], shuffle or next(iter(said), None))

    def _handed(
        self, facts: Facts, read: ast.expr, shuffle: str | None, use: Use, gone_tests: set[ast.AST]
    ) -> Iterator[Change]:
        up = facts.scopes.parents[read]
        holder = facts.scopes.parents[up] if isinstance(up, ast.keyword) else up
        if isinstance(holder, ast.Assign):
            yield from entry_changes(self, facts, holder, shuffle, use, gone_tests)
            return
        given = None
        if isinstance(holder, ast.Call):
            given = argument_at(holder, "shuffle", 2)
        elif isinstance(holder, ast.Dict):
            given = next((v for k, v in zip(holder.keys, holder.values, strict=True) if is_text(k, "shuffle")), None)
        new, taken = restored(facts, use, [holder], given, shuffle, gone_tests)
        use.restored += [new] if new else []
        gone: tuple[ast.AST, ...] = (read, given) if taken and given is not None else (read,)
        says = f"sampler removed{f', shuffle={new} restored' if new and (given is None or gone[1:]) else ''}: {WHY}"
        if new == "True":
            says += "; the order comes from torch's generator, no longer from the sampler's seed and epoch"
        twice = brought(facts, holder) if new and given is None else None
        if twice is not None:
            self._tell(facts, twice, f"`**{facts.short(twice)}` must not hold shuffle, which is given beside it now")
        keep = given is not None and len(gone) == 1
        if isinstance(holder, ast.Dict):
            rewrite = change_dict(
                {"sampler"} | ({"shuffle"} if given is not None and not keep else set()),
                {} if keep or not new else {"shuffle": new},
            )
        else:
            assert isinstance(holder, ast.Call)
            values = {} if keep or new is None else {"shuffle": new}
            drops = {"sampler"} | ({"shuffle"} if given is not None and not keep and new is None else set())
            rewrite = change_call(_LOADER_PARAMETERS, drops, values)
        yield Change(holder, self.edit(facts, read, says), rewrite, gone)
        if new and new != "False":
            yield from without_false(self, facts, holder)

    def _is_of_phase(self, facts: Facts, use: Use, said: set[str | None], shuffle: str | None) -> bool:
        """Whether a phase decides on a sampler that shuffles, and `shuffle=` cannot say that again."""
        if use.tests or said == {None} or not by_other_than_processes(facts, use):
            return False
        return shuffle is None or any(self._says_shuffle(facts, r) for r in use.handed)

    def _says_shuffle(self, facts: Facts, read: ast.expr) -> bool:
        """`DataLoader(d, shuffle=shuffle, sampler=sampler)`, where another name says whether it shuffles."""
        up = facts.scopes.parents[read]
        holder = facts.scopes.parents[up] if isinstance(up, ast.keyword) else up
        given = argument_at(holder, "shuffle", 2) if isinstance(holder, ast.Call) else None
        return given is not None and not isinstance(given, ast.Constant)

    def _alternative(self, facts: Facts, use: Use, others: list[ast.expr]) -> Iterator[Change]:
        """Where there is another sampler for one process, it is the sampler; what asks for it asks for that one."""
        if len(others) > 1 or use.returned:
            return
        chosen = [s.value for s in use.statements] + use.handed  # type: ignore[attr-defined]
        for choice in (c for c in chosen if isinstance(c, ast.IfExp)):
            says = f"`{facts.short(choice)}`: the sampler of one process stays, {WHY}"
            gone = (choice.test, *use.made)
            yield Change(choice, self.edit(facts, choice, says), source(facts.text.get(others[0])), gone)
        for s in use.statements:
            assert isinstance(s, (ast.Assign, ast.AnnAssign))
            branch = facts.scopes.parents.get(s)
            if branch in self._settled:
                continue
            if s.value in use.made and isinstance(branch, ast.If) and branch.body == [s] and branch.orelse:
                says = f"`if {facts.short(branch.test)}:` and its DistributedSampler removed: {WHY}"
                if len(branch.orelse) == 1 and isinstance(branch.orelse[0], ast.If):
                    return
                yield Change(branch, self.edit(facts, branch, says), else_only, (branch.test, s))
        guards = self._guards(facts, use)
        for s in (*guards, *(e for e in use.epochs if not any(e in g.body for g in guards))):
            yield Change(s, self.edit(facts, s, f"`{facts.short(s)}` removed: {WHY}"), None, (s,))

    def _told_test(self, facts: Facts, test: ast.expr, use: Use) -> Change:
        """`sampler is None` elsewhere: there is none now, or there always was one."""
        asks_for_none = isinstance(test, ast.UnaryOp) or (
            isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is)
        )
        of_kind = isinstance(test, ast.Call)
        holds = asks_for_none is not (is_always_there(facts, use) and not of_kind)
        says = f"`{facts.short(test)}` is {holds} now: {WHY}"
        branch = facts.scopes.parents.get(test)
        if not isinstance(branch, ast.If) or facts.text.is_elif(branch):
            return Change(test, self.edit(facts, test, says), source(str(holds)), (test,))
        if not holds and not branch.orelse:
            return Change(branch, self.edit(facts, test, says), None, (branch,))
        left = branch.orelse if holds else branch.body
        return Change(branch, self.edit(facts, test, says), body_only if holds else first_gone, (test, *left))

    def _guards(self, facts: Facts, use: Use) -> list[ast.If]:
        """The branches in which there is nothing but set_epoch."""
        found = []
        for e in use.epochs:
            up = facts.scopes.parents.get(e)
            if isinstance(up, ast.If) and not up.orelse and up not in found and all(s in use.epochs for s in up.body):
                parent = facts.scopes.parents.get(up)
                if not (isinstance(parent, ast.If) and parent.orelse == [up]) and asks_alone(facts, up.test):
                    found.append(up)
        return found

    @property
    def any_kept(self) -> bool:
        return bool(self._kept)

    def _epochs_of_loaders(self, facts: Facts) -> Iterator[Change]:
        """`loader.sampler.set_epoch(epoch)`: the loader's own sampler has no epochs."""
        for call in facts.walk(ast.Call):
            f = call.func
            if not (isinstance(f, ast.Attribute) and f.attr == "set_epoch" and isinstance(f.value, ast.Attribute)):
                continue
            holder = facts.scopes.parents.get(call)
            if f.value.attr != "sampler" or not isinstance(holder, ast.Expr):
                continue
            if isinstance(f.value.value, ast.Name) and f.value.value.id == "self":
                continue
            up = facts.scopes.parents.get(holder)
            alone = isinstance(up, ast.If) and up.body == [holder] and not up.orelse and asks_alone(facts, up.test)
            node = up if alone else holder
            assert node is not None
            given = self._given(facts, f.value.value)
            if given is not None and self._have_epochs(facts, given):
                continue
            if self._kept or facts.samplers_kept:
                if isinstance(up, ast.If) and re.search(r"hasattr|isinstance", ast.unparse(up.test)):
                    continue  # it asks which sampler it has
                if given is None and not stands_alone(facts, holder):
                    self._tell(facts, holder, f"`{facts.short(holder)}`: some DistributedSamplers go, some stay")
                    continue
                if given is None:
                    asks = f'hasattr({facts.text.get(f.value)}, "set_epoch")'
                    says = f"`{facts.short(holder)}` under `if {asks}`: some DistributedSamplers go, some stay"
                    yield Change(holder, self.edit(facts, holder, says), under(asks, facts.indentation))
                    continue
            yield Change(node, self.edit(facts, node, f"`{facts.short(holder)}` removed: {WHY}"), None, (node,))

    def _given(self, facts: Facts, loader: ast.expr) -> list[ast.Call] | None:
        """The samplers that a loader which is made here is given; None for one that is made elsewhere."""
        made = [c for c in _values(facts, loader) if isinstance(c, ast.Call)]
        loaders = [c for c in made if facts.names.resolve(c.func) == LOADER]
        given = [argument_at(c, "sampler", 3) for c in loaders]
        samplers = [v for g in given if g is not None for v in _values(facts, g) if isinstance(v, ast.Call)]
        return samplers if loaders else None

    def _have_epochs(self, facts: Facts, samplers: list[ast.Call]) -> bool:
        """Whether one of these stays and may have epochs: it is kept, or of another class."""
        names = {facts.names.resolve(c.func) for c in samplers if c not in self._kept}
        own = any(n is None or not n.startswith("torch.utils.data.") for n in names) and SAMPLER not in names
        return own or any(c in self._kept for c in samplers)


def _values(facts: Facts, node: ast.expr) -> list[ast.expr]:
    """What a name is given by assignments; a value itself."""
    if not isinstance(node, ast.Name):
        return [node]
    scope = facts.scopes.scope_of(node).lookup(node.id)
    return (facts.devices.assigned(node.id, scope) or []) if scope is not None else []


_LOADER_PARAMETERS = (
    "dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory",
    "drop_last", "timeout", "worker_init_fn", "multiprocessing_context", "generator",
)  # fmt: skip
