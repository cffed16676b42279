"""The pieces of a recipe as methods: which statements run in which hook, and which names live between them.

A name of the trunk (`args`, `model`) becomes an argument of the constructor; a name that one piece writes and another
reads (a counter) becomes an attribute; all others stay local.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from ..facts.nodes import once_a_node, walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from .adopted import worked_with
from .late import apart
from .nodes import names_of
from .of_some_runs import may_be_network
from .reads import chosen_once, exposed, names_in, stored, sure_of, sure_stores, surely_read
from .recipe import DataPass, Recipe
from .shape.known import LEAVES

# attributes of a Module that a user's name must not hide
RESERVED = frozenset(
    """
    trainer device dtype print log log_dict logger loggers optimizers lr_schedulers manual_backward all_gather
    all_reduce batch_mean batch_sum in_order share global_rank local_rank current_epoch global_step
    training train eval forward parameters modules children type half float double to cpu cuda state_dict
    training_step validation_step test_step predict_step
    configure_optimizers automatic_optimization loss_reduction toggle_model fabric hparams example_input_array
    buffers apply zero_grad share_memory call_super_init
    train_dataloader val_dataloader test_dataloader predict_dataloader
    """.split()
)


class Variable(NamedTuple):
    """A name as one variable: `owner` is the function whose local it is, or "" for the trunk."""

    owner: str
    name: str


@dataclass
class Chunk:
    """Statements that become (part of) one method."""

    hook: str
    statements: list[ast.stmt]
    passing: DataPass | None  # whose function the statements stand in; None: the epoch loop itself

    @property
    def owner(self) -> str:
        return self.passing.function.name if self.passing is not None and self.passing.function is not None else ""


@dataclass
class Variables:
    """Where every name of the chunks lives afterwards."""

    constructor: list[str] = field(default_factory=list)  # trunk names handed to the constructor, in order of the trunk
    attributes: dict[Variable, str] = field(default_factory=dict)
    aliases: dict[Variable, ast.expr] = field(default_factory=dict)  # parameters given an expression
    results: list[str] = field(default_factory=list)  # trunk names that are read again after the loop
    epoch_read_after: bool = False
    after: set[str] = field(default_factory=set)  # trunk names that may be read after the loop, written in it or not
    unbound: list[str] = field(default_factory=list)  # trunk names that may have no value yet: None from now on


def chunks_of(facts: Facts, recipe: Recipe) -> list[Chunk]:
    t, e = recipe.train, recipe.evaluate
    chunks = [
        Chunk("on_train_epoch_start", recipe.before, None),
        Chunk("on_train_epoch_start", t.before, t),
        Chunk("training_step", t.body, t),
    ]
    if recipe.reloads:
        late = apart(facts, recipe)
        for chunk, waits in zip(chunks[:2], late, strict=True):
            chunk.hook = "train_dataloader"
            chunk.statements = [s for s in chunk.statements if s not in waits]
        waiting = [Chunk("on_train_epoch_start", s, p) for s, p in zip(late, (None, t), strict=True) if s]
        chunks[2:2] = waiting
    after_training = "on_train_batches_end" if e is not None else "on_train_epoch_end"
    chunks += [Chunk(after_training, t.after, t), Chunk(after_training, recipe.between, None)]
    if e is not None:
        chunks += [
            Chunk("on_validation_epoch_start", e.before, e),
            Chunk("validation_step", e.body, e),
            Chunk("on_validation_epoch_end", e.after, e),
        ]
    chunks.append(Chunk("on_train_epoch_end", recipe.after, None))
    return chunks


class Binder:
    """Resolves the names of chunks to variables, through the parameters that calls give the functions."""

    def __init__(self, facts: Facts, recipe: Recipe) -> None:
        self.facts = facts
        self.recipe = recipe
        self.trunk_scope: Scope = facts.scopes.scope_of(recipe.epoch_loop)
        self._given: dict[str, dict[str, ast.expr]] = {}
        for p in (recipe.train, recipe.evaluate):
            if p is not None and p.function is not None and p.call is not None:
                self._given[p.function.name] = given_arguments(p.function, p.call)
        self.adopted = self._adopted() if self.trunk_scope.node is not facts.tree else set()
        self._known: dict[ast.Name, Variable | ast.expr | None] = {}  # what `variable` told

    def _adopted(self) -> set[str]:
        module, chunks = self.facts.scopes.module, chunks_of(self.facts, self.recipe)
        found = worked_with(self.facts, (s for chunk in chunks for s in chunk.statements), self._given_name)
        found |= {name for name, _ in self.recipe.schedulers}  # their steps are in no chunk any more
        found -= {*self.trunk_scope.stores, *self.trunk_scope.params}
        return {n for n in found if module.stores.get(n) and self._is_variable(module, n)}

    def _given_name(self, name: ast.Name) -> ast.Name:
        """The caller's own name for what it gives a parameter."""
        home = self.facts.scopes.scope_of(name).lookup(name.id)
        function = home.node if home is not None else None
        if not isinstance(function, ast.FunctionDef) or home is None or name.id in home.stores:
            return name
        given = self._given.get(function.name, {}).get(name.id)
        return given if isinstance(given, ast.Name) else name

    def variable(self, name: ast.Name) -> Variable | ast.expr | None:
        """The variable of a name in a chunk, the expression its parameter is given, or None for globals, builtins, and
        what a comprehension binds for itself.
        """
        if name not in self._known:
            self._known[name] = self._variable(name)
        return self._known[name]

    def _variable(self, name: ast.Name) -> Variable | ast.expr | None:
        home = self.facts.scopes.scope_of(name).lookup(name.id)
        if home is None or name in self.facts.scopes.hidden:
            return None
        node = home.node
        if isinstance(node, ast.FunctionDef) and node.name in self._given and home is not self.trunk_scope:
            given = self._given[node.name]
            if name.id in given and name.id not in home.stores:
                value = given[name.id]
                return Variable("", value.id) if isinstance(value, ast.Name) else value
            return Variable(node.name, name.id)
        if home is self.trunk_scope:
            return Variable("", name.id) if self._is_variable(home, name.id) else None
        if name.id in self.adopted and home is self.facts.scopes.module:
            return Variable("", name.id)
        return None

    def _is_variable(self, scope: Scope, name: str) -> bool:
        """Imports, functions and classes of the module stay what they are, and what functions share with the loop."""
        if scope.node is not self.facts.tree:
            return True
        if name in self.recipe.shared:
            return False
        made = scope.stores.get(name, ())
        return not all(isinstance(s, (ast.FunctionDef, ast.ClassDef, ast.alias)) for s in made)


def given_arguments(f: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr]:
    """What a call gives each parameter, defaults included."""
    from ..facts.arguments import argument, default_of

    given: dict[str, ast.expr] = {}
    for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs):
        value = argument(call, f, a.arg)
        value = value if value is not None else default_of(f, a.arg)
        if value is not None:
            given[a.arg] = value
    return given


def batch_names(passing: DataPass) -> list[ast.Name]:
    """The names that the batch loop itself binds: the parts of a batch, and the index."""
    return list(walk(passing.loop.target, ast.Name))


def resolve_variables(
    facts: Facts, recipe: Recipe, binder: Binder, chunks: list[Chunk], unread: Collection[ast.AST] = ()
) -> Variables:
    """Decide for every name of the chunks whether it is an argument, an attribute or local; `unread` ones are gone."""
    v = Variables()
    writes: dict[Variable, set[int]] = {}
    needs: dict[Variable, set[int]] = {}
    for i, chunk in enumerate(chunks):
        loop = chunk.passing.loop if chunk.passing is not None else None
        open_reads = exposed(chunk.statements) - chosen_once(facts, chunk.statements, loop)
        if i == 1 and recipe.reloads:
            _needed_by_loader(recipe, binder, chunks, needs)
        if chunk.hook.endswith("_step") and chunk.passing is not None:
            open_reads -= {n.id for n in walk(chunk.passing.target, ast.Name)} | {chunk.passing.index or ""}
            for name in batch_names(chunk.passing):
                if isinstance(var := binder.variable(name), Variable):
                    writes.setdefault(var, set()).add(i)
        for name in names_in(chunk.statements):
            if name in unread:
                continue
            var = binder.variable(name)
            if var is None:
                continue
            if not isinstance(var, Variable):
                v.aliases[Variable(chunk.owner, name.id)] = var
                for inner in walk(var, ast.Name):
                    if isinstance(outer := binder.variable(inner), Variable):
                        needs.setdefault(outer, set()).add(i)
                continue
            if not isinstance(name.ctx, ast.Load):
                writes.setdefault(var, set()).add(i)
            if name.id in open_reads:
                needs.setdefault(var, set()).add(i)
        if chunk.passing is not None and chunk.statements is chunk.passing.after and chunk.passing.returns is not None:
            for inner in walk(chunk.passing.returns, ast.Name):
                outer = binder.variable(inner) if inner not in unread else None
                if isinstance(outer, Variable) and outer.name not in stored(chunk.statements):
                    needs.setdefault(outer, set()).add(i)
                elif isinstance(outer, ast.expr):
                    v.aliases[Variable(chunk.owner, inner.id)] = outer
                    given = (binder.variable(n) for n in walk(outer, ast.Name))
                    for var in (g for g in given if isinstance(g, Variable)):
                        needs.setdefault(var, set()).add(i)
        if chunk.passing is not None and chunk.statements is chunk.passing.after and chunk.passing.result is not None:
            for target in walk(chunk.passing.result, ast.Name):
                writes.setdefault(Variable("", target.id), set()).add(i)
    _place(facts, recipe, binder, chunks, v, writes, needs)
    return v


def _needed_by_loader(recipe: Recipe, binder: Binder, chunks: list[Chunk], needs: dict[Variable, set[int]]) -> None:
    """What the loop goes over is made in the method that the statements before the loop went to."""
    sure = (sure_stores(chunks[0].statements) or set()) | (sure_stores(chunks[1].statements) or set())
    for n in names_of(recipe.train.loader):
        var = binder.variable(n)
        for found in walk(var) if isinstance(var, ast.expr) else [n]:
            outer = binder.variable(found) if isinstance(found, ast.Name) else None
            if isinstance(outer, Variable) and outer.name not in sure:
                needs.setdefault(outer, set()).add(1)


def _place(
    facts: Facts,
    recipe: Recipe,
    binder: Binder,
    chunks: list[Chunk],
    v: Variables,
    writes: dict[Variable, set[int]],
    needs: dict[Variable, set[int]],
) -> None:
    read_after = v.after = _read_after(facts, recipe, binder)
    v.epoch_read_after = recipe.epoch in read_after
    taken: set[str] = set()
    for var in dict.fromkeys([*needs, *writes]):
        in_trunk = var.owner == "" and bound_before(binder, recipe, var.name)
        at, to = writes.get(var, set()), needs.get(var, set())
        if var.owner == "" and var.name == recipe.epoch:
            continue
        given = in_trunk and bool(to | (at if var.name in read_after else set()))
        if given and not surely_bound(facts, recipe, binder, var.name):
            home = binder.trunk_scope
            if home.node is facts.tree and not at and not may_be_network(facts, var.name, home):
                continue  # a global that is only read stays one, bound or not
            v.unbound.append(var.name)
        if given:
            v.constructor.append(var.name)
        shared = bool(at) and (bool(to) or (var.owner == "" and var.name in read_after))
        if shared and not in_trunk and to and at == to and len(at) == 1:
            only = chunks[next(iter(at))]
            if not only.hook.endswith("_step"):
                continue  # written and read in one method that runs once an epoch: local, and unset where it was unset
        if shared or (in_trunk and to):
            name = attribute_name(var.name, var.owner, taken)
            taken.add(name)
            v.attributes[var] = name
        if var.owner == "" and at and var.name in read_after:
            v.results.append(var.name)
    order = {n: i for i, n in enumerate(_bound_order(binder, recipe))}
    v.constructor = sorted(dict.fromkeys(v.constructor), key=lambda n: order.get(n, 0))


def free_name(name: str) -> str:
    """The attribute of the Module for a name: not one that modules have of their own."""
    return "owner" if name == "self" else name + "_" if name in RESERVED else name


def attribute_name(name: str, owner: str, taken: set[str]) -> str:
    free = free_name(name)
    return free if free not in taken else f"{owner or 'epoch'}_{free}"


def _bound_order(binder: Binder, recipe: Recipe) -> list[str]:
    scope = binder.trunk_scope
    first = {
        n: min(s.lineno for s in stores)  # type: ignore[attr-defined]
        for n, stores in scope.stores.items()
        if stores
    }
    params = list(scope.params)
    return params + sorted(first, key=lambda n: first[n])


def surely_bound(facts: Facts, recipe: Recipe, binder: Binder, name: str) -> bool:
    """Whether the name has a value in any case when the epoch loop begins: written above it in no branch, or in all.

    Or what stands above reads it in any case, or every step does: without a value the script gets no further either.
    """
    if name in binder.trunk_scope.params or _in_every_step(recipe, binder, name):
        return True
    if name in binder.adopted and _sure_of_globals(facts, name):
        return True
    at: ast.AST = recipe.epoch_loop
    while at is not binder.trunk_scope.node:
        up = facts.scopes.parents[at]
        for field_name in ("body", "orelse", "finalbody"):
            block = getattr(up, field_name, None)
            if isinstance(block, list) and at in block:
                for s in block[: block.index(at)]:
                    if name in (sure_of(s) or ()) or _defines(s, name) or name in surely_read(s):
                        return True
        if isinstance(up, ast.With) and name in (sure_of(up) or ()):
            return True
        at = up
    return False


def _sure_of_globals(facts: Facts, name: str) -> bool:
    """Whether the module gives its name a value in any case, or a function of it does whenever it is called."""
    stores = facts.scopes.module.stores[name]
    homes = {facts.scopes.scope_of(s).node for s in stores if isinstance(s, ast.Name)}
    blocks = [home.body for home in homes if isinstance(home, (ast.Module, ast.FunctionDef))]
    return any(name in (sure_of(s) or ()) or _defines(s, name) for block in (facts.tree.body, *blocks) for s in block)


def _in_every_step(recipe: Recipe, binder: Binder, name: str) -> bool:
    """Whether every step reads the name, to which no epoch gives a value."""
    body = recipe.train.body
    if name in stored([recipe.epoch_loop]):
        return False
    leaves = (i for i, s in enumerate(body) if _leaves(s))
    read = {n for s in body[: next(leaves, None)] if name in surely_read(s) for n in names_of(s) if n.id == name}
    return bool(read) and name not in stored(body) and all(binder.variable(n) == Variable("", name) for n in read)


@once_a_node
def _leaves(s: ast.stmt) -> bool:
    return any(isinstance(n, LEAVES) for n in walk(s))


def _defines(s: ast.stmt, name: str) -> bool:
    """A definition or an import, or a loop that leaves its variables behind: taken for bound."""
    if isinstance(s, (ast.FunctionDef, ast.ClassDef)):
        return s.name == name
    if isinstance(s, (ast.Import, ast.ImportFrom)):
        return any((a.asname or a.name).split(".")[0] == name for a in s.names)
    return isinstance(s, (ast.For, ast.While)) and name in _named(s)


@once_a_node
def _named(s: ast.stmt) -> frozenset[str]:
    return frozenset(n.id for n in walk(s, ast.Name))


def bound_before(binder: Binder, recipe: Recipe, name: str) -> bool:
    """Whether the trunk binds the name before the epoch loop."""
    if name in binder.trunk_scope.params or name in binder.adopted:
        return True
    line = recipe.epoch_loop.lineno
    return any(getattr(s, "lineno", line) < line for s in binder.trunk_scope.stores.get(name, ()))


def _read_after(facts: Facts, recipe: Recipe, binder: Binder) -> set[str]:
    """Trunk names whose value of after the loop may be read: further down, in the next round of a loop around it, or in
    a function that stays.
    """
    inside = {s.function for s in (recipe.train, recipe.evaluate) if s is not None and s.function is not None}
    inherited = exposed([recipe.epoch_loop]).union(*(_of_trunk(facts, binder, f) for f in inside)) - _of_batches(recipe)
    next_round = _exposed_in_next_round(facts, recipe, binder, inherited)
    open_reads = _exposed_after(facts, recipe, binder) | next_round
    found = next_round & inherited
    for name in binder.trunk_scope.stores:
        for read in facts.scopes.reads(name, binder.trunk_scope):
            ups = list(facts.scopes.ancestors(read))
            if recipe.epoch_loop in ups or any(up in inside for up in ups):
                continue
            if name in open_reads or facts.scopes.scope_of(read) is not binder.trunk_scope:
                found.add(name)
    return found


def _exposed_after(facts: Facts, recipe: Recipe, binder: Binder) -> set[str]:
    """The trunk names that may be read after the loop before they are written again."""
    after: list[ast.stmt] = []
    found: set[str] = set()
    at: ast.AST = recipe.epoch_loop
    while at is not binder.trunk_scope.node:
        up = facts.scopes.parents[at]
        for block in (getattr(up, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list) and at in block:
                after += block[block.index(at) + 1 :]
        if isinstance(up, ast.Try):
            for block in (*(h.body for h in up.handlers), up.orelse, up.finalbody):
                found |= exposed(block) if at not in block else set()
        at = up
    return found | exposed(after)


def _of_trunk(facts: Facts, binder: Binder, f: ast.FunctionDef) -> set[str]:
    """The trunk names that a function may read before it writes them: its `global step`."""
    own = facts.scopes.by_node[f]
    return {name for name in exposed(f.body) if own.lookup(name) is binder.trunk_scope}


def _of_batches(recipe: Recipe) -> set[str]:
    """What every batch gives anew, and nothing above the batches reads: `loss` of a loader that is not empty."""
    given = [(sure_stores(p.body) or set()) - exposed(p.body) for p in (recipe.train, recipe.evaluate) if p is not None]
    return set[str]().union(*given) - exposed([*recipe.before, *recipe.train.before])


def _exposed_in_next_round(facts: Facts, recipe: Recipe, binder: Binder, inherited: set[str]) -> set[str]:
    """Those that a loop around the epochs may read again before it writes them: counts that go on, the best so far.

    `inherited`: what the epochs read of before them.
    """
    found: set[str] = set()
    at: ast.AST = recipe.epoch_loop
    while at is not binder.trunk_scope.node:
        up = facts.scopes.parents[at]
        if isinstance(up, (ast.For, ast.While)) and isinstance(at, ast.stmt) and at in up.body:
            inherited = inherited - (sure_stores(up.body[: up.body.index(at)]) or set())
            found |= exposed(up.body) | inherited
            found |= {n.id for n in walk(up.test, ast.Name)} if isinstance(up, ast.While) else set()
        at = up
    return found
