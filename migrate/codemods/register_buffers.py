"""T3: a tensor that a module keeps becomes a buffer, so that it moves with the module.

A buffer is in the state dict: a checkpoint from before does not have its key.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..facts.always_before import always_before
from ..facts.cast_networks import cast_beside
from ..facts.loaded_states import reads_states
from ..facts.nodes import children, walk
from ..facts.script import Facts
from ..facts.tensor_makers import is_open
from ..facts.tensor_methods import METHODS
from ..report import Note
from ._buffer_pairs import (
    is_parameter,
    keys,
    register,
    registered,
    registered_each,
    registered_parts,
    taken_of,
    tensors_of,
)
from ._given_tensors import counted_with, given, same_anywhere
from ._met_on_cpu import met_as_made, met_there
from ._one_memory import changed_beside, may_share
from ._own_weights import where_again
from ._tensor_holders import filled, holds
from .argument_rewrites import DropArgument, keep_arguments, set_keyword
from .back_on_cpu import brought
from .base import Change, Codemod
from .buffers_by_name import buffers_by_name
from .rewrites import take_branch, unwrap

# what a module has already: a buffer of such a name is refused (KeyError: attribute already exists)
TAKEN = set(
    """
    T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches eval
    extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half load_state_dict modules to
    named_buffers named_children named_modules named_parameters parameters register_buffer register_module
    register_parameter requires_grad_ share_memory state_dict to_empty train training type xpu zero_grad
""".split()
)
OF_TRAINER = set(
    """
    automatic_optimization backward current_epoch device dtype freeze global_rank global_step hparams local_rank log
    log_dict logger loggers optimizers print trainer unfreeze
""".split()
)
LEFT_BEHIND = "is a tensor that does not move with the module"
LEARNED = "asks for gradients: as an nn.Parameter it moves with it"
MOVED_BY_TRAINER = {"example_input_array"}


@dataclass
class _Class:
    """A module, the functions that make it, and every assignment to each of its attributes (None: not a plain one)."""

    node: ast.ClassDef
    ready: int  # the line of `super().__init__()`, before which nothing can be registered
    making: list[ast.AST]
    given: dict[str, list[ast.Assign | None]]
    changed: dict[str, str]  # attributes that are one memory, and the one that is changed in place


class RegisterBuffers(Codemod):
    code = "PTM105"
    name = "register-buffers"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        facts.buffers.clear()
        facts.buffered.clear()
        for c in facts.classes.modules:
            self._of_class(facts, c)
            init = facts.classes.methods(c).get("__init__")
            if init is None:
                continue
            of = _Class(c, _super_line(init), [], _assignments(facts, c), {})
            of.making = [init, *self._called_by_init(facts, of, init)]
            of.changed = changed_beside(facts, of.making)
            own: dict[str, list[ast.Assign]] = {}
            for s in (s for f in of.making for s in _own_statements(f)):
                target = _target(s)
                if target is not None:
                    own.setdefault(target.attr, []).append(s)  # type: ignore[arg-type]
                elif pair := self._pair(facts, of, s):
                    yield from pair
                else:
                    for says in filled(facts, s):
                        self._tell(facts, s, says)
            for name, statements in own.items():
                yield from self._attribute(facts, of, name, statements)
            names = TAKEN | (OF_TRAINER if c in facts.classes.run_by_trainer else set())
            plain = {*names, *of.given, *facts.classes.methods(c)}
            yield from buffers_by_name(self, facts, c, of.making, of.ready, plain, self._tell, self._placed)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _tell(self, facts: Facts, s: ast.AST, says: str) -> None:
        line, column, _, _ = facts.text.key(s)
        self.left.append(Note(line, column + 1, self.code, says))

    def _called_by_init(self, facts: Facts, of: _Class, init: ast.AST) -> Iterator[ast.AST]:
        """The methods that `__init__` calls, and nothing else of the class, once the module is made."""
        for name, f in facts.classes.methods(of.node).items():
            calls = [n for n in walk(init, ast.Call) if _is_self(n.func) and n.func.attr == name]  # type: ignore[attr-defined]
            statements = all(isinstance(facts.scopes.parents.get(n), ast.Expr) and n.lineno > of.ready for n in calls)
            alone = facts.classes.callers(of.node, name) == {"__init__"}
            if calls and statements and not f.decorator_list and alone and not _called_outside(facts, of.node, name):
                yield f

    def _pair(self, facts: Facts, of: _Class, s: ast.stmt) -> list[Change]:
        """`self.a, self.b = torch.ones(2), torch.zeros(2)`, where nothing else gives them a value."""
        made, several = tensors_of(facts, s), isinstance(s, ast.Assign) and len(s.targets) > 1
        apart = taken_of(facts, s)
        taken = TAKEN | (OF_TRAINER if of.node in facts.classes.run_by_trainer else set())
        if not made or s.lineno < of.ready or taken & set(made) or facts.tensors.registered(of.node) & set(made):
            return []
        if _by_type(facts, list(made.values())) is not None:
            return []
        for name, value in made.items():
            shares = may_share(facts, value) and value is not apart
            alone = of.given[name] == [None] and not name.startswith("__") and not shares
            alone = alone and _stays(facts, of.node, name) is None
            if not alone or name in of.changed or self._bound_elsewhere(facts, of.node, name):
                return []
        facts.buffers.update((of.node, name) for name in made)
        facts.buffered.update(walk(s))
        names = ", ".join(f'"{name}"' for name in made)
        persistent = not reads_states(facts)
        says = f"`self.register_buffer(...)` of {names}: they move with the module; {keys(persistent, True)}"
        rewrite = registered_each(persistent) if several else registered(set(made), persistent)
        if apart is not None and isinstance(s, ast.Assign):
            rewrite = registered_parts(facts, s, persistent)
        return [*self._placed(facts, s), Change(s, self.edit(facts, s, says), rewrite)]

    # -- one attribute ---------------------------------------------------------------------------------------

    def _attribute(self, facts: Facts, of: _Class, name: str, statements: list[ast.Assign]) -> Iterator[Change]:
        tensors = [s for s in statements if self._is_tensor(facts, of, s)]
        if name in facts.tensors.registered(of.node):
            return
        if not tensors:
            for s in statements:
                if s.value is not None and holds(facts, s.value):
                    says = f"`self.{name}` holds tensors that do not move with the module: register each as a buffer"
                    self._tell(facts, s, says)
                elif isinstance(s.value, ast.Name) and s.value.id in facts.tensors.learned:
                    if facts.tensors.made(s.value):
                        self._tell(facts, s, f"`self.{name}` {LEFT_BEHIND}")
                elif facts.tensors.is_leaf(s.value):
                    self._tell(facts, s, f"`self.{name}` {LEFT_BEHIND}, and {LEARNED}")
                elif isinstance(s.value, ast.IfExp) and any(map(facts.tensors.is_tensor, _branches(s.value))):
                    self._tell(facts, s, f"`self.{name}` may be a tensor that does not move with the module")
            return
        if name in MOVED_BY_TRAINER:
            return
        says = f"`self.{name}` {LEFT_BEHIND}, and "
        if name in TAKEN or (name in OF_TRAINER and of.node in facts.classes.run_by_trainer):
            self._tell(facts, tensors[0], says + "has a name that every module has")
            return
        later = [s.value for s in of.given[name] if s is not None and s not in statements]
        open_ = [v for v in later if isinstance(v, ast.Call) and is_open(facts, v)]
        again = {call: where_again(facts, of.node, name, call) for call in open_}
        why = self._unfit(facts, of, name, statements, tensors)
        if why is not None or None in again.values():
            self._tell(facts, tensors[0], says + (why or "is None at times"))
            return
        facts.buffers.add((of.node, name))
        for call, where in again.items():
            assert where is not None
            says = f"`{facts.short(call)}` is made where the buffer is: `device={where}`"
            yield Change(call, self.edit(facts, call, says), set_keyword("device", where))
        for s in (s for s in statements if not is_parameter(facts, s.value)):
            facts.buffered.update(walk(s))
            if self._only_moves(facts, s):
                says = f"`{facts.short(s)}` removed: a buffer is placed with its module"
                yield Change(s, self.edit(facts, s, says), None, (s,))
                continue
            yield from self._placed(facts, s)
            if not any(always_before(facts, t, s) for t in statements if t is not s):  # then it is a buffer already
                persistent = not reads_states(facts)
                says = f'`self.register_buffer("{name}", ...)`: it moves with the module; {keys(persistent)}'
                yield Change(s, self.edit(facts, s, says), _registered(name, may_share(facts, s.value), persistent))

    def _unfit(
        self, facts: Facts, of: _Class, name: str, statements: list[ast.Assign], tensors: list[ast.Assign]
    ) -> str | None:
        """Why a buffer does not take every value that the attribute is given; None where it does."""
        others = "is given other values too"
        for s in of.given[name]:
            if s is not None and is_parameter(facts, s.value):
                continue  # it takes the buffer's place
            if s is None or (s not in tensors and not self._keeps_tensor(facts, s.value, name)):
                return others
        if name in facts.tensors.learned:
            return LEARNED
        if name in of.changed:
            return f"shares its memory with others, of which `self.{of.changed[name]}` is changed in place"
        if name.startswith("__"):
            return "has a name that Python changes"
        if (there := _stays(facts, of.node, name)) is not None:
            return f"meets `{facts.short(there)}` on the CPU, where it stays"
        if any(s.lineno < of.ready for s in statements if s in walk(of.making[0])):
            return "is made before `super().__init__()`"
        if self._bound_elsewhere(facts, of.node, name):
            return others
        return _by_type(facts, [s.value for s in tensors])

    def _is_tensor(self, facts: Facts, of: _Class, s: ast.Assign) -> bool:
        value = s.value
        if isinstance(value, ast.IfExp):
            branches = [b for b in (value.body, value.orelse) if not _is_none(b)]
            if branches and all(facts.tensors.is_tensor(b) for b in branches):
                return True
        if facts.tensors.is_tensor(value):
            return True
        if given(facts, value) is None:
            return False
        target = _target(s)
        return target is not None and counted_with(facts, of.node, target.attr)  # `self.w = w.cuda()`

    def _keeps_tensor(self, facts: Facts, value: ast.expr | None, name: str) -> bool:
        """A value that a buffer takes: None, a tensor made here, or one computed from itself."""
        if _is_none(value) or facts.tensors.is_tensor(value):
            return True
        if isinstance(value, ast.IfExp):
            return self._keeps_tensor(facts, value.body, name) and self._keeps_tensor(facts, value.orelse, name)
        if isinstance(value, ast.BinOp):
            return any(n.attr == name for n in walk(value, ast.Attribute))
        if isinstance(value, (ast.Attribute, ast.Subscript)):
            return isinstance(value, ast.Attribute) and value.attr == name
        if not isinstance(value, ast.Call):
            return False
        if facts.devices.moved(value) is not None:
            return True
        f = next((u for u in facts.scopes.ancestors(value) if isinstance(u, ast.FunctionDef)), None)
        if f is not None and f.name == "_apply":
            return len(value.args) == 1 and self._keeps_tensor(facts, value.args[0], name)
        chained = isinstance(value.func, ast.Attribute) and value.func.attr in METHODS
        return chained and self._keeps_tensor(facts, value.func.value, name)  # type: ignore[attr-defined]

    def _bound_elsewhere(self, facts: Facts, c: ast.ClassDef, name: str) -> bool:
        """Whether the class body, a class above or below it, or other code binds the name."""
        kin = [d for d in facts.walk(ast.ClassDef) if d is c or _derives(facts, d, c) or _derives(facts, c, d)]
        for d in kin:
            stored = {t.id for s in d.body for t in getattr(s, "targets", ()) if isinstance(t, ast.Name)}
            if name in stored or name in facts.classes.methods(d) or (d is not c and name in _assignments(facts, d)):
                return True
        for n in facts.stores_of(name):
            if _is_self(n):
                continue
            up = facts.scopes.parents.get(n)
            plain = isinstance(up, ast.Assign) and self._keeps_tensor(facts, up.value, name)
            if not plain and not isinstance(up, ast.AugAssign):
                return True
        return False

    # -- edits -----------------------------------------------------------------------------------------------

    def _only_moves(self, facts: Facts, s: ast.Assign) -> bool:
        """`self.sigma = self.sigma.cuda()`"""
        call = s.value
        made = facts.devices.moved(call) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or made is None or len(s.targets) > 1:
            return False
        to = isinstance(call.func, ast.Attribute) and call.func.attr == "to"
        plain = not to or len(facts.devices.device_arguments(call)) == len(call.args) + len(call.keywords)
        return plain and ast.unparse(made) == ast.unparse(s.targets[0])

    def _placed(self, facts: Facts, s: ast.AST) -> Iterator[Change]:
        """Where its parts are made is no matter for a buffer: it is placed with its module."""
        gone: set[ast.AST] = set()
        for choice in walk(s, ast.IfExp):
            if same_anywhere(facts, choice):
                first = isinstance(choice.body, ast.Name)
                side, other = ("body", choice.orelse) if first else ("orelse", choice.body)
                gone |= {*walk(other), *walk(choice.test)}
                says = f"`{facts.short(choice)}`: a buffer is placed with its module"
                yield Change(choice, self.edit(facts, choice, says), take_branch(side), (choice.test, other))
        for call in list(walk(s, ast.Call)):
            if call in gone or facts.is_fixed(call):
                continue
            arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
            if facts.devices.moved(call) is not None:
                to = isinstance(call.func, ast.Attribute) and call.func.attr == "to"
                where = facts.devices.device_arguments(call) if to else arguments
                kept = [i for i, a in enumerate(arguments) if a not in where]
                says = f"`{facts.short(call)}`: a buffer is placed with its module"
                yield Change(call, self.edit(facts, call, says), keep_arguments(kept) if kept else unwrap, tuple(where))
                continue
            given = [k for k in call.keywords if k.arg == "device" and facts.devices.is_device(k.value)]
            if given and facts.tensors.made(call) and not facts.devices.is_host(given[0].value):
                says = f"`{facts.short(given[0])}`: a buffer is placed with its module"
                drop = DropArgument(arguments.index(given[0]))
                yield Change(call, self.edit(facts, call, says), drop, (given[0],))

    def _of_class(self, facts: Facts, c: ast.ClassDef) -> None:
        """`mask = torch.ones(3)` in the class body, read as `self.mask`."""
        read = {n.attr for n in walk(c, ast.Attribute) if _is_self(n)}
        for s in c.body:
            names = [t.id for t in s.targets if isinstance(t, ast.Name)] if isinstance(s, ast.Assign) else []
            if read & set(names) and facts.tensors.is_tensor(s.value):  # type: ignore[attr-defined]
                self._tell(facts, s, f"`{names[0]}` of the class is a tensor that does not move with the module")


def _assignments(facts: Facts, c: ast.ClassDef) -> dict[str, list[ast.Assign | None]]:
    given: dict[str, list[ast.Assign | None]] = {}
    for n in walk(c, ast.Attribute):
        if not isinstance(n.ctx, ast.Load) and _is_self(n):
            up = facts.scopes.parents.get(n)
            if isinstance(up, ast.AugAssign):
                continue  # a tensor stays one
            plain = isinstance(up, ast.stmt) and _target(up) is n
            given.setdefault(n.attr, []).append(up if plain else None)  # type: ignore[arg-type]
    return given


def _called_outside(facts: Facts, c: ast.ClassDef, name: str) -> bool:
    """Whether other code may call a method of a module: `net.reset(n)`, which would register on the CPU again."""
    called = {call.func for call in facts.calls_of(name)}
    for receiver in (a.value for a in facts.attributes.get(name, ()) if a in called):
        if isinstance(receiver, ast.Call) or (isinstance(receiver, ast.Name) and receiver.id == "self"):
            continue
        of = facts.devices.own_movers.class_of(receiver)
        if of is None or of is c or _derives(facts, of, c):
            return True
    return any(f".{name}(" in other.text for other in facts.others)


def _stays(facts: Facts, c: ast.ClassDef, name: str) -> ast.expr | None:
    return met_there(facts, c, name, brought) or met_as_made(facts, c, name)


def _target(s: ast.stmt) -> ast.Attribute | None:
    """The attribute of self that a statement gives one value, and nothing else."""
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    return target if isinstance(target, ast.Attribute) and _is_self(target) else None


def _derives(facts: Facts, c: ast.ClassDef, base: ast.ClassDef, depth: int = 0) -> bool:
    names = {b.id for b in c.bases if isinstance(b, ast.Name)}
    if base.name in names:
        return True
    return depth < 5 and any(_derives(facts, d, base, depth + 1) for d in facts.walk(ast.ClassDef) if d.name in names)


def _super_line(init: ast.AST) -> int:
    """Buffers can be registered after `super().__init__()` only."""
    found = [n.func for n in walk(init, ast.Call)]
    return min((f.lineno for f in found if isinstance(f, ast.Attribute) and f.attr == "__init__"), default=10**9)


def _by_type(facts: Facts, made: list[ast.expr]) -> str | None:
    """Why buffers of these values would be of another type than they are."""
    call = next((call for value in made if (call := cast_beside(facts, value))), "")
    return f"keeps its type where `{call}` changes that of buffers" if call else None


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _branches(value: ast.expr) -> list[ast.expr]:
    return [*_branches(value.body), *_branches(value.orelse)] if isinstance(value, ast.IfExp) else [value]


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _own_statements(function: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a function at any depth, not those of functions in it."""
    for child in children(function):
        if isinstance(child, ast.stmt) and not isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            yield child
            yield from _own_statements(child)


def _registered(name: str, shares: bool, persistent: bool) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        value = cst.Call(cst.Attribute(updated.value, cst.Name("contiguous"))) if shares else updated.value
        return register(name, value, persistent).with_changes(semicolon=updated.semicolon)

    return rewrite
