"""T9: `data_parallel(net, x)` is `net(x)`; `model.no_sync()` holds nothing back and `model.join()` waits for nobody.

The gradients of a step are the same whether the ranks' messages of a micro-batch are sent at once or with the last one,
and the runtime gives every process as many batches.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument_at
from ..facts.distribution import distribution_of
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.wrapped import WRAPPERS
from ..report import Note
from .base import Change, Codemod, Insertion
from .branch_rewrites import body_only, else_only
from .rewrites import source

FUNCTION = "torch.nn.parallel.data_parallel"
NOTHING = "contextlib.nullcontext"
JOIN = ("torch.distributed.algorithms.Join", "torch.distributed.algorithms.join.Join")
ASKS = ("isinstance", "issubclass", "hasattr", "type")
BY_HAND = ("parallel_apply", "replicate")
HOMES = ("torch.nn.parallel", "torch.nn.parallel.replicate", "torch.nn.parallel.parallel_apply")
PARTED = {(home, name) for home in HOMES for name in BY_HAND}
HELD = ("no_sync", "join(", "Join")


class PlainParallel(Codemod):
    code = "PTM420"
    name = "plain-parallel"

    def plan(self, facts: Facts) -> Iterator[Change]:
        if any(name in facts.text.text for name in HELD):
            yield from self._held_back(facts)
        if "data_parallel" in facts.text.text:
            yield from self._functions(facts)

    def notes(self, facts: Facts) -> Iterator[Note]:
        """Wrappers that are taken as values: `Wrap = DataParallel if many else Same`, `partial(DataParallel, ...)`;
        and what hands the parts of a batch to cards by itself.
        """
        if any(name in facts.text.text for name in BY_HAND):
            yield from self._by_hand(facts)
        if "DataParallel" not in facts.text.text:
            return
        named: list[ast.Name | ast.Attribute] = [*facts.walk(ast.Name), *facts.walk(ast.Attribute)]
        for n in named:
            if isinstance(n.ctx, ast.Load) and facts.names.resolve(n) in WRAPPERS and _is_value(facts, n):
                line, column, _, _ = facts.text.key(n)
                says = "what it comes to wrap does not show, and stays wrapped: the runtime wraps models itself"
                yield Note(line, column + 1, self.code, f"`{facts.short(n)}` is a value here: {says}")

    def _by_hand(self, facts: Facts) -> Iterator[Note]:
        """`outputs = parallel_apply(replicate(net, ids), scatter(x, ids))`"""
        for call in facts.walk(ast.Call):
            if (facts.names.resolve(call.func) or "").rpartition(".")[::2] in PARTED:
                line, column, _, _ = facts.text.key(call)
                says = "divides the batch among cards by hand, and stays: each process would use all of those cards"
                yield Note(line, column + 1, self.code, f"`{facts.short(call)}` {says}")

    # -- no_sync ----------------------------------------------------------------------------------------------

    def _held_back(self, facts: Facts) -> Iterator[Change]:
        wrapped = distribution_of(facts).wrapped_names
        held = [a for a in facts.walk(ast.Attribute) if self._is_held(facts, a) and _last(a.value) in wrapped]
        joined = [c.func for c in facts.walk(ast.Call) if facts.names.resolve(c.func) in JOIN]
        gone: set[ast.AST] = set()
        for s in facts.walk(ast.With):
            item = s.items[0].context_expr
            nothing = [*held, *joined]
            if (
                len(s.items) == 1
                and any(n in nothing for n in walk(item))
                and self._does_nothing(facts, item, nothing)
                and s.items[0].optional_vars is None
            ):
                gone.update(walk(item))
                says = f"`with {facts.short(item)}:` removed: the runtime brings the gradients together"
                twins = _twins(facts, s)
                if twins is not None:
                    rewrite, parts = (else_only, (twins.test, s)) if s in twins.body else (body_only, (twins.test, s))
                    yield Change(twins, self.edit(facts, item, says), rewrite, parts)
                else:
                    yield Change(s, self.edit(facts, item, says), body_only, (s.items[0],))
        for made, opened in self._contexts(facts, [*held, *joined]):
            gone.update(n for given in made for n in walk(given))
            for given in made:
                says = f"`{facts.short(given)}` removed: the runtime brings the gradients together"
                yield Change(given, self.edit(facts, given, says), None, (given,))
            for block in opened:
                item = block.items[0].context_expr
                says = f"`with {facts.short(item)}:` removed: the runtime brings the gradients together"
                yield Change(block, self.edit(facts, item, says), body_only, (block.items[0],))
        for a in held:
            if a not in gone and not facts.is_fixed(a):
                yield self._becomes_nothing(facts, a, (a.value,), "")
        for f in joined:
            call = facts.scopes.parents[f]
            if f not in gone and not facts.is_fixed(f):
                yield self._becomes_nothing(facts, call, tuple(ast.iter_child_nodes(call)), "()")

    def _becomes_nothing(self, facts: Facts, node: ast.AST, parts: tuple[ast.AST, ...], called: str) -> Change:
        new, imports = self._nothing(facts)
        says = f"`{facts.short(node)}` became `{new}{called}`: the runtime brings the gradients together"
        return Change(node, self.edit(facts, node, says), source(new + called), parts, Insertion(1, "", imports))

    def _is_held(self, facts: Facts, a: ast.Attribute) -> bool:
        """`model.no_sync`, and the `model.join()` of a `with`: threads and texts have a join(), too."""
        call = facts.scopes.parents.get(a)
        opened = isinstance(call, ast.Call) and isinstance(facts.scopes.parents.get(call), ast.withitem)
        return a.attr == "no_sync" or (a.attr == "join" and opened and not call.args)  # type: ignore[union-attr]

    def _does_nothing(self, facts: Facts, item: ast.expr, held: list[ast.expr], called: bool = False) -> bool:
        """`model.no_sync()`, `nullcontext()`, or a choice between them that only looks at values; `Join([model])`.

        `called`: it is called later, `model.no_sync` or `nullcontext`.
        """
        if isinstance(item, ast.IfExp):
            looks = not any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for n in walk(item.test))
            return looks and all(self._does_nothing(facts, part, held, called) for part in (item.body, item.orelse))
        if called:
            return item in held or facts.names.resolve(item) == NOTHING
        if not isinstance(item, ast.Call):
            return False
        if item.func in held:
            return True
        return not item.args and not item.keywords and facts.names.resolve(item.func) == NOTHING

    def _contexts(self, facts: Facts, held: list[ast.expr]) -> Iterator[tuple[list[ast.Assign], list[ast.With]]]:
        """`ctx = model.no_sync() if more else nullcontext()` and the blocks `with ctx:`, if it is for nothing else."""
        named: list[tuple[Scope, str]] = []
        for a in held:
            s = facts.scopes.statement_of(a)
            target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
            scope = facts.scopes.scope_of(target).lookup(target.id) if isinstance(target, ast.Name) else None
            if isinstance(target, ast.Name) and scope is not None and (scope, target.id) not in named:
                named.append((scope, target.id))
        for scope, name in named:
            made = [facts.scopes.parents.get(s) for s in scope.stores.get(name, ())]
            plain = [s for s in made if isinstance(s, ast.Assign) and len(s.targets) == 1]
            opened = [_opened(facts, r) for r in facts.scopes.reads(name, scope)]
            blocks = [b for b, _ in opened if b is not None]
            called = {c for _, c in opened}
            nothing = len(called) == 1 and all(self._does_nothing(facts, s.value, held, True in called) for s in plain)
            if nothing and len(plain) == len(made) and len(blocks) == len(opened) and name not in scope.params:
                yield plain, blocks

    def _nothing(self, facts: Facts) -> tuple[str, list[str]]:
        """The name of `nullcontext` here, and the import that it needs."""
        for s in facts.walk(ast.ImportFrom):
            for a in s.names:
                if s.module == "contextlib" and a.name == "nullcontext" and s in facts.tree.body:
                    return a.asname or a.name, []
        return NOTHING, [] if "contextlib" in facts.scopes.module.stores else ["import contextlib"]

    # -- data_parallel ----------------------------------------------------------------------------------------

    def _functions(self, facts: Facts) -> Iterator[Change]:
        plain: dict[ast.AST, str] = {}
        for call in facts.walk(ast.Call):
            new = self._plain(facts, call) if facts.names.resolve(call.func) == FUNCTION else None
            if new is not None and not facts.is_fixed(call):
                plain[call] = new
                says = f"`{facts.short(call)}` became `{new}`: the runtime divides the batch"
                yield Change(call, self.edit(facts, call, says), source(new))
        for branch in facts.walk(ast.If) if plain else ():
            looks = not any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for n in walk(branch.test))
            if looks and branch.orelse and self._same(branch, plain):
                says = f"`if {facts.short(branch.test)}:` removed: both ways are the same"
                yield Change(branch, self.edit(facts, branch, says), body_only, (branch.test, *branch.orelse))

    def _plain(self, facts: Facts, call: ast.Call) -> str | None:
        """`net(x)` of `data_parallel(net, x, ...)`."""
        net, given = argument_at(call, "module", 0), argument_at(call, "inputs", 1)
        if net is None or given is None or argument_at(call, "module_kwargs", 5) is not None:
            return None
        if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
            return None
        if isinstance(given, ast.Tuple):
            return f"{facts.text.get(net)}({', '.join(facts.text.get(e) for e in given.elts)})"
        scope = facts.scopes.scope_of(given).lookup(given.id) if isinstance(given, ast.Name) else None
        made = [facts.scopes.parents.get(s) for s in scope.stores.get(given.id, ())] if scope is not None else []  # type: ignore[attr-defined]
        if any(isinstance(getattr(s, "value", None), (ast.Tuple, ast.List)) for s in made):
            return None  # several inputs under one name
        return f"{facts.text.get(net)}({facts.text.get(given)})"

    def _same(self, branch: ast.If, plain: dict[ast.AST, str]) -> bool:
        inside = [n for s in branch.body for n in walk(s) if n in plain]
        if len(inside) != 1 or len(branch.body) != len(branch.orelse):
            return False
        new = ast.unparse(ast.parse(plain[inside[0]]))
        old = ast.unparse(inside[0])
        return [ast.unparse(s).replace(old, new, 1) for s in branch.body] == [ast.unparse(s) for s in branch.orelse]


def _is_value(facts: Facts, wrapper: ast.expr) -> bool:
    """Whether a wrapper is given away: to a name that does not always stand for it, or to a function."""
    child: ast.AST = wrapper
    for up in facts.scopes.ancestors(wrapper):
        if isinstance(up, ast.Call):
            asks = isinstance(up.func, ast.Name) and up.func.id in ASKS
            return child is not up.func and not asks
        if isinstance(up, ast.Assign):
            return not all(facts.names.resolve(t) == facts.names.resolve(wrapper) for t in up.targets)
        if not isinstance(up, (ast.IfExp, ast.Tuple, ast.List, ast.Dict, ast.keyword)):
            return isinstance(up, ast.Return)
        child = up
    return False


def _twins(facts: Facts, s: ast.With) -> ast.If | None:
    """`if more:` `with model.no_sync(): loss.backward()` `else: loss.backward()`: what differs by the `with` alone."""
    up = facts.scopes.parents.get(s)
    if not isinstance(up, ast.If) or facts.text.is_elif(up) or not (up.body == [s] or up.orelse == [s]):
        return None
    other = up.orelse if s in up.body else up.body
    looks = not any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for n in walk(up.test))
    stays = {s.lineno, *range(other[0].lineno, (other[-1].end_lineno or 0) + 1)} if other else set()
    goes = (n for n in range(up.lineno, (up.end_lineno or 0) + 1) if n not in stays)
    if any("#" in facts.text.text[slice(*facts.text.line_span(n, n))] for n in goes):
        return None  # its comments would go with it
    return up if looks and [*map(ast.unparse, other)] == [*map(ast.unparse, s.body)] else None


def _opened(facts: Facts, read: ast.expr) -> tuple[ast.With | None, bool]:
    """The `with ctx:` or `with ctx():` that a name is read for, and whether it calls it."""
    up = facts.scopes.parents.get(read)
    called = isinstance(up, ast.Call) and up.func is read and not up.args and not up.keywords
    item = facts.scopes.parents.get(up) if called and up is not None else up
    block = facts.scopes.parents.get(item) if isinstance(item, ast.withitem) else None
    alone = isinstance(block, ast.With) and len(block.items) == 1 and block.items[0].optional_vars is None
    return (block if alone else None), called  # type: ignore[return-value]


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
