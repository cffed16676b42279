"""T2: a tensor made inside forward, a step or a helper goes where the tensors it is made for are.

`.type_as(x)` where both are floats; otherwise `.to(x.device)`, so that an index stays an index; `self.device` in a step
whose batch is not one tensor, a parameter of the module where nothing comes in. Where nothing shows what the device is,
the call stays and is told of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument_at, entry
from ..facts.asked_machine import where_cuda_is
from ..facts.by_hand import cut_by_hand
from ..facts.classes import STEPS
from ..facts.floats import has_other_precisions, is_floating
from ..facts.given_to_objects import is_parameter_made
from ..facts.given_to_training import gets_unplaced
from ..facts.nodes import walk
from ..facts.passes_above import is_of_pass_above
from ..facts.placed import LIKE, MAKES_TENSORS
from ..facts.plain import VARIABLE
from ..facts.plain_lists import given_to_plain_list, in_plain_list
from ..facts.script import Facts
from ..facts.tensor_makers import FLOATS, OF_THE_CPU, is_open
from ..facts.types_elsewhere import reads_of_types
from ..facts.unplaced import made_in_training, meets_unplaced
from ..facts.uses import uses
from ..report import Note
from ._at_hand import decides, given_module, is_called_in_steps, is_helper, met, of_callers, root
from ._autograd_inputs import autograd_input
from ._below_training import network_below
from ._given_to import network_given
from ._own_places import has_device, is_own_place
from ._own_weights import weight_in
from ._partials import gives_device
from ._same_anywhere import choices
from ._tensor_names import NO_ARRAY_USE, TENSOR_USE, is_named, is_tensor, may_be_tensor, of_comprehension, used
from .argument_rewrites import DropArgument, change_argument, change_call, change_method, set_keyword
from .base import Change, Codemod
from .host_reads import is_number, leaves, read_on_host
from .meets_batch import met_before_move
from .rewrites import move_to, unwrap

CASTS = {"long", "int", "bool", "byte", "half", "double", "type", "type_as", "to", "short"}


class PlaceLikeInputs(Codemod):
    code = "PTM104"
    name = "place-like-inputs"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        typed = {read for read, _ in reads_of_types(facts)} if facts.others else set()  # TensorTypes places those
        for call in facts.walk(ast.Call):
            if call in facts.buffered or call.func in typed:
                continue
            full = facts.names.resolve(call.func)
            receiver = facts.devices.moved(call)
            if (full is None or full in MAKES_TENSORS | LIKE) and _spreads_device(facts, call):
                if not facts.placed.is_registered(call):
                    self._tell(facts, call)
            elif _is_listed(facts, call, receiver):
                self._tell(
                    facts, call, "it does not move from a plain list or dictionary: nn.ModuleList, nn.ModuleDict"
                )
            elif receiver is not None and (made_in_training(facts, receiver) or is_of_pass_above(facts, receiver)):
                self._tell(facts, call)
            elif receiver is not None and not facts.placed.by_runtime(receiver):
                yield from self._moved(facts, call, receiver)
            elif full in MAKES_TENSORS | LIKE:
                yield from self._made_there(facts, call)
                if is_open(facts, call):
                    yield from self._made_anywhere(facts, call)
                elif full in OF_THE_CPU:
                    yield from self._brought_there(facts, call)
            elif full == "torch.Generator":
                where = argument_at(call, "device", 0)
                if where is not None and facts.devices.says_where(where) and not facts.devices.is_host(where):
                    self._tell(facts, call)
            elif full == "functools.partial" and gives_device(facts, call):
                self._tell(facts, call)
            elif full is None and isinstance(call.func, ast.Attribute) and call.func.attr.startswith("new_"):
                yield from self._made_from(facts, call, call.func.value)
        yield from choices(self, facts, self._rewritten)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _moved(self, facts: Facts, call: ast.Call, receiver: ast.expr) -> Iterator[Change]:
        """`torch.zeros(2, 3).cuda(0)`"""
        where = self._place(facts, call)
        if where is None or _is_itself(facts, receiver, where):
            where = given_module(facts, call) or where
        arguments = facts.devices.device_arguments(call)
        others = len(arguments) < len(call.args) + len(call.keywords)
        to = isinstance(call.func, ast.Attribute) and call.func.attr == "to"
        there = facts.is_fixed(call) or facts.placed.on_a_stream(call)
        if where is None and not there and not others and read_on_host(facts, call):
            says = f"`{facts.short(call)}`: nothing but its numbers is read, on the CPU as anywhere"
            yield Change(call, self.edit(facts, call, says), unwrap, (*call.args, *call.keywords))
            return
        if arguments and is_own_place(facts, _value(arguments[0])):
            return
        if where is None or there or _is_itself(facts, receiver, where):
            named = _value(arguments[0]) if len(arguments) == 1 else None
            if named is None or not (of_callers(facts, named) or where_cuda_is(facts, named)):
                self._tell(facts, call)
            return
        parts = (*call.args, *call.keywords)
        if to and others:
            place = [*call.args, *call.keywords].index(arguments[0])
            says = f"`{facts.short(call)}` goes to `{where}.device`"
            change = change_argument(place, f"{where}.device")
            yield Change(call, self.edit(facts, call, says), change, (arguments[0],))
        elif self._is_float(facts, receiver) and self._is_floating(facts, call, where):
            says = f"`{facts.short(call)}` became `.type_as({where})`"
            yield Change(call, self.edit(facts, call, says), change_method("type_as", where), parts)
        else:
            says = f"`{facts.short(call)}` became `.to({where}.device)`"
            yield Change(call, self.edit(facts, call, says), change_method("to", f"{where}.device"), parts)

    def _rewritten(self, facts: Facts, call: ast.Call) -> str | None:
        """What a moved tensor is placed like, where `_moved` rewrites it: a choice of it may go then."""
        where, receiver = self._place(facts, call), facts.devices.moved(call)
        stays = where is None or receiver is None or _is_itself(facts, receiver, where)
        return None if stays or facts.placed.on_a_stream(call) else where

    def _made_there(self, facts: Facts, call: ast.Call) -> Iterator[Change]:
        """`torch.zeros(2, 3, device=device)`"""
        given = next((k for k in call.keywords if k.arg == "device"), None)
        if given is None or not facts.devices.says_where(given.value):
            return
        if facts.devices.is_host(given.value) or is_own_place(facts, given.value):
            return
        if facts.placed.is_registered(call):
            says = f"`{facts.short(given)}` removed: `{facts.short(call)}` moves with its module"
            drop = DropArgument([*call.args, *call.keywords].index(given))
            yield Change(call, self.edit(facts, given.value, says), drop, (given,))
            return
        where = self._place(facts, call) or given_module(facts, call)
        if where is None and not facts.is_fixed(call) and read_on_host(facts, call):
            says = f"`{facts.short(given)}` removed: nothing but the numbers of `{facts.short(call)}` is read"
            drop = DropArgument([*call.args, *call.keywords].index(given))
            yield Change(call, self.edit(facts, given.value, says), drop, (given,))
            return
        if where is None and not facts.is_fixed(call) and meets_unplaced(facts, call):
            says = f"`{facts.short(given)}` removed: what is given `{facts.short(call)}` is not placed yet"
            drop = DropArgument([*call.args, *call.keywords].index(given))
            yield Change(call, self.edit(facts, given.value, says), drop, (given,))
            return
        if where is None or facts.is_fixed(call):
            if not of_callers(facts, given.value):
                self._tell(facts, call)
            return
        if facts.text.get(given.value) == f"{where}.device":
            return
        says = f"`{facts.short(given)}` became `device={where}.device`"
        yield Change(
            call,
            self.edit(facts, given.value, says),
            change_call((), set(), {"device": f"{where}.device"}),
            (given.value,),
        )

    def _made_from(self, facts: Facts, call: ast.Call, receiver: ast.expr) -> Iterator[Change]:
        """`x.new_zeros(3, device=device)` of a tensor that the runtime places: it is made where x is."""
        given = next((k for k in call.keywords if k.arg == "device"), None)
        if given is None or not facts.devices.says_where(given.value) or facts.devices.is_host(given.value):
            return
        if not facts.placed.by_runtime(receiver) or facts.is_fixed(call):
            self._tell(facts, call)
            return
        says = f"`{facts.short(given)}` removed: `{facts.short(call)}` is made where `{facts.short(receiver)}` is"
        drop = DropArgument([*call.args, *call.keywords].index(given))
        yield Change(call, self.edit(facts, given.value, says), drop, (given,))

    def _made_anywhere(self, facts: Facts, call: ast.Call) -> Iterator[Change]:
        """`torch.zeros(2, 3)` in forward is on the CPU, wherever the module is."""
        if is_number(call) or facts.is_fixed(call):
            return
        f = next(facts.scopes.functions_around(call), None)
        where = met_before_move(facts, call)
        if where is None and isinstance(f, ast.FunctionDef) and not _moves_with(facts, call):
            where = self._where(facts, f, call)
        if where is None:
            return
        new = f"{where}.device"
        says = f"`{facts.short(call)}` is made where `{where}` is: `device={new}`"
        yield Change(call, self.edit(facts, call, says), set_keyword("device", new))

    def _brought_there(self, facts: Facts, call: ast.Call) -> Iterator[Change]:
        """`torch.from_numpy(a)`, `torch.FloatTensor(n, 10)` that meets the batch before it is moved itself."""
        where = met_before_move(facts, call)
        if where is None or facts.is_fixed(call):
            return
        says = f"`{facts.short(call)}` goes where `{where}` is, which it meets: `.to({where}.device)`"
        yield Change(call, self.edit(facts, call, says), move_to(f"{where}.device"))

    def _where(self, facts: Facts, f: ast.FunctionDef, call: ast.Call) -> str | None:
        """The tensor that one made without a device belongs to: any at hand in forward and steps, else one it meets."""
        in_module = facts.classes.holder(f) in facts.classes.modules
        step = in_module and (f.name == "forward" or f.name in STEPS)
        if not step and not is_helper(facts, f) and not is_called_in_steps(facts, f):
            return None
        compared = leaves(facts, call) or self._is_placed_later(facts, f, call)
        if not compared and step:
            return self._place(facts, call)
        if compared and (decides(facts, call) or leaves(facts, call, False)):
            return None
        if self._is_placed_later(facts, f, call, False):
            return None
        return met(facts, f, call, lambda name: is_tensor(facts, f, name, call))

    def _is_placed_later(self, facts: Facts, f: ast.FunctionDef, call: ast.Call, compared: bool = True) -> bool:
        """By its name: moved, or handed to what wants it on the CPU; `compared`: or by a comparison."""
        s = facts.scopes.statement_of(call)
        names = {n.id for t in getattr(s, "targets", []) for n in walk(t, ast.Name)}
        reads = (n for n in walk(f, ast.Name) if n.id in names and isinstance(n.ctx, ast.Load))
        return bool(names) and any(leaves(facts, n, compared) for n in reads)

    def _stays_behind(self, facts: Facts, f: ast.FunctionDef, name: str, call: ast.Call) -> bool:
        """Whether a parameter is given what the script makes, and is itself not moved before a call."""
        scope, here = facts.scopes.by_node[f], facts.scopes.statement_of(call)
        if any(getattr(s, "lineno", 0) < here.lineno for s in scope.stores.get(name, ())):
            return False
        made = facts.placed.is_given_made(name, scope) or is_parameter_made(facts, f, name)
        return made or gets_unplaced(facts, scope, name)

    def _tell(self, facts: Facts, call: ast.Call, why: str = "nothing here shows which it should be") -> None:
        line, column, _, _ = facts.text.key(call)
        self.left.append(Note(line, column + 1, self.code, f"`{facts.short(call)}` names a device: {why}"))

    # -- where -----------------------------------------------------------------------------------------------

    def _place(self, facts: Facts, call: ast.Call) -> str | None:
        """The source of what is where the tensor is meant to be: another tensor, self, a parameter; or None."""
        name, moved = of_comprehension(facts, call), facts.devices.moved(call)
        if name is not None and (moved is None or not _is_itself(facts, moved, name)):
            return name
        around = list(facts.scopes.functions_around(call))
        if not around:
            return self._of_batch(facts, call) or network_below(facts, call)
        for i, f in enumerate(around):
            where = self._place_in(facts, call, f)
            if where is not None and i > 0:  # an inner function may run later, and have its own of that name
                name = where.partition(".")[0]
                rebound = name in facts.scopes.by_node[f].stores
                return None if rebound or any(facts.scopes.by_node[g].binds(name) for g in around[:i]) else where
            if where is not None:
                return where
        return network_given(facts, around[0], call) or network_below(facts, call)

    def _place_in(self, facts: Facts, call: ast.Call, f: ast.FunctionDef | ast.Lambda) -> str | None:
        """The same, of what one of the functions around has at hand."""
        if isinstance(f, ast.Lambda):
            return next((a.arg for a in f.args.args if is_tensor(facts, f, a.arg, call)), None)
        holder = facts.classes.holder(f)
        if holder in facts.classes.modules and facts.classes.sets_up(f):
            return None  # nothing is placed yet
        parameters = [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
        own = parameters[:1] == ["self"] and holder is not None
        if holder is not None and not any(is_named(d, "staticmethod") for d in f.decorator_list):
            parameters = parameters[1:]
        cut = cut_by_hand(facts, f) | _moved_below(facts, f, call)
        for name in [*parameters, *(a.arg for a in f.args.kwonlyargs)]:
            if name not in cut and is_tensor(facts, f, name, call) and not self._stays_behind(facts, f, name, call):
                return name
        if (given := autograd_input(facts, f)) is not None:
            return given
        alone = f.name == "forward" and len(parameters) == 1 and not f.args.defaults
        alone = alone and holder in facts.classes.modules and may_be_tensor(facts, f, parameters[0])
        if alone and not any(isinstance(i, ast.Constant) for i in uses(f).indices.get(parameters[0], ())):
            return parameters[0]  # `batch[0]` is of a tuple, or of a tensor
        if own and has_device(facts, holder):
            return "self"
        arrays = not (holder in facts.classes.modules or is_helper(facts, f))  # which a function that loads data has
        for name in (n for n in self._locals(facts, f, call) if n not in cut):
            if is_tensor(facts, f, name, call) and not (arrays and not used(uses(f), name) & NO_ARRAY_USE):
                return name
        weight = weight_in(facts, holder, f) if own and holder in facts.classes.modules else None
        if alone and weight is None:
            return parameters[0]
        of_batch = self._of_batch(facts, call)
        if of_batch is not None:
            return of_batch
        return weight or met(facts, f, call, lambda name: is_tensor(facts, f, name, call))

    def _of_batch(self, facts: Facts, call: ast.Call) -> str | None:
        """A tensor of the batch that the loop around goes through, or one taken from it before."""
        above = list(facts.scopes.ancestors(call))
        for i, loop in enumerate(above):
            if isinstance(loop, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return None
            if not isinstance(loop, ast.For) or not facts.loops.is_loader(_iterated(loop.iter)):
                continue
            given = [n.id for n in walk(loop.target, ast.Name)]
            for s in loop.body:
                if s in above[:i]:
                    break
                if isinstance(s, ast.Assign) and facts.placed.by_runtime(s.value):
                    given += [n.id for t in s.targets for n in walk(t, ast.Name)]
            own = uses(loop)
            tensors = (n for n in given if used(own, n) & TENSOR_USE and not own.as_container(n))
            return next(tensors, None)
        return None

    def _locals(self, facts: Facts, f: ast.FunctionDef, call: ast.Call) -> Iterator[str]:
        """Names that the function was given before, from what the runtime places, wherever the call is reached."""
        above = set(facts.scopes.ancestors(call))
        for s in f.body:
            if s in above:
                return
            if isinstance(s, ast.Assign) and len(s.targets) == 1 and facts.placed.by_runtime(s.value):
                targets = s.targets[0].elts if isinstance(s.targets[0], ast.Tuple) else s.targets
                yield from (t.id for t in targets if isinstance(t, ast.Name))

    # -- what ------------------------------------------------------------------------------------------------

    def _is_float(self, facts: Facts, value: ast.expr) -> bool:
        """Made as float32, by torch's default."""
        if isinstance(value, ast.Name):
            scope = facts.scopes.scope_of(value).lookup(value.id)
            given = facts.devices.assigned(value.id, scope) if scope is not None else None
            made = [v for v in given or [] if not any(is_named(n, value.id) for n in walk(v))]
            return bool(made) and all(self._is_float(facts, v) for v in made)
        if not isinstance(value, ast.Call):
            return False
        full = facts.names.resolve(value.func)
        if full in (VARIABLE, "torch.triu", "torch.tril") and len(value.args) == 1:
            return self._is_float(facts, value.args[0])
        if full is None and isinstance(value.func, ast.Attribute):
            return value.func.attr not in CASTS and self._is_float(facts, value.func.value)
        return full in FLOATS and not any(k.arg == "dtype" for k in value.keywords)

    def _is_floating(self, facts: Facts, call: ast.Call, name: str) -> bool:
        """Whether the name and its uses say that the other tensor holds measurements, not numbers of things."""
        if has_other_precisions(facts):
            return False  # what layers give is half there, or double, and a count or a sum is not to be
        f = next((u for u in facts.scopes.ancestors(call) if isinstance(u, (ast.FunctionDef, ast.For))), None)
        return f is not None and name.isidentifier() and name != "self" and is_floating(facts, f, name)


def _value(argument: ast.expr | ast.keyword) -> ast.expr:
    return argument.value if isinstance(argument, ast.keyword) else argument


def _iterated(node: ast.expr) -> ast.expr:
    """`loader` of `enumerate(tqdm(loader), 1)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        node = node.args[0]
    return node


def _spreads_device(facts: Facts, call: ast.Call) -> bool:
    """`x.to(**where)` of a dictionary that is written down, and has a device."""
    for k in call.keywords:
        if k.arg is not None or not isinstance(k.value, (ast.Name, ast.Attribute)):
            continue
        scope = facts.scopes.scope_of(k.value).lookup(k.value.id) if isinstance(k.value, ast.Name) else None
        given = (facts.devices.assigned(k.value.id, scope) or []) if scope is not None else []  # type: ignore[union-attr]
        if isinstance(k.value, ast.Attribute):
            given = facts.devices.attribute_values.get(k.value.attr, [])
        where = [e for g in given if (e := entry(g, "device")) is not None]
        if any(facts.devices.says_where(e) and not facts.devices.is_host(e) for e in where):
            return True
    return False


def _is_listed(facts: Facts, call: ast.Call, receiver: ast.expr | None) -> bool:
    """`self.layers = [nn.Linear(2, 2).cuda()]`, or with `device=`: the module that has the list leaves it behind.

    So it does with what it is given: `self.__dict__["teacher"] = teacher.cuda()`.
    """
    made = call if receiver is None else receiver
    if isinstance(made, ast.Name):
        return given_to_plain_list(facts, made)
    if not isinstance(made, ast.Call):
        return False
    given = next((k.value for k in call.keywords if k.arg == "device"), None)
    says_where = receiver is not None or (given is not None and facts.devices.is_device(given))
    return says_where and facts.placed.is_module(made) and in_plain_list(facts, made)


def _moves_with(facts: Facts, call: ast.Call) -> bool:
    """Whether what is computed from it is moved in the same expression: `torch.exp(torch.arange(3)).to(x.device)`."""
    below: ast.AST = call
    for up in facts.scopes.ancestors(call):
        if isinstance(up, ast.stmt):
            break
        if isinstance(up, ast.Call) and up.func is below and isinstance(below, ast.Attribute):
            where = argument_at(up, "device", 0)
            dtype = where is None or (facts.names.resolve(where) or "").startswith("torch.")
            if below.attr in ("cuda", "type_as") or (below.attr == "to" and not dtype):
                return True
        below = up
    return False


def _moved_below(facts: Facts, f: ast.AST, call: ast.Call) -> set[str]:
    """The names that a function moves itself below a call, or there: where they are until then says nothing."""
    below = (c for c in walk(f, ast.Call) if c.lineno >= call.lineno and c is not call)
    moved = (facts.devices.moved(c) for c in below)
    return {m.id for m in moved if isinstance(m, ast.Name) and not facts.placed.by_runtime(m)}


def _is_itself(facts: Facts, node: ast.expr, name: str) -> bool:
    """Whether a tensor is the named one, as `Variable(x)` and `x.detach()` are: where that is says nothing."""
    while isinstance(node, ast.Call) and node.args and facts.names.resolve(node.func) == VARIABLE:
        node = node.args[0]
    return root(node) == name
