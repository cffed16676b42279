"""What the tests of branches asked for goes with them, where nothing else reads it: names, functions, options."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.effects import only_asks
from ..facts.nodes import walk
from ..facts.options import option_name
from ..facts.process_names import FLAG_NAME, RANK_NAME, WORLD_NAME
from ..facts.script import Facts
from ..facts.world import PLAIN
from ..facts.worlds import Worlds
from ..report import Note
from ._without_target import without_target
from .base import Change, Codemod
from .unread_options import seen_whole

WHY = "the runtime starts and connects the processes"
# options that tell a launcher's processes where to meet
MEETING = set("dist_url dist_backend backend master_addr master_port init_method nodes nr node_rank".split())


class UnreadBranches(Codemod):
    """`gone` are the nodes that go, `left` is what is told of those that stay."""

    worlds: Worlds
    gone: set[ast.AST]
    left: list[Note]

    def unread(self, facts: Facts) -> Iterator[Change]:
        grew = True
        while grew:
            grew = False
            for change in [*self._names(facts), *self._functions(facts), *self._attributes(facts)]:
                if change.node in self.gone:
                    continue
                self.gone.update({*walk(change.node)}.difference(change.reads))
                grew = True
                yield change
        yield from self._options(facts)

    def _lost(self, reads: list[ast.Name]) -> bool:
        return bool(reads) and all(r in self.gone for r in reads)

    def _names(self, facts: Facts) -> Iterator[Change]:
        for scope in facts.scopes.by_node.values():
            if scope.is_class or (scope is facts.scopes.module and facts.is_library):
                continue
            for name, stores in scope.stores.items():
                made = [facts.scopes.parents.get(s) for s in stores]
                reads = list(facts.scopes.reads(name, scope))
                if name in scope.params or not (self._lost(reads) or self._says_nothing(facts, name, reads, made)):
                    continue
                for s in made:
                    if not isinstance(s, ast.Assign) or len(s.targets) != 1 or not isinstance(s.targets[0], ast.Name):
                        break
                    if s not in self.gone and not (only_asks(facts.names, s.value) or self._known(s.value)):
                        break
                else:
                    for s in made:
                        if isinstance(s, ast.Assign) and s not in self.gone:
                            yield without_target(self, facts, s, self.gone)

    def _says_nothing(self, facts: Facts, name: str, reads: list[ast.Name], made: list[ast.AST | None]) -> bool:
        """`local_rank = int(os.environ["LOCAL_RANK"])`, which nothing has read before either."""
        named = RANK_NAME.match(name) or WORLD_NAME.match(name)
        if reads or not named or facts.named_by_text or name in facts.read_elsewhere or self._said(facts, name):
            return False
        return all(isinstance(s, ast.Assign) and self._known(s.value) for s in made)

    def _known(self, value: ast.expr) -> bool:
        known = self.worlds.value(value, PLAIN)
        return known is not None and known.asked

    def _functions(self, facts: Facts) -> Iterator[Change]:
        if facts.is_library:
            return
        for f in facts.walk(ast.FunctionDef):
            scope = facts.scopes.scope_of(f)
            if f in self.gone or scope.is_class or f.decorator_list:
                continue
            if self._lost([r for r in facts.scopes.reads(f.name, scope) if f not in facts.scopes.ancestors(r)]):
                yield Change(f, self.edit(facts, f, f"{f.name}() removed: nothing calls it any more"), None, (f,))

    def _attributes(self, facts: Facts) -> Iterator[Change]:
        """`args.distributed = False`, where nothing asks any more."""
        for s in facts.walk(ast.Assign):
            t = s.targets[0]
            if s in self.gone or len(s.targets) > 1 or not isinstance(t, ast.Attribute) or facts.is_library:
                continue
            known = self.worlds.value(t, PLAIN)
            named = FLAG_NAME.match(t.attr) or RANK_NAME.match(t.attr) or WORLD_NAME.match(t.attr)
            reads = [a for a in facts.attributes[t.attr] if isinstance(a.ctx, ast.Load)]
            unread = reads and all(r in self.gone for r in reads) and not self._said(facts, t.attr)
            if named and unread and (known is None or known.asked) and only_asks(facts.names, s.value):
                yield without_target(self, facts, s, self.gone)

    def _options(self, facts: Facts) -> Iterator[Change]:
        if facts.is_library:
            return
        whole = seen_whole(facts)
        for holder in facts.walk(ast.Expr):
            name = option_name(holder.value)
            if name is None or holder in self.gone or name in facts.read_elsewhere:
                continue
            reads = facts.attributes.get(name, [])
            tells = (
                name in MEETING
                or _is_of_launcher(holder.value)
                or any(kind.match(name) for kind in (FLAG_NAME, RANK_NAME, WORLD_NAME))
            )
            if not all(r in self.gone for r in reads) or not (reads or tells) or self._said(facts, name, holder):
                continue
            if whole is not None:
                line, column, _, _ = facts.text.key(holder)
                says = f"`{whole.id}.{name}` stays: all options are looked at in line {whole.lineno}"
                self.left.append(Note(line, column + 1, self.code, says))
            else:
                says = f"`{facts.short(holder)}` removed: nothing reads args.{name} any more, {WHY}"
                yield Change(holder, self.edit(facts, holder, f"{says}; {spell(holder.value)}"), None, (holder,))

    def _said(self, facts: Facts, name: str, but: ast.AST | None = None) -> bool:
        """Whether a text of the script names it: `getattr(args, "rank")`."""
        inside = set(walk(but)) if but is not None else set()
        return any(c.value == name for c in facts.walk(ast.Constant) if c not in inside and c not in self.gone)


def spell(call: ast.expr) -> str:
    """What becomes of the option on a command line."""
    given = [str(getattr(a, "value", "")) for a in getattr(call, "args", ())]
    long = next((g for g in given if g.startswith("--")), given[0] if given else "it")
    return f"a command line goes without {long} now"


def _is_of_launcher(call: ast.expr) -> bool:
    """`--local-rank`, which torch's launcher passes, whatever it is called inside."""
    given = (getattr(a, "value", None) for a in getattr(call, "args", ()))
    return any(g in ("--local_rank", "--local-rank") for g in given)
