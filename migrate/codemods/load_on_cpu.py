"""T1: a state is loaded on the CPU, whatever device it was saved from: load_state_dict takes it from there.

`map_location="cuda:0"` fails on a machine without that card, and puts every process on the same one. Only where the
state goes to a `load_state_dict`; what else is loaded (a model, a tensor) keeps its place, and is told of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument_at
from ..facts.hosts import names_no_device
from ..facts.nodes import walk
from ..facts.script import Facts
from ..report import Note
from .argument_rewrites import change_call
from .base import Change, Codemod

PARAMETERS = ("f", "map_location", "pickle_module")


class LoadOnCpu(Codemod):
    code = "PTM109"
    name = "load-on-cpu"

    def plan(self, facts: Facts) -> Iterator[Change]:
        self.left: list[Note] = []
        for call in facts.called.get("torch.load", ()):
            if facts.in_formatted_string(call):
                continue
            if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
                continue
            where = argument_at(call, "map_location", 1)
            if where is not None and not self._names_accelerator(facts, where):
                continue
            # what such a script saves is on the CPU, and after a Trainer on its device
            nowhere = where is None and "backward" in facts.attributes and names_no_device(facts)
            if not nowhere and not self._is_state(facts, call):
                self._tell(facts, call, where)
                continue
            was = f"`map_location={facts.text.get(where)}`" if where is not None else f"`{facts.short(call)}`"
            why = "the script works with it there" if nowhere else "load_state_dict puts the state where its module is"
            says = f'{was} became `map_location="cpu"`: {why}'
            parts = () if where is None else (where,)
            change = change_call(PARAMETERS, set(), {"map_location": '"cpu"'})
            yield Change(call, self.edit(facts, call, says), change, parts)

    def notes(self, facts: Facts) -> Iterator[Note]:
        yield from self.left

    def _tell(self, facts: Facts, call: ast.Call, where: ast.expr | None) -> None:
        line, column, _, _ = facts.text.key(call)
        what = "the device it was saved from" if where is None else f"`{facts.short(where)}`"
        says = f"`{facts.short(call)}` is loaded onto {what}: no load_state_dict shows what it is"
        self.left.append(Note(line, column + 1, self.code, says))

    def _names_accelerator(self, facts: Facts, where: ast.expr) -> bool:
        """A device written down, or a rank's; not what asks the machine, as `device` often does."""
        if isinstance(where, ast.Dict):
            return any(v is not None and self._names_accelerator(facts, v) for v in where.values)
        if isinstance(where, ast.Name):
            scope = facts.scopes.scope_of(where).lookup(where.id)
            values = (facts.devices.assigned(where.id, scope) or []) if scope is not None else []
            return bool(values) and any(self._names_accelerator(facts, v) for v in values)
        if not facts.devices.is_device(where):
            return False
        text = ast.unparse(where)
        asks = bool(walk(where, ast.IfExp)) or "available" in text
        return not asks and ("cuda" in text or "xpu" in text)

    def _is_state(self, facts: Facts, call: ast.Call) -> bool:
        """Whether what is loaded goes to a load_state_dict, at once or by its name, or a part of it does."""
        if any(_loads_state(up) for up in facts.scopes.ancestors(call) if isinstance(up, ast.Call)):
            return True
        target = _given_to(facts, call)
        scope, found = facts.scopes.scope_of(target).lookup(target.id) if target is not None else None, False
        for read in facts.scopes.reads(target.id, scope) if target is not None and scope is not None else ():
            found = found or any(_loads_state(u) for u in facts.scopes.ancestors(read) if isinstance(u, ast.Call))
        return found


def _given_to(facts: Facts, call: ast.Call) -> ast.Name | None:
    """The name that is given what is loaded, or a part of it, by a choice too: `a = load(f) if x else load(g)["a"]`."""
    value: ast.expr = call
    up = facts.scopes.parents.get(call)
    while (isinstance(up, ast.Subscript) and up.value is value) or (isinstance(up, ast.IfExp) and up.test is not value):
        value, up = up, facts.scopes.parents.get(up)
    targets = up.targets if isinstance(up, ast.Assign) and len(up.targets) == 1 else []
    targets = [up.target] if isinstance(up, (ast.NamedExpr, ast.AnnAssign)) else targets
    return next((t for t in targets if isinstance(t, ast.Name)), None)


def _loads_state(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"
