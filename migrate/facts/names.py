"""Names resolved to where they come from: `t.nn.Linear` after `import torch as t` is `torch.nn.Linear`.

Only names that an import binds, or a plain alias of one (`nn = torch.nn`), are ever looked at; whatever else binds the
same name in a nearer scope (a parameter, a loop variable, a definition) hides it, by Python's own rules.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property

from .canonical import canonical
from .nodes import COMPREHENSIONS, FUNCTIONS, Nodes

# What binds a name: the full name that an import gives it, an expression that may be an alias, or None for all else.
Binding = str | ast.expr | None
Starred = Callable[[ast.ImportFrom], dict[str, str]]

# what `from torch.utils.data import *` gives, of what is ever asked for
STARS = {
    "torch.utils.data": "DataLoader Dataset IterableDataset TensorDataset ConcatDataset Subset random_split "
    "DistributedSampler Sampler RandomSampler SequentialSampler BatchSampler SubsetRandomSampler WeightedRandomSampler",
    "torch.utils.data.distributed": "DistributedSampler",
    "torch.nn.parallel": "DataParallel DistributedDataParallel data_parallel",
    "torch.autograd": "Variable Function",
    "torch.cuda.amp": "autocast GradScaler custom_fwd custom_bwd",
}

# and what one of the user's own modules gives by it, where nothing in the file binds the name
BY_ANY_STAR = {
    "torch": "torch",
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "dist": "torch.distributed",
    "np": "numpy",
}

_SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef, ast.Module, *COMPREHENSIONS)


class Names:
    """`resolve(node)` gives the full, canonical name of a Name or Attribute, or None for what no import gave."""

    def __init__(self, tree: ast.Module, nodes: Nodes | None = None, starred: Starred | None = None) -> None:
        """`starred`: what a star gives of a module of the user's own, where that is known."""
        self.tree = tree
        self._by_star = starred
        self._given = nodes
        self._simple: dict[str, str | None] = {}
        self._resolving: set[ast.AST] = set()
        self._known: dict[ast.AST, str | None] = {}
        self._stores: dict[str, list[tuple[ast.Name, ast.AST]]] = {}  # what binds a name anew, and in which scope

    @cached_property
    def nodes(self) -> Nodes:
        return self._given or Nodes(self.tree)

    def resolve(self, node: ast.AST) -> str | None:
        if node in self._known:
            return self._known[node]
        found = self._resolved(node)
        if not self._resolving:
            self._known[node] = found
        return found

    def _resolved(self, node: ast.AST) -> str | None:
        attributes: list[str] = []
        while node.__class__ is ast.Attribute:
            attributes.append(node.attr)
            node = node.value
        if node.__class__ is not ast.Name:
            return None
        base = self._resolve_name(node)
        if base is None or not attributes:
            return base
        attributes.append(base)
        return canonical(".".join(reversed(attributes)))

    # -- one name -----------------------------------------------------------------------------------------------

    def _resolve_name(self, node: ast.Name) -> str | None:
        bindings = self._bindings.get(node.id)
        if bindings is None:
            return None
        if node.id in self._simple:
            return self._simple[node.id]
        if all(scope is self.tree for scope, _ in bindings):
            self._simple[node.id] = None  # a name that is an alias of itself
            values = [value for _, value in bindings]
            result = self._agree(values)
            if result is None and (early := self._before_others(node, self.tree, values)) is not None:
                del self._simple[node.id]  # another read of it may come later
                return early
            self._simple[node.id] = result
            return result
        return self._resolve_in_scope(node, bindings)

    def _resolve_in_scope(self, node: ast.Name, bindings: list[tuple[ast.AST, Binding]]) -> str | None:
        if node in self._resolving:
            return None
        self._resolving.add(node)
        try:
            for scope in self._scopes_around(node):
                here = [value for where, value in bindings if where is scope]
                if here:
                    return self._agree(here) or self._before_others(node, scope, here)
            return None
        finally:
            self._resolving.discard(node)

    def _scopes_around(self, node: ast.AST) -> list[ast.AST]:
        """The scopes that a name is looked up in, nearest first."""
        found: list[ast.AST] = []
        child = node
        for up in self.nodes.ancestors(node):
            if isinstance(up, _SCOPES):
                outside = isinstance(up, (*FUNCTIONS, ast.ClassDef)) and not isinstance(child, ast.stmt)
                hidden = isinstance(up, ast.ClassDef) and any(isinstance(s, (*FUNCTIONS, ast.Lambda)) for s in found)
                if not outside and not hidden:
                    found.append(up)
            child = up
        return found

    def _agree(self, values: list[Binding]) -> str | None:
        """The one name that several bindings in a scope stand for; torch's where `except ImportError` has another."""
        names: list[str] = []
        aliased = False
        for value in values:
            if isinstance(value, ast.Constant) and value.value is None:
                continue
            aliased = aliased or isinstance(value, ast.expr)
            name = self.resolve(value) if isinstance(value, ast.expr) else value
            if name is None:
                return None
            names.append(name)
        if aliased and len(set(names)) > 1:
            return None  # a variable that is given one thing here and another there
        return next((n for n in names if n.startswith("torch.")), names[0] if names else None)

    def _before_others(self, node: ast.Name, scope: ast.AST, values: list[Binding]) -> str | None:
        """What an import gave, where a name is read above all else that binds it:

        from torch.utils import data
        loader = data.DataLoader(train_set)
        for i, data in enumerate(loader):
        """
        origins = {v for v in values if isinstance(v, str)}
        if node.id not in self._stores:
            of_name = (n for n in self.nodes.of(ast.Name) if n.id == node.id and n.ctx.__class__ is not ast.Load)
            self._stores[node.id] = [(n, self._declared(self._scope(n, n), n.id)) for n in of_name]
        stores = [n for n, where in self._stores[node.id] if where is scope]
        if len(origins) != 1 or not stores or len(stores) != len([v for v in values if not isinstance(v, str)]):
            return None
        around = self._around(node)
        if self._scope(node, node) is not scope or around is None:
            return None
        for store in stores:
            ups = set(self.nodes.ancestors(store))
            above = (store.lineno, store.col_offset) < (node.lineno, node.col_offset)
            if any(loop in ups for loop in around[1]) or (above and around[0] not in ups):
                return None
        return origins.pop()

    def _around(self, node: ast.AST) -> tuple[ast.stmt, list[ast.For | ast.AsyncFor | ast.While]] | None:
        """The statement that reads a name before it binds any, and the loops that come to it again."""
        child, statement = node, None
        loops: list[ast.For | ast.AsyncFor | ast.While] = []
        for up in self.nodes.ancestors(node):
            if isinstance(up, (ast.For, ast.AsyncFor, ast.While)) and child is not getattr(up, "iter", None):
                if statement is None and not isinstance(up, ast.While):
                    return None  # in its target
                loops.append(up)
            if statement is None and isinstance(up, ast.stmt):
                statement = up
            if isinstance(up, _SCOPES):
                break
            child = up
        return None if statement is None else (statement, loops)

    # -- all bindings of names that an import gives ---------------------------------------------------------------

    @cached_property
    def _bindings(self) -> dict[str, list[tuple[ast.AST, Binding]]]:
        made: dict[str, list[tuple[ast.AST, str | None, ast.stmt]]] = {}
        for node in self.nodes.of(ast.Import):
            scope = self._scope(node, node)
            for a in node.names:
                name = a.asname or a.name.partition(".")[0]
                full = a.name if a.asname else name
                made.setdefault(name, []).append((self._declared(scope, name), canonical(full), node))
        for node_from in self.nodes.of(ast.ImportFrom):
            scope = self._scope(node_from, node_from)
            own = self._by_star(node_from) if self._by_star is not None and node_from.names[0].name != "*" else {}
            for a in _starred(node_from) or node_from.names:
                known = bool(node_from.module) and not node_from.level
                origin = own.get(a.name) or (canonical(f"{node_from.module}.{a.name}") if known else None)
                name = a.asname or a.name
                made.setdefault(name, []).append((self._declared(scope, name), origin, node_from))
        stars = [s for s in self.nodes.of(ast.ImportFrom) if s.names[0].name == "*"]
        if self._by_star is not None:
            for star in reversed(stars):  # of two, the last one counts
                for name, full in self._by_star(star).items():
                    made.setdefault(name, [(self.tree, full, star)])
        for star in stars[:1]:
            for name, full in BY_ANY_STAR.items():
                made.setdefault(name, [(self.tree, full, star)])
        found: dict[str, list[tuple[ast.AST, Binding]]] = {
            name: [(scope, origin) for scope, origin, _ in self._last(name, imports)] for name, imports in made.items()
        }
        aliases = self._aliases(set(found))
        self._add_others(found, aliases)
        return found

    def _last(
        self, name: str, imports: list[tuple[ast.AST, str | None, ast.stmt]]
    ) -> list[tuple[ast.AST, str | None, ast.stmt]]:
        """Without those of another thing that an import below them hides, and that nothing reads before it."""
        left = imports
        for scope, origin, node in imports:
            hidden = [i for i in left if i[0] is scope and i[1] != origin and i[2].lineno < node.lineno]
            if not hidden or self.nodes.parents[node] is not scope:
                continue
            first = min(i[2].lineno for i in hidden)
            if any(n.id == name and first < n.lineno < node.lineno for n in self.nodes.of(ast.Name)):
                left = [i if i not in hidden else (scope, None, i[2]) for i in left]  # each has its own readers
            else:
                left = [i for i in left if i not in hidden]
        return left

    def _aliases(self, imported: set[str]) -> dict[ast.Name, ast.expr]:
        """Targets of `nn = torch.nn`, also of an alias of an alias, with the value."""
        plain = []
        for assign in self.nodes.of(ast.Assign):
            if len(assign.targets) == 1 and assign.targets[0].__class__ is ast.Name:
                root = assign.value
                while root.__class__ is ast.Attribute:
                    root = root.value
                if root.__class__ is ast.Name or root.__class__ is ast.Constant:
                    plain.append((assign.targets[0], root, assign.value))
        found: dict[ast.Name, ast.expr] = {}
        grew = True
        while grew:
            grew = False
            for target, root, value in plain:
                if target in found:
                    continue
                if isinstance(root, ast.Name) and root.id in imported:
                    grew = grew or target.id not in imported
                    imported.add(target.id)
                    found[target] = value
        for target, root, value in plain:
            if isinstance(root, ast.Constant) and root.value is None and target.id in imported:
                found[target] = value
        return found

    def _add_others(self, found: dict[str, list[tuple[ast.AST, Binding]]], aliases: dict[ast.Name, ast.expr]) -> None:
        """Everything else that binds one of these names."""
        wanted = set(found) | {target.id for target in aliases}

        def add(node: ast.AST, name: str, value: Binding) -> None:
            scope = self._declared(self._scope(node, node), name)
            found.setdefault(name, []).append((scope, value))

        for name in self.nodes.of(ast.Name):
            if name.id in wanted and name.ctx.__class__ is not ast.Load:
                add(name, name.id, aliases.get(name))
        for arg in self.nodes.of(ast.arg):
            if arg.arg in wanted:
                owner = self.nodes.parents[self.nodes.parents[arg]]
                found.setdefault(arg.arg, []).append((owner, None))
        for kind in (*FUNCTIONS, ast.ClassDef):
            for definition in self.nodes.of(kind):
                if definition.name in wanted:  # type: ignore[attr-defined]
                    add(definition, definition.name, None)  # type: ignore[attr-defined]
        for handler in self.nodes.of(ast.ExceptHandler):
            if handler.name in wanted:
                add(handler, handler.name, None)

    def _scope(self, node: ast.AST, child: ast.AST) -> ast.AST:
        for up in self.nodes.ancestors(node):
            inside = not isinstance(up, (*FUNCTIONS, ast.ClassDef)) or isinstance(child, ast.stmt)
            if isinstance(up, _SCOPES) and inside:
                return up
            child = up
        return self.tree

    def _declared(self, scope: ast.AST, name: str) -> ast.AST:
        """The scope that a binding goes to: `global` and `nonlocal` send it outward."""
        if self._outward and isinstance(scope, FUNCTIONS) and (scope, name) in self._outward:
            return self.tree
        return scope

    @cached_property
    def _outward(self) -> set[tuple[ast.AST, str]]:
        return {
            (self._scope(node, node), name)
            for kind in (ast.Global, ast.Nonlocal)
            for node in self.nodes.of(kind)
            for name in node.names  # type: ignore[attr-defined]
        }


def _starred(node: ast.ImportFrom) -> list[ast.alias]:
    """The names that a star gives, of a module that is known."""
    known = STARS.get(node.module or "", "") if not node.level and node.names[0].name == "*" else ""
    return [ast.alias(name) for name in known.split()]
