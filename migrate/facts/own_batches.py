"""Batches that are objects of a class of the script's own, made by a loader's `collate_fn`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from .names import Names
from .nodes import walk
from .scopes import Scope, Scopes

LOADER = "torch.utils.data.DataLoader"
# what a method may call that only moves what an object holds
ASKING = (
    *("isinstance", "hasattr", "getattr", "setattr", "is_tensor", "vars", "items", "keys", "values", "enumerate"),
    *("zip", "list", "tuple", "dict", "append", "type", "pin_memory", "super"),
)


class OwnBatches:
    """`class_of`: that of which an expression makes an instance; `given_by`: that of all that a function returns."""

    def __init__(
        self,
        names: Names,
        scopes: Scopes,
        assigned: Callable[[str, Scope], list[ast.expr] | None],
        class_of: Callable[[ast.expr], ast.ClassDef | None],
        given_by: Callable[[ast.FunctionDef, int], ast.ClassDef | None],
    ) -> None:
        self.names, self.scopes, self.assigned = names, scopes, assigned
        given = [n.value for n in names.nodes.of(ast.keyword) if n.arg == "collate_fn"]
        made = {self._collated(value, class_of, given_by) for value in given}
        self.kind = made.pop() if len(made) == 1 else None  # of all loaders of the file

    def _collated(
        self,
        given: ast.expr,
        class_of: Callable[[ast.expr], ast.ClassDef | None],
        given_by: Callable[[ast.FunctionDef, int], ast.ClassDef | None],
    ) -> ast.ClassDef | None:
        if isinstance(given, ast.Lambda):
            return class_of(given.body)
        home = self.scopes.scope_of(given).lookup(given.id) if isinstance(given, ast.Name) else None
        made = home.stores.get(given.id, []) if home is not None and isinstance(given, ast.Name) else []
        if len(made) != 1 or not isinstance(made[0], (ast.ClassDef, ast.FunctionDef)):
            return None
        return made[0] if isinstance(made[0], ast.ClassDef) else given_by(made[0], 0)

    def has(self, node: ast.expr, method: str) -> bool:
        """Whether it may be such a batch, as a loader gives it, whose `method` does more than move what it holds."""
        own = [s for s in (self.kind.body if self.kind is not None else ()) if getattr(s, "name", "") == method]
        if not (len(own) == 1 and isinstance(own[0], ast.FunctionDef) and isinstance(node, ast.Name)):
            return False
        home = self.scopes.scope_of(node).lookup(node.id)
        drawn = [self._drawn(store) for store in home.stores.get(node.id, ())] if home is not None else []
        loaders = [given for given in drawn if given is not None]
        return bool(loaders) and all(map(self._may_be_loader, loaders)) and not only_moves(own[0])

    def _drawn(self, store: ast.AST) -> ast.expr | None:
        """What a loop goes through that gives the name: `for b in loader`, `for i, b in enumerate(loader)`."""
        up = self.scopes.parents.get(store)
        if isinstance(up, ast.For):
            return up.iter
        loop = self.scopes.parents.get(up) if isinstance(up, ast.Tuple) and up.elts[1:] == [store] else None
        counts = isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call)
        if not counts or getattr(loop.iter.func, "id", "") != "enumerate":  # type: ignore[union-attr]
            return None
        return loop.iter.args[0] if loop.iter.args else None  # type: ignore[union-attr]

    def _may_be_loader(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Call) and node.args and self.names.resolve(node.func) != LOADER:  # tqdm(loader)
            node = node.args[0]
        home = self.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
        made = self.assigned(node.id, home) if isinstance(node, ast.Name) and home is not None else None
        return all(isinstance(v, ast.Call) and self.names.resolve(v.func) == LOADER for v in made or ())


def only_moves(method: ast.FunctionDef) -> bool:
    """Whether it brings what its object holds to a device, and leaves it as it was."""
    funcs = [c.func for c in walk(method, ast.Call)]
    called = [f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in funcs]
    return all(n in ("to", "cuda", "xpu", "mps", *ASKING) for n in called) and not any(walk(method, ast.BinOp))
