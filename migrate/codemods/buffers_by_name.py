"""T3, where the name is a text: `setattr(self, f"mask_{i}", torch.ones(3))` becomes `self.register_buffer(...)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

from ..facts.loaded_states import reads_states
from ..facts.nodes import walk
from ..facts.script import Facts
from ._buffer_pairs import keys, left_out
from .base import Change, Codemod

Tell = Callable[[Facts, ast.AST, str], None]
Placed = Callable[[Facts, ast.AST], Iterator[Change]]


def buffers_by_name(
    codemod: Codemod,
    facts: Facts,
    c: ast.ClassDef,
    making: list[ast.AST],
    ready: int,
    plain: set[str],
    tell: Tell,
    placed: Placed,
) -> Iterator[Change]:
    """Tensors that the functions in `making` give a module by `setattr`; `plain` are the names it has otherwise.

    `ready` is the line of `super().__init__()`. What does not become a buffer goes to `tell`;
    `placed` takes the moves out of what does.
    """
    calls = [n for n in walk(c) if _sets(n)]
    for call in calls:
        assert isinstance(call, ast.Call)
        value = call.args[2]
        if not facts.tensors.is_tensor(value) or not any(call in walk(f) for f in making):
            continue
        name = _pattern(facts, call.args[1])
        says = f"`{facts.short(call)}` keeps a tensor that does not move with the module"
        others = [o for o in calls if o is not call and not facts.tensors.is_tensor(o.args[2])]  # type: ignore[attr-defined]
        if name is None or call.lineno < ready or not isinstance(facts.scopes.parents.get(call), ast.Expr):
            tell(facts, call, says)
        elif any(re.fullmatch(name, p) for p in plain) or any(_may_be(facts, name, o.args[1]) for o in others):  # type: ignore[attr-defined]
            tell(facts, call, says + ", and may be given other values too")
        else:
            to = f"self.register_buffer({facts.short(call.args[1])}, ...)"
            persistent = not reads_states(facts)
            edit = codemod.edit(facts, call, f"`{to}`: it moves with the module; {keys(persistent)}")
            facts.buffered.update(walk(call))
            yield from placed(facts, value)
            yield Change(call, edit, _registers(persistent), (call.func,))


def _sets(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr"):
        return False
    me = node.args[0] if len(node.args) == 3 and not node.keywords else None
    return isinstance(me, ast.Name) and me.id == "self"


def _pattern(facts: Facts, name: ast.expr) -> str | None:
    """What the names look like; None where one may not be that of a buffer, which has no dot."""
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        return re.escape(name.value) if name.value.isidentifier() else None
    if not isinstance(name, ast.JoinedStr):
        return None
    parts = []
    for v in name.values:
        if isinstance(v, ast.Constant) and "." not in str(v.value):
            parts.append(re.escape(str(v.value)))
        elif isinstance(v, ast.FormattedValue) and v.format_spec is None and _counts(facts, v.value):
            parts.append(r"\d+")
        else:
            return None
    return "".join(parts)


def _counts(facts: Facts, node: ast.expr) -> bool:
    """The variable of `for i in range(n)` or `for i, x in enumerate(xs)`."""
    scope = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    stores = scope.stores.get(node.id, []) if scope is not None and isinstance(node, ast.Name) else []
    return bool(stores) and all(_counted(facts, s) for s in stores)


def _counted(facts: Facts, store: ast.AST) -> bool:
    up = facts.scopes.parents.get(store)
    first = isinstance(up, ast.Tuple) and up.elts[0] is store
    loop = facts.scopes.parents.get(up) if first and up is not None else up
    over = loop.iter if isinstance(loop, ast.For) else None
    named = isinstance(over, ast.Call) and isinstance(over.func, ast.Name)
    return named and over.func.id == ("enumerate" if first else "range")  # type: ignore[union-attr]


def _may_be(facts: Facts, name: str, other: ast.expr) -> bool:
    """Whether another `setattr` may be of the same name."""
    found = _pattern(facts, other)
    return found is None or found == name or re.fullmatch(name, found.replace(r"\d+", "0")) is not None


def _registers(persistent: bool) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        register = cst.Attribute(cst.Name("self"), cst.Name("register_buffer"))
        own = [*updated.args[1:], *([] if persistent else [left_out()])]
        return updated.with_changes(func=register, args=own)

    return rewrite
