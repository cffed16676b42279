"""T1: a device goes with its last use: the variable, the branch that chose it, the parameter and its arguments.

What something else still reads stays, and is told of. A choice that the user can make on the command line is kept where
the Trainer gets it; an option that nothing reads any more leaves the parser.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from ..facts.arguments import argument, default_of, given_to
from ..facts.choice import accelerator, names_read
from ..facts.device_words import is_index
from ..facts.devices import AVAILABILITY
from ..facts.effects import only_asks
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.world import PLAIN
from ..report import Note
from ._without_target import without_target
from .argument_rewrites import DropArgument, ended_as
from .base import Change, Codemod
from .tensor_types import kind_of
from .unread_attributes import attributes_still_read, calls_of_class, unread_attributes
from .unread_options import options_still_read, unread_options


class RemoveUnusedDevices(Codemod):
    code = "PTM102"
    name = "remove-unused-devices"

    def plan(self, facts: Facts, done: Iterable[Change] = ()) -> Iterator[Change]:
        """What is left without a reader once the changes already planned are made."""
        self.left: list[Note] = []
        done = list(done)
        again = {n for change in done for n in change.reads}
        gone = {n for change in done for part in change.gone for n in walk(part)} - again
        if not gone:
            return
        found = True
        while found:
            found = False
            for change in [
                *self._names(facts, gone),
                *unread_options(self, facts, gone),
                *unread_attributes(self, facts, gone),
                *self._parameters(facts, gone),
                *self._functions(facts, gone),
                *self._branches(facts, gone),
            ]:
                again.update(change.reads)
                for part in change.gone:
                    gone.update(n for n in walk(part) if n not in again)
                found = True
                yield change
        self.left += self._read_still(facts, gone)
        self.left += attributes_still_read(self, facts, gone)
        self.left += options_still_read(self, facts, gone)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _read_still(self, facts: Facts, gone: set[ast.AST]) -> Iterator[Note]:
        """Devices that lost a reader, and have another."""
        lost = _names_in(gone)
        for scope in facts.scopes.by_node.values():
            for name, stores in scope.stores.items():
                if name not in lost:
                    continue
                reads = list(facts.scopes.reads(name, scope))
                if not any(r in gone for r in reads):
                    continue
                remaining = [r for r in reads if r not in gone]
                values = facts.devices.assigned(name, scope)
                if not remaining or not values or not all(facts.devices.is_device(v) for v in values):
                    continue
                left = next((r for r in remaining if facts.loops.hot(r) is None), remaining[0])  # which no step takes
                line, column, _, _ = facts.text.key(stores[0])
                yield Note(line, column + 1, self.code, f"`{name}` stays: line {left.lineno} reads it")

    def _names(self, facts: Facts, gone: set[ast.AST]) -> Iterator[Change]:
        asked, lost = _names_of_trainer(facts), _names_in(gone)
        for scope in facts.scopes.by_node.values():
            if scope.is_class or (scope is facts.scopes.module and (facts.is_library or facts.named_by_text)):
                continue
            for name, stores in scope.stores.items():
                if name not in lost:
                    continue
                statements = [facts.scopes.parents.get(s) for s in stores]
                live = [s for s in statements if s not in gone]
                if not live or not all(isinstance(s, ast.Assign) for s in statements):
                    continue
                reads = list(facts.scopes.reads(name, scope))
                if name in asked or not any(r in gone for r in reads) or not all(r in gone for r in reads):
                    continue
                values = facts.devices.assigned(name, scope)
                if name in scope.params or not values or not all(self._goes(facts, name, v) for v in values):
                    continue
                if scope is facts.scopes.module and facts.is_taken_beside(name):
                    continue
                for statement in live:
                    assert isinstance(statement, ast.Assign)
                    if len(statement.targets) == 1:
                        yield without_target(self, facts, statement, gone)

    def _goes(self, facts: Facts, name: str, value: ast.expr) -> bool:
        """A number under the name of a device (`gpu = 0`) says no more than which."""
        known = facts.worlds.value(value, PLAIN) if facts.by_hand else None
        if known is not None and known.asked and only_asks(facts.names, value):
            return True  # a rank or a world, which only removed lines read
        number = isinstance(value, ast.Constant) and is_index(value)
        of_tensors = kind_of(facts, value) is not None  # a type that removed casts read
        return (number and is_index(ast.Name(name))) or of_tensors or self._only_chooses(facts, value)

    def _only_chooses(self, facts: Facts, value: ast.expr, depth: int = 0) -> bool:
        """A device, a condition about devices without any other effect, or the numbers of several (`device_ids`)."""
        if _is_list_of_numbers(value):
            return True
        if facts.devices.is_device(value) or (is_index(value) and not isinstance(value, ast.Constant)):
            return True
        if isinstance(value, ast.Attribute) and value.attr == "device":  # next(model.parameters()).device
            return _only_looks(value.value)
        asks = False
        for node in walk(value):
            if isinstance(node, ast.Call):
                if facts.names.resolve(node.func) not in AVAILABILITY | {"torch.device"}:
                    return False
                asks = True
            elif isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield)):
                return False
            elif isinstance(node, ast.Name) and depth < 3 and not asks:  # on_cpu = not use_cuda
                scope = facts.scopes.scope_of(node).lookup(node.id)
                values = facts.devices.assigned(node.id, scope) if scope and node.id not in scope.params else None
                asks = bool(values) and all(self._only_chooses(facts, v, depth + 1) for v in values or ())
        return asks

    def _parameters(self, facts: Facts, gone: set[ast.AST]) -> Iterator[Change]:
        asked, lost = _names_of_trainer(facts), _names_in(gone)
        for node, scope in facts.scopes.by_node.items():
            if not isinstance(node, ast.FunctionDef) or node in gone:
                continue
            for name, arg in scope.params.items():
                if name not in lost:
                    continue
                reads = list(facts.scopes.reads(name, scope))
                if name in asked or arg in gone or name in scope.stores or not any(r in gone for r in reads):
                    continue
                left = [r for r in reads if r not in gone]
                if all(self._handed_on(facts, r, node) for r in left):
                    yield from self._parameter(facts, node, scope, arg)

    def _handed_on(self, facts: Facts, read: ast.Name, f: ast.FunctionDef) -> bool:
        """Whether a parameter is read only for the function's own call of itself: `to_device(x, device)` in it."""
        up = facts.scopes.parents.get(read)
        call = facts.scopes.parents.get(up) if isinstance(up, ast.keyword) else up
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == f.name):
            return False
        return call in facts.devices.uses_of_function(f) and argument(call, f, read.id) is read

    def _parameter(self, facts: Facts, f: ast.FunctionDef, scope: Scope, arg: ast.arg) -> Iterator[Change]:
        if facts.scopes.parents.get(f) is facts.tree and (facts.is_library or facts.is_taken_beside(f.name)):
            return
        number = any(facts.devices.is_number(r) for r in facts.scopes.reads(arg.arg, scope))
        if arg in (f.args.vararg, f.args.kwarg):
            return
        where = number or facts.devices._all_values_are_devices(arg.arg, scope)
        if where or self._is_flag(facts, scope, arg.arg):
            yield from parameter_changes(
                self, facts, f, arg, f"nothing in it reads {'a device' if where else 'it'} any more"
            )

    def _is_flag(self, facts: Facts, scope: Scope, name: str) -> bool:
        """Whether a parameter is only ever given a condition that has no effect: `use_cuda=not args.no_cuda`."""
        given = facts.devices.given(scope, name)
        return bool(given) and all(only_asks(facts.names, v) for v in given or ())

    def _functions(self, facts: Facts, gone: set[ast.AST]) -> Iterator[Change]:
        """`get_device()`, whose every call is gone."""
        for f in facts.walk(ast.FunctionDef):
            if f in gone or facts.is_library or facts.scopes.parents.get(f) is not facts.tree:
                continue
            uses = facts.devices.uses_of_function(f)
            unread = uses and all(u in gone for u in uses) and facts.devices.returns_device(f)
            if unread and all(only_asks(facts.names, s) for s in f.body) and not facts.is_taken_beside(f.name):
                yield Change(f, self.edit(facts, f, f"{f.name}() removed: nothing calls it any more"), None, (f,))

    def _branches(self, facts: Facts, gone: set[ast.AST]) -> Iterator[Change]:
        """An `if` or a `for` whose statements are all gone goes too, when what it asks has no effect."""
        for loop in facts.walk(ast.For):
            if loop in gone or loop.orelse or not all(s in gone for s in loop.body) or not _only_looks(loop.iter):
                continue
            names = {n.id for n in walk(loop.target, ast.Name)}
            inside = set(walk(loop))
            home = facts.scopes.scope_of(loop)
            if not any(r not in inside for n in names for r in facts.scopes.reads(n, home.lookup(n) or home)):
                says = f"`for {facts.short(loop.target)} in {facts.short(loop.iter)}:` removed: nothing is left in it"
                yield Change(loop, self.edit(facts, loop, says), None, (loop,))
        blocks: list[ast.With | ast.Try] = [*facts.walk(ast.With), *facts.walk(ast.Try)]
        for block in blocks:
            if block not in gone and _is_empty(facts, block.body, gone) and _only_wraps(facts, block, gone):
                says = f"`{_opening(facts, block)}:` removed: nothing is left in it"
                yield Change(block, self.edit(facts, block, says), None, (block,))
        for node in facts.walk(ast.If):
            if node in gone or not _is_empty(facts, [*node.body, *node.orelse], gone):
                continue
            if only_asks(facts.names, node.test):
                parent = facts.scopes.parents.get(node)
                if isinstance(parent, ast.If) and parent.orelse == [node]:
                    continue  # an elif: it goes with its if or not at all
                says = f"`if {facts.short(node.test)}:` removed: nothing is left in it"
                yield Change(node, self.edit(facts, node, says), None, (node,))


def _names_in(gone: set[ast.AST]) -> set[str]:
    """The names that are read in what goes: no other one loses a reader."""
    return {n.id for n in gone if isinstance(n, ast.Name)}


def _names_of_trainer(facts: Facts) -> set[str]:
    """What the Trainer's `accelerator=` is going to read."""
    chosen = accelerator(facts) if facts.lifting else None
    return names_read(chosen) if chosen is not None else set()


def _is_empty(facts: Facts, block: list[ast.stmt], gone: set[ast.AST]) -> bool:
    """Whether what stood there is gone, in branches there too; a `pass` beside it is nothing."""
    nothing = all(_is_nothing(facts, s, gone) for s in block)
    return nothing and any(n in gone for s in block for n in walk(s))


def _is_nothing(facts: Facts, s: ast.stmt, gone: set[ast.AST]) -> bool:
    if isinstance(s, ast.If) and s not in gone:
        return only_asks(facts.names, s.test) and all(_is_nothing(facts, x, gone) for x in (*s.body, *s.orelse))
    return s in gone or isinstance(s, ast.Pass)


def _only_wraps(facts: Facts, block: ast.With | ast.Try, gone: set[ast.AST]) -> bool:
    """`with torch.cuda.device(0):`, and a `try` that is ready for what its body raised, do nothing by themselves."""
    if isinstance(block, ast.With):
        opened = [i.context_expr for i in block.items if i.optional_vars is None]
        names = [facts.names.resolve(c.func) for c in opened if isinstance(c, ast.Call)]
        return len(names) == len(block.items) and all(n in ("torch.cuda.device", "torch.no_grad") for n in names)
    return not block.orelse and not block.finalbody


def _opening(facts: Facts, block: ast.With | ast.Try) -> str:
    return "try" if isinstance(block, ast.Try) else f"with {facts.short(block.items[0].context_expr)}"


def _is_list_of_numbers(value: ast.expr) -> bool:
    """`[int(i) for i in args.gpus.split(",")]`, `list(range(n))`, `[0, 1]`: cards by their numbers."""
    if isinstance(value, ast.Call):
        made = ast.unparse(value.func)
        return (
            made in ("list", "range")
            and len(value.args) == 1
            and (made == "range" or _is_list_of_numbers(value.args[0]))
        )
    if isinstance(value, (ast.List, ast.Tuple)):
        return bool(value.elts) and all(isinstance(e, ast.Constant) and type(e.value) is int for e in value.elts)
    if not isinstance(value, ast.ListComp) or len(value.generators) > 1:
        return False
    source = value.generators[0].iter
    cut = isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr == "split"
    return cut and ast.unparse(value.elt) == f"int({ast.unparse(value.generators[0].target)})"


def _only_looks(node: ast.expr) -> bool:
    """Whether going through it has no effect: what a dictionary or a module holds."""
    calls = [n for n in walk(node, ast.Call) if not _is_next(n)]
    looks = ("items", "values", "keys", "parameters", "children", "modules", "buffers")
    return all(isinstance(c.func, ast.Attribute) and c.func.attr in looks and not c.args for c in calls)


def _is_next(call: ast.Call) -> bool:
    """`next(model.parameters())` begins anew each time."""
    made = call.args[0] if call.args else None
    named = isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr
    return isinstance(call.func, ast.Name) and call.func.id == "next" and named in ("parameters", "buffers")


def _is_spread(call: ast.Call) -> bool:
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def parameter_changes(codemod: Codemod, facts: Facts, f: ast.FunctionDef, arg: ast.arg, why: str) -> list[Change]:
    """Take a parameter out of a function, and its argument out of every call; nothing where others may call it."""
    c = facts.classes.holder(f)
    makes = c is not None and f.name == "__init__"
    made = calls_of_class(facts, c) if makes and c is not None else None
    uses = made if made is not None else facts.devices.uses_of_function(f)
    calls = [u for u in uses if isinstance(u, ast.Call)]
    if len(calls) < len(uses) or not calls or any(_is_spread(call) for call in calls):
        return []
    default = default_of(f, arg.arg)
    reads = list(facts.scopes.reads(arg.arg, facts.scopes.by_node[f]))
    parts: list[ast.AST] = [arg, *([default] if default is not None else []), *reads]
    says = f"parameter `{arg.arg}` of {f.name}() removed: {why}"
    changes = [Change(f, codemod.edit(facts, arg, says), without_parameter(arg.arg), tuple(parts), head=True)]
    of = c.name if makes and c is not None else f.name
    for call in calls:
        value = argument(call, f, arg.arg, makes)
        if value is None:
            continue
        if facts.devices.effects.has(value):
            return []
        given = given_to(call)
        edit = codemod.edit(facts, value, f"argument `{arg.arg}` of {of}() removed")
        changes.append(Change(call, edit, DropArgument(given.index(value)), (value,)))
    return changes


def without_parameter(name: str) -> Any:
    """The function without a parameter; the last one that is left ends as the last one ended."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        p = updated.params
        groups: dict[str, Any] = {}
        for field in ("posonly_params", "params", "kwonly_params"):
            kept = [x for x in getattr(p, field) if x.name.value != name]
            if len(kept) < len(getattr(p, field)):
                groups[field] = kept
        if groups.get("kwonly_params") == [] and isinstance(p.star_arg, cst.ParamStar):
            groups["star_arg"] = cst.MaybeSentinel.DEFAULT
        if groups.get("posonly_params") == []:
            groups["posonly_ind"] = cst.MaybeSentinel.DEFAULT
        left = p.with_changes(**groups)
        before, last = _last_of(p), _last_of(left)
        if isinstance(before, cst.Param) and isinstance(last, cst.Param) and last is not before:
            left = left.deep_replace(last, ended_as(last, before, "whitespace_after_param"))
        elif isinstance(last, cst.ParamSlash):
            left = left.with_changes(posonly_ind=last.with_changes(comma=cst.MaybeSentinel.DEFAULT))
        return updated.with_changes(params=left)

    return rewrite


def _last_of(parameters: Any) -> Any:
    """The parameter, or the slash, that is written last; None where there is none."""
    import libcst as cst

    p = parameters
    written = [*p.posonly_params, p.posonly_ind, *p.params, p.star_arg, *p.kwonly_params, p.star_kwarg]
    return next((x for x in reversed(written) if isinstance(x, (cst.Param, cst.ParamSlash))), None)
