"""Copies of weights that a script keeps in a list or a dictionary, made before it trains: they go to the Module's
device when it does, as the script's own were where its model was.

    shadow = {n: p.clone() for n, p in net.named_parameters()}
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial

from ..facts.copies import before_training, by_constructor, copies_of_weights, last_name
from ..facts.handed_copies import copies_of_given, handed
from ..facts.other_files import found_there
from ..facts.scopes import Scope
from ..facts.script import Facts
from .chunks import Binder, Variable, Variables
from .kept_networks import made_values
from .own_device import OWN

MAKES = ("clone", "_like", "deepcopy")
Kept = ast.Name | ast.Attribute


def kept_weights(facts: Facts, binder: Binder, variables: Variables, unit: str) -> list[str]:
    """`for key, value in self.shadow.items(): self.shadow[key] = value.to(self.device)`, in a hook."""
    lines: list[str] = []
    for kept, is_list in _kept(facts):
        if isinstance(kept, ast.Name):
            home = facts.scopes.scope_of(kept).lookup(kept.id)
            own = _own_name(facts, binder, variables, kept.id, home)
            lines += _moved(own, is_list, unit) if own is not None else []
    for n in variables.constructor:
        if Variable("", n) not in variables.attributes:
            continue
        own = f"self.{variables.attributes[Variable('', n)]}"
        made = made_values(facts, n, binder.trunk_scope)
        for there, c in filter(None, (_class(facts, v) for v in made if len(made) == 1)):
            for kept, is_list in _kept(there, None if there is facts else partial(_made_early, facts, n)):
                if isinstance(kept, ast.Attribute) and c in there.scopes.ancestors(kept):
                    lines += _moved(f"{own}.{kept.attr}", is_list, unit)
        of_own = (h for _, name, home, h in kept_of_handed(facts) if name == n and home is binder.trunk_scope)
        for attribute, is_list in dict.fromkeys(of_own):
            lines += _moved(f"{own}.{attribute}", is_list, unit)
    return lines


def _made_early(facts: Facts, name: str, there: Facts, node: ast.AST) -> bool:
    """Whether it runs when the object is made, or when a method is called above the training: `ema.register()`."""
    if by_constructor(there, node):
        return True
    f = next((up for up in there.scopes.ancestors(node) if isinstance(up, ast.FunctionDef)), None)
    calls = facts.calls_of(f.name) if f is not None else []
    return any(getattr(c.func.value, "id", "") == name and before_training(facts, c) for c in calls)  # type: ignore[attr-defined]


def kept_of_handed(facts: Facts) -> Iterator[tuple[ast.Call, str, Scope, tuple[str, bool]]]:
    """The calls that hand weights to what keeps copies: the object's name and home, its attribute, whether a list."""
    for call, name in handed(facts):
        home = facts.scopes.scope_of(call).lookup(name)
        made = made_values(facts, name, home) if home is not None else []
        found = _class(facts, made[0]) if len(made) == 1 else None
        if home is None or found is None:
            continue
        for copied in copies_of_given(call, *found):
            held = holder_of(found[0], copied)
            if held is not None and isinstance(held[0], ast.Attribute):
                yield call, name, home, (held[0].attr, held[1])


def goes_along(lifted: str, kept: str) -> bool:
    """Whether the lifted text moves what has that name."""
    name = re.escape(kept.removeprefix("self."))
    return re.search(rf"\b{name}\[(key\] = value\.to\(|:\] = \[value\.to\(){re.escape(OWN)}\)", lifted) is not None


def _moved(own: str, is_list: bool, unit: str) -> list[str]:
    if is_list:
        return [f"{own}[:] = [value.to({OWN}) for value in {own}]"]
    return [f"for key, value in {own}.items():", f"{unit}{own}[key] = value.to({OWN})"]


def _kept(facts: Facts, early: Callable[[Facts, ast.AST], bool] | None = None) -> Iterator[tuple[Kept, bool]]:
    """The names and attributes of such lists and dictionaries, and whether they are lists; `early`: of what shows when
    they are made.
    """
    seen: set[str] = set()
    for copied in copies_of_weights(facts, early) if any(word in facts.text.text for word in MAKES) else ():
        held = holder_of(facts, copied)
        if held is None or ast.unparse(held[0]) in seen:
            continue
        seen.add(ast.unparse(held[0]))
        yield held


def holder_of(facts: Facts, copied: ast.expr) -> tuple[Kept, bool] | None:
    """What keeps a copy, or the comprehension that makes several, and whether that is a list."""
    s = facts.scopes.statement_of(copied)
    of_a_state = isinstance(copied, ast.Call) and last_name(copied.func) == "deepcopy"
    if isinstance(copied, (ast.ListComp, ast.DictComp)) or of_a_state:
        element = copied.value if isinstance(copied, ast.DictComp) else getattr(copied, "elt", None)
        target = s.targets[0] if isinstance(s, ast.Assign) and s.value is copied and len(s.targets) == 1 else None
        if not isinstance(target, (ast.Name, ast.Attribute)) or isinstance(element, (ast.IfExp, ast.Tuple)):
            return None
        return target, isinstance(copied, ast.ListComp)
    if isinstance(s, ast.Assign) and _is_of(s.value, copied) and isinstance(s.targets[0], ast.Subscript):
        held = s.targets[0].value
        return (held, False) if isinstance(held, Kept) and _begins_as(facts, held, (ast.Dict,)) else None
    call = s.value if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) else None
    if call is not None and isinstance(call.func, ast.Attribute) and any(_is_of(a, copied) for a in call.args):
        held = call.func.value
        return (held, True) if isinstance(held, Kept) and _begins_as(facts, held, (ast.List,)) else None
    return None


def _is_of(value: ast.expr, copied: ast.expr) -> bool:
    """`p.clone()`, `p.clone().detach()`"""
    while value is not copied and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value
    return value is copied


def _begins_as(facts: Facts, held: Kept, kinds: tuple[type[ast.expr], ...]) -> bool:
    """`shadow = {}`, `self.shadow = OrderedDict()`"""
    if isinstance(held, ast.Attribute):
        values = facts.devices.attribute_values.get(held.attr, [])
    else:
        home = facts.scopes.scope_of(held).lookup(held.id)
        values = (facts.devices.assigned(held.id, home) or []) if home is not None else []
    made = ("dict", "OrderedDict") if ast.Dict in kinds else ("list",)
    empty = [
        (isinstance(v, ast.Dict) and not v.keys)
        or (isinstance(v, ast.List) and not v.elts)
        or (isinstance(v, ast.Call) and not v.args and ast.unparse(v.func).rpartition(".")[2] in made)
        for v in values
    ]
    shown = all(not isinstance(v, (ast.Dict, ast.List)) or isinstance(v, kinds) for v in values)
    return bool(values) and all(empty) and shown


def _own_name(facts: Facts, binder: Binder, variables: Variables, name: str, home: Scope | None) -> str | None:
    """How the hook reads it: as the Module's own, or as the global that functions of the steps read."""
    if home is binder.trunk_scope and Variable("", name) in variables.attributes and name in variables.constructor:
        return f"self.{variables.attributes[Variable('', name)]}"
    read = home is facts.scopes.module and any(
        isinstance(up, ast.FunctionDef) and up is not binder.trunk_scope.node
        for r in facts.scopes.reads(name, home)
        for up in facts.scopes.ancestors(r)
    )
    return name if read else None


def _class(facts: Facts, made: ast.expr) -> tuple[Facts, ast.ClassDef] | None:
    """The class that a call makes an object of, in its file; none of a module, which takes along what it registers."""
    if not isinstance(made, ast.Call) or not isinstance(made.func, (ast.Name, ast.Attribute)):
        return None
    own = next((c for c in facts.walk(ast.ClassDef) if c.name == getattr(made.func, "id", "")), None)
    if own is not None:
        return facts, own
    found = found_there(facts, made.func) if facts.others else None
    return (found[1], found[2]) if found is not None and isinstance(found[2], ast.ClassDef) else None
