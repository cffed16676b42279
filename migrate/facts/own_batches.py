"""Batches that are objects of a class of the script's own, made by a loader's `collate_fn`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from .names import Names
from .scopes import Scope, Scopes

LOADER = "torch.utils.data.DataLoader"
MOVERS = ("to", "cuda", "xpu", "mps")


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
        if isinstance(given, ast.Call):
            if self.names.resolve(given.func) == "functools.partial" and given.args:
                return self._collated(given.args[0], class_of, given_by)
            called = [s for s in getattr(class_of(given), "body", ()) if getattr(s, "name", "") == "__call__"]
            return given_by(called[0], 0) if called else None
        if isinstance(given, ast.Attribute):  # Batch.make
            return next(
                (c for c in self.names.nodes.of(ast.ClassDef) if c.name == getattr(given.value, "id", "")), None
            )
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
    return all(_moves(s) for s in method.body)


def _moves(s: ast.stmt) -> bool:
    if isinstance(s, ast.Expr):
        is_set = isinstance(s.value, ast.Call) and getattr(s.value.func, "id", "") == "setattr"
        return _is_moved(s.value.args[-1]) if is_set else isinstance(s.value, ast.Constant)  # type: ignore[attr-defined]
    if isinstance(s, ast.Return):
        made = isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Name)
        given = [*s.value.args, *(k.value for k in s.value.keywords)] if made else []  # type: ignore[union-attr]
        return all(map(_is_moved, given)) if made else s.value is None or isinstance(s.value, ast.Name)
    if isinstance(s, ast.Assign):
        return all(isinstance(t, (ast.Name, ast.Attribute, ast.Tuple)) for t in s.targets) and _is_moved(s.value)
    if isinstance(s, (ast.For, ast.If)):
        return all(map(_moves, [*s.body, *s.orelse]))
    return isinstance(s, ast.Pass)


def _is_moved(value: ast.expr) -> bool:
    """`self.x.to(device)`, and several of them; what is neither cast nor computed."""
    if isinstance(value, ast.Call):
        f, keywords = value.func, {k.arg for k in value.keywords}
        if isinstance(f, ast.Attribute):
            return (
                f.attr in MOVERS
                and len(value.args) < 2
                and keywords <= {"device", "non_blocking"}
                and _is_moved(f.value)
            )
        return getattr(f, "id", "") in ("list", "tuple", "dict") and all(map(_is_moved, value.args))
    if isinstance(value, (ast.Tuple, ast.List)):
        return all(map(_is_moved, value.elts))
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return _is_moved(value.elt)
    if isinstance(value, ast.IfExp):
        return _is_moved(value.body) and _is_moved(value.orelse)
    return _is_moved(value.value) if isinstance(value, ast.DictComp) else isinstance(value, (ast.Name, ast.Attribute))
