"""The optimizer and its schedules: moved to configure_optimizers where only the loop uses them, else handed over."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.tensors import MAKES
from ..facts.unplaced import given_by_network
from .chunks import Binder, Chunk, Variable, Variables, bound_before, free_name, surely_bound
from .computed import computed
from .device_texts import is_text
from .drawn_ahead import drawn_ahead
from .left_on_cpu import handed_over, left_on_cpu
from .loaders import values_of
from .modes import has_modes, own_modes
from .monitored import unread
from .moved_tensors import changed_in_place, moved_tensors
from .networks import made_network
from .only_loaded import is_made_on_cpu, only_loaded
from .optimizers import is_scheduler
from .own_device import OWN
from .reached import reached_networks
from .reads import names_in
from .recipe import CannotLift, Recipe
from .splice import Splice


@dataclass
class Configured:
    moved: list[ast.stmt] = field(default_factory=list)
    returned: str = ""
    reads: dict[str, str] = field(default_factory=dict)  # trunk name -> how a method reads it
    handled: set[str] = field(default_factory=set)  # trunk names that the constructor need not get
    model_class: str | None = None
    optimizers: list[str] = field(default_factory=list)
    tensors: set[str] = field(default_factory=set)  # trunk names of tensors: they become buffers
    texts: dict[str, str] = field(default_factory=dict)  # trunk names of devices that are texts -> such a text
    placed: set[str] = field(default_factory=set)  # trunk names of what goes to the device when the fit starts
    unmoved: list[ast.Call] = field(default_factory=list)  # calls that moved such tensors: they move with the Module
    idle: list[ast.stmt] = field(default_factory=list)  # statements that did nothing else


def configure(
    facts: Facts, recipe: Recipe, binder: Binder, variables: Variables, chunks: list[Chunk], places: bool = True
) -> Configured:
    """`places`: tensors that the script puts on a device by name go where the Module is."""
    c = _configured(facts, recipe, binder, variables, chunks)
    if places:
        _moved_tensors(facts, recipe, binder, variables, c)
    missing = c.tensors & set(variables.unbound)  # rank 0's alone: as buffers they would be of some processes only
    c.tensors, c.placed = c.tensors - missing, c.placed | missing
    if not recipe.optimization.manual:  # torch's DDP sends rank 0's buffers to the others before every step
        changed = {n for n in c.tensors if changed_in_place(facts, binder, n)}
        c.tensors, c.placed = c.tensors - changed, c.placed | changed
    return c


def _configured(facts: Facts, recipe: Recipe, binder: Binder, variables: Variables, chunks: list[Chunk]) -> Configured:
    c = Configured()
    c.optimizers = optimizers = _stepped(facts, recipe, binder)
    schedulers = _schedules(facts, recipe, binder)
    names = list(dict.fromkeys([*optimizers, *(n for n, _ in schedulers)]))
    statements = {n: _definition(facts, recipe, binder, n) for n in names}
    movable = (statements[n] is not None and _only_for_the_loop(facts, recipe, binder, n, statements) for n in names)
    if optimizers and all(movable):  # a schedule alone is nothing that configure_optimizers could return
        for n in names:
            s = statements[n]
            assert s is not None
            c.moved.append(s)
            need_names(binder, variables, s, set(names))
        written = {n: n for n in names}
    else:
        for n in names:
            _hand_over(variables, n)
        written = {n: f"self.{variables.attributes[Variable('', n)]}" for n in names}
    if optimizers:
        c.returned = _returned(facts, recipe, binder, optimizers, schedulers, written)
    if c.moved:
        _read_from_trainer(c, optimizers, [n for n, _ in schedulers])
        for n in names:
            variables.attributes.pop(Variable("", n), None)
    reached = reached_networks(facts, recipe, binder, variables, chunks, optimizers)
    for n in reached:
        _hand_over(variables, n)
    recipe.own_modes = own_modes(facts, recipe, chunks, _with_modes(facts, recipe, binder, chunks, reached))
    _devices(facts, recipe, binder, variables, chunks, c)
    if optimizers:
        c.model_class = _model_class(facts, recipe, binder, optimizers[0])
        order = [n for n in variables.constructor if n not in c.handled]
        variables.constructor = sorted(set(order), key=order.index)
    return c


def _stepped(facts: Facts, recipe: Recipe, binder: Binder) -> list[str]:
    """The trunk's names of the optimizers. Raises CannotLift where one may have no value when the loop begins."""
    o = recipe.optimization
    optimizers = list(dict.fromkeys(_trunk_name(binder, recipe, n, o.losses[0]) for n in o.optimizers))
    if o.manual and recipe.whole is not None:  # one that is not always made is stepped by its global name
        optimizers = [n for n in optimizers if surely_bound(facts, recipe, binder, n)]
    stepped = {_trunk_name(binder, recipe, n, o.losses[0]) for n in o.optimizers if _every_batch_reads(recipe, n)}
    for n in optimizers:
        # a step that every batch takes would end the script as the constructor's call does: by a NameError
        taken = n in binder.trunk_scope.stores and bound_before(binder, recipe, n) and (not o.manual or n in stepped)
        if not taken and not surely_bound(facts, recipe, binder, n):
            raise CannotLift(recipe.epoch_loop, f"`{n}` may have no value when the loop begins")
    return optimizers


def _schedules(facts: Facts, recipe: Recipe, binder: Binder) -> list[tuple[str, str]]:
    """The schedulers that configure_optimizers gives, and when each is stepped. Raises CannotLift."""
    o = recipe.optimization
    if o.manual:
        return [(n, "epoch") for n in _schedulers_by_hand(facts, recipe, binder)]
    schedulers = [(_trunk_name(binder, recipe, n, call), "epoch") for n, call in recipe.schedulers]
    if o.batch_scheduler is not None:
        assert o.step is not None
        schedulers.append((_trunk_name(binder, recipe, o.batch_scheduler, o.step), "step"))
    return schedulers


def _returned(
    facts: Facts,
    recipe: Recipe,
    binder: Binder,
    optimizers: list[str],
    schedulers: list[tuple[str, str]],
    written: dict[str, str],
) -> str:
    """What configure_optimizers returns."""
    if not schedulers:
        return written[optimizers[0]] if len(optimizers) == 1 else f"[{', '.join(written[n] for n in optimizers)}]"
    parts = [
        _plateau(facts, recipe, binder, n, written[n])
        if interval == "epoch"
        else f'{{"scheduler": {written[n]}, "interval": "step"}}'
        for n, interval in schedulers
    ]
    return f"[{', '.join(written[n] for n in optimizers)}], [{', '.join(parts)}]"


def _read_from_trainer(c: Configured, optimizers: list[str], schedulers: list[str]) -> None:
    """What the steps read in the place of the names that have moved."""
    c.handled.update(optimizers, schedulers)
    for names, getter in ((optimizers, "self.optimizers()"), (schedulers, "self.lr_schedulers()")):
        for i, n in enumerate(names):
            c.reads[n] = getter if len(names) == 1 else f"{getter}[{i}]"


def _every_batch_reads(recipe: Recipe, name: str) -> bool:
    """Whether the step comes by the name under no condition, before anything may leave it."""
    for s in recipe.train.body:
        if isinstance(s, (ast.If, ast.For, ast.While, ast.Try, ast.Match)):
            if any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in walk(s)):
                return False
        elif any(n.id == name for n in walk(s, ast.Name)):
            return True
    return False


def _plateau(facts: Facts, recipe: Recipe, binder: Binder, name: str, written: str) -> str:
    """A schedule on a metric needs a `monitor` to be returned; a manual step gives it the metric itself."""
    for read, key in zip(unread(recipe.monitored), recipe.monitored.values(), strict=True):
        if binder.variable(read) == Variable("", name):
            return f'{{"scheduler": {written}, "monitor": "{key}"}}'
    values = facts.devices.assigned(name, binder.trunk_scope) or []
    names = [facts.names.resolve(v.func) or "" for v in values if isinstance(v, ast.Call)]
    on_metric = any(n.endswith(".ReduceLROnPlateau") for n in names)
    return f'{{"scheduler": {written}, "monitor": "given to step()"}}' if on_metric else written


def _schedulers_by_hand(facts: Facts, recipe: Recipe, binder: Binder) -> list[str]:
    """The trunk names of the schedules that a manual step, or its epoch, steps itself; not those the epoch makes."""
    found: dict[str, None] = {}
    functions = [p.function for p in (recipe.train, recipe.evaluate) if p is not None and p.function is not None]
    for root in (recipe.epoch_loop, *functions):
        for n in walk(root, ast.Name):
            if isinstance(n.ctx, ast.Load) and is_scheduler(facts, n, n.id):
                var = binder.variable(n)
                if isinstance(var, Variable) and not var.owner and bound_before(binder, recipe, var.name):
                    found[var.name] = None
    return list(found)


def _trunk_name(binder: Binder, recipe: Recipe, name: str, at: ast.AST) -> str:
    probe = next((n for n in walk(recipe.train.loop, ast.Name) if n.id == name), None)
    probe = probe or next((n for n in walk(recipe.epoch_loop, ast.Name) if n.id == name), None)
    var = binder.variable(probe) if probe is not None else None
    if not isinstance(var, Variable) or var.owner:
        raise CannotLift(at, f"`{name}` gets its value inside the training pass")
    return var.name


def _definition(facts: Facts, recipe: Recipe, binder: Binder, name: str) -> ast.Assign | None:
    """The one plain statement of the trunk's block that makes the object, before the epoch loop."""
    stores = binder.trunk_scope.stores.get(name, [])
    if len(stores) != 1 or name in binder.trunk_scope.params:
        return None
    s = facts.scopes.parents.get(stores[0])
    block = recipe.trunk_body
    if not (
        isinstance(s, ast.Assign)
        and len(s.targets) == 1
        and s.targets[0] is stores[0]
        and isinstance(s.value, ast.Call)
    ):
        return None
    if s not in block or block.index(s) > block.index(recipe.epoch_loop) or Splice(facts.text).shares_a_line(s):
        return None
    return s


def _only_for_the_loop(
    facts: Facts, recipe: Recipe, binder: Binder, name: str, statements: dict[str, ast.Assign | None]
) -> bool:
    """Whether nothing but the lifted code and the other moved statements reads the name."""
    functions = {p.function for p in (recipe.train, recipe.evaluate) if p is not None and p.function is not None}
    for read in facts.scopes.reads(name, binder.trunk_scope):
        ups = set(facts.scopes.ancestors(read))
        if (
            recipe.epoch_loop not in ups
            and not (ups & functions)
            and not (ups & set(filter(None, statements.values())))
        ):
            return False
    s = statements[name]
    assert s is not None
    between = recipe.trunk_body[recipe.trunk_body.index(s) + 1 : recipe.trunk_body.index(recipe.epoch_loop)]
    used = {n.id for n in walk(s.value, ast.Name)}
    for other in between:
        if other in statements.values():
            continue
        written = {n.id for n in walk(other, ast.Name) if not isinstance(n.ctx, ast.Load)}
        if written & used:
            return False  # what the optimizer was made from is another thing by the time of the loop
    return True


def need_names(
    binder: Binder, variables: Variables, node: ast.AST, own: set[str] | frozenset[str] = frozenset()
) -> None:
    """The trunk names that a moved statement or expression reads come with the constructor."""
    for n in walk(node, ast.Name):
        if isinstance(n.ctx, ast.Load) and n.id not in own:
            var = binder.variable(n)
            if isinstance(var, Variable):
                _hand_over(variables, var.name)


def _hand_over(variables: Variables, name: str) -> None:
    if name not in variables.constructor:
        variables.constructor.append(name)
    variables.attributes.setdefault(Variable("", name), free_name(name))


def _with_modes(facts: Facts, recipe: Recipe, binder: Binder, chunks: list[Chunk], reached: list[str]) -> Iterator[str]:
    """The trunk's networks that an evaluation names or may reach, and that may do there what they do in no training."""
    evaluating = [s for c in chunks if c.passing is recipe.evaluate for s in c.statements] if recipe.evaluate else []
    named = (binder.variable(name) for name in names_in(evaluating))
    for n in dict.fromkeys([*reached, *(v.name for v in named if isinstance(v, Variable) and not v.owner)]):
        for scope in (binder.trunk_scope, facts.scopes.module):
            made = made_network(facts, n, scope)
            if made is not None and has_modes(facts, made):
                yield n


def _devices(
    facts: Facts, recipe: Recipe, binder: Binder, variables: Variables, chunks: list[Chunk], c: Configured
) -> None:
    """A device that a step still reads is the module's own."""
    for name in variables.constructor:
        values = facts.devices.assigned(name, binder.trunk_scope)
        if values is None and len(binder.trunk_scope.stores.get(name, ())) == 1:
            values = values_of(facts, name, binder.trunk_scope)  # `mean, std = torch.zeros(3), torch.ones(3)`
        if name in binder.trunk_scope.params:
            values = [*(values or []), *(facts.devices.given(binder.trunk_scope, name) or [])]
        if values and all(facts.devices.is_device(v) for v in values):
            c.handled.add(name)
            c.reads[name] = OWN
            texts = [t for v in values for t in facts.devices.texts(v)]
            if texts or is_text(facts, name, binder.trunk_scope):
                c.texts[name] = f"str({OWN})" if any(":" in t for t in texts) else f"{OWN}.type"
            variables.attributes.pop(Variable("", name), None)
        elif values and name not in facts.tensors.learned and all(_is_tensor(facts, v) for v in values):
            loaded = only_loaded(binder, recipe, chunks, name) or handed_over(facts, recipe, binder, name)
            if not (loaded and all(map(is_made_on_cpu, values))) and not left_on_cpu(facts, binder, name):
                c.tensors.add(name)
        elif (
            (values and all(given_by_network(facts, v) for v in values))
            or computed(facts, name, binder.trunk_scope, recipe.epoch_loop)
            or drawn_ahead(facts, name, binder.trunk_scope, recipe.epoch_loop)
        ):
            c.placed.add(name)


def _moved_tensors(facts: Facts, recipe: Recipe, binder: Binder, variables: Variables, c: Configured) -> None:
    """`noise = torch.randn(64, 8).cuda()` that only lifted code reads: it moves with the Module."""
    learned = facts.tensors.learned  # a buffer is no leaf that gradients reach: these keep their moves
    moved = moved_tensors(facts, recipe, binder, set(variables.constructor) - c.handled - learned)
    c.tensors |= moved.tensors
    c.placed |= moved.others
    c.unmoved, c.idle = moved.calls, moved.dropped


def _is_tensor(facts: Facts, value: ast.expr) -> bool:
    made = isinstance(value, ast.Call) and facts.names.resolve(value.func) in MAKES
    return made and facts.tensors.is_tensor(value)  # one that asks for gradients is the optimizer's


def _model_class(facts: Facts, recipe: Recipe, binder: Binder, optimizer: str) -> str | None:
    """The class of the model that the optimizer trains: `Net` for `Adam(model.parameters())`, `model = Net()`."""
    for store in binder.trunk_scope.stores.get(optimizer, ()):
        s = facts.scopes.parents.get(store)
        if isinstance(s, ast.Assign):
            for n in walk(s.value, ast.Attribute):
                if n.attr == "parameters" and isinstance(n.value, ast.Name):
                    for value in facts.devices.assigned(n.value.id, binder.trunk_scope) or []:
                        if isinstance(value, ast.Call):
                            last = (facts.names.resolve(value.func) or ast.unparse(value.func)).split(".")[-1]
                            if last.isidentifier() and last[0].isupper():
                                return last
    return None
