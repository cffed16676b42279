"""What a function that moves to the module takes along with functools.partial: names that keep what they are."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts

LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
BRANCHES = (ast.If, ast.Try, ast.For, ast.AsyncFor, ast.While, ast.Match, ast.ExceptHandler, ast.match_case)
CELLS = {"super", "__class__"}  # what they mean stands with the class around
STEADY = (ast.Constant, ast.Name, ast.Attribute, ast.UnaryOp, ast.Tuple, ast.expr_context, ast.unaryop)


def unbindable(facts: Facts, scope: Scope, name: str, moved: ast.AST) -> str | None:
    """Why a name of the function around cannot be bound where `moved` stands."""
    if scope.is_class:
        return f"`{name}` is its class's own"
    stores = scope.stores.get(name, ())
    late = any(getattr(s, "lineno", 0) >= moved.lineno for s in stores)  # type: ignore[attr-defined]
    several = len(stores) + (name in scope.params) != 1 or any(_in_loop(facts, s) for s in stores)
    if several or late or _assigned_below(scope, name):
        return f"`{name}` may be another value by then"
    if stores and not _is_given_before(facts, stores[0], moved):
        return f"`{name}` may have no value yet where it stands"
    made = stores[0] if stores else None
    if isinstance(made, ast.ClassDef) or isinstance(facts.scopes.parents.get(made) if made else None, ast.Import):
        return f"`{name}` cannot be pickled itself"
    return None


def _in_loop(facts: Facts, node: ast.AST) -> bool:
    for up in facts.scopes.ancestors(node):
        if isinstance(up, LOOPS):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    return False


def _assigned_below(scope: Scope, name: str) -> bool:
    """Whether a function within says that it assigns the name of this one."""
    return any(name in s.nonlocals or (not s.binds(name) and _assigned_below(s, name)) for s in scope.children)


def _is_given_before(facts: Facts, store: ast.AST, moved: ast.AST) -> bool:
    """Whether what gives the name its value has run wherever `moved` is reached."""
    above, child = {*facts.scopes.ancestors(moved)}, store
    for up in facts.scopes.ancestors(store):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            break
        if isinstance(up, BRANCHES) and not (up in above and (child in above or _share_block(up, child, above))):
            return False
        child = up
    return True


def _share_block(up: ast.AST, child: ast.AST, above: set[ast.AST]) -> bool:
    """Whether a statement of a branch stands in the block of it that another one stands in."""
    if child in (getattr(up, "test", None), getattr(up, "pattern", None)):
        return True  # a walrus, a pattern's own name
    blocks = [getattr(up, field, None) for field in ("body", "orelse", "finalbody")]
    return any(isinstance(b, list) and child in b and not above.isdisjoint(b) for b in blocks)


def mangled(facts: Facts, moved: ast.AST) -> str | None:
    """A name such as `__scale` that it reads, which means `_Net__scale` in the class around."""
    if not any(isinstance(up, ast.ClassDef) for up in facts.scopes.ancestors(moved)):
        return None
    names = (getattr(n, "attr", None) or getattr(n, "id", None) or getattr(n, "arg", None) for n in walk(moved))
    return next((n for n in names if isinstance(n, str) and n.startswith("__") and not n.endswith("__")), None)


def unsteady(facts: Facts, parts: Iterable[ast.expr], line: int, kinds: tuple[type, ...] = STEADY) -> bool:
    """Whether defaults or annotations are another thing above a line of the module, where they are made once."""
    for part in parts:
        for n in walk(part):
            if not isinstance(n, kinds):
                return True
            if isinstance(n, ast.Attribute) and kinds is STEADY and facts.names.resolve(n) is None:
                return True
            if isinstance(n, ast.Name) and not _is_known_above(facts, n, line):
                return True
    return False


def _is_known_above(facts: Facts, n: ast.Name, line: int) -> bool:
    """Whether a name of the module has its only value above a line."""
    home = facts.scopes.scope_of(n).lookup(n.id)
    if home is None or facts.scopes.generator_of(n) is not None:
        return home is None and hasattr(builtins, n.id)
    given = home.stores[n.id]
    own = all(facts.scopes.scope_of(s) is home for s in given)
    return home is facts.scopes.module and own and all(getattr(s, "lineno", line) < line for s in given)
