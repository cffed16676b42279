"""T3: attributes that are one place in memory: a module that moves gives each a tensor of its own.

`self.rows = self.flat.view(2, 5)`, `self.a = self.b = torch.ones(2)`: the same as long as neither is changed in place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.tensor_methods import VIEWS
from ._apart import is_own

OF_ONE = VIEWS | set(
    "view reshape squeeze unsqueeze t transpose permute detach flatten unflatten narrow select diagonal contiguous "
    "expand expand_as view_as swapaxes movedim cuda to float".split()
)
SPREADS = ("expand", "expand_as", "broadcast_to", "meshgrid", "broadcast_tensors")


def changed_beside(facts: Facts, making: list[ast.AST]) -> dict[str, str]:
    """The attributes that the functions in `making` give one memory, and which of them is changed in place later."""
    groups: dict[str, set[str]] = {}
    bases: dict[str, str] = {}
    for s in (n for f in making for n in walk(f, ast.Assign)):
        own = [t.attr for t in s.targets if is_own(t)]  # type: ignore[attr-defined]
        base = _base(s.value) or (f"line {s.lineno}" if len(own) > 1 else "")
        for name in own if base else ():
            bases[name] = bases.get(base.removeprefix("self."), base) if base.startswith("self.") else base
    for name, base in bases.items():
        groups.setdefault(base, {base.removeprefix("self.")} if base.startswith("self.") else set()).add(name)
    found: dict[str, str] = {}
    for group in groups.values():
        changed = next((n for n in sorted(group) if _is_changed(facts, n, making)), None) if len(group) > 1 else None
        found.update(dict.fromkeys(group, changed) if changed is not None else {})
    return found


def shares_memory(value: ast.expr | None) -> bool:
    """Whether several of its elements are one place in memory: load_state_dict refuses to write there."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("cuda", "to"):
        value = value.func.value
    f = value.func if isinstance(value, ast.Call) else None
    return isinstance(f, ast.Attribute) and f.attr in SPREADS


def may_share(facts: Facts, value: ast.expr | None) -> bool:
    """The same, of `x` and `x.to(device)` of `x, y = torch.meshgrid(rows, columns)` too."""
    of = facts.devices.moved(value) if isinstance(value, ast.Call) else value
    scope = facts.scopes.scope_of(of).lookup(of.id) if isinstance(of, ast.Name) else None
    stores = scope.stores[of.id] if scope is not None and isinstance(of, ast.Name) else []
    pairs = (facts.scopes.parents.get(s) for s in stores)
    wholes = (facts.scopes.parents.get(p) for p in pairs if isinstance(p, (ast.Tuple, ast.List)))
    return shares_memory(value) or any(isinstance(s, ast.Assign) and shares_memory(s.value) for s in wholes)


def _base(value: ast.expr) -> str | None:
    """The name or attribute of self that a value is, or is a view of."""
    while True:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in OF_ONE:
            value = value.func.value
        elif isinstance(value, ast.Subscript) or (isinstance(value, ast.Attribute) and value.attr in VIEWS):
            value = value.value
        else:
            return ast.unparse(value) if isinstance(value, ast.Name) or is_own(value) else None


def _is_changed(facts: Facts, name: str, making: Iterable[ast.AST]) -> bool:
    """Whether something changes what an attribute of that name holds, once it is made: `x.a += 1`, `x.a.zero_()`."""
    for a in facts.attributes.get(name, ()):
        if not any(up in making for up in facts.scopes.ancestors(a)) and _changes(facts, a):
            return True
    return False


def _changes(facts: Facts, a: ast.Attribute) -> bool:
    node: ast.AST = a
    up = facts.scopes.parents.get(node)
    while isinstance(up, (ast.Attribute, ast.Subscript, ast.Call)) and not (
        isinstance(up, ast.Call) and up.func is not node
    ):
        if isinstance(up, ast.Attribute) and up.attr.endswith("_") and not up.attr.endswith("__"):
            return True
        node, up = up, facts.scopes.parents.get(up)
    if isinstance(up, ast.AugAssign):
        return node is up.target
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return True
    if isinstance(up, ast.Call):  # nn.init.normal_(x.a)
        return ast.unparse(up.func).endswith("_")
    return isinstance(up, ast.keyword) and up.arg == "out"
