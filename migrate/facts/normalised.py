"""Whether batch norm may stand in what an expression makes or calls."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .arguments import argument_at, default_of
from .nodes import FUNCTIONS, walk

if TYPE_CHECKING:
    from .script import Facts

FACTORIES = ("torchvision.", "timm.", "torch.hub.")


class Normalised:
    """Follows an expression into the functions and classes of the file; what comes from elsewhere may have it."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.seen: set[ast.AST] = set()
        statements: list[ast.Import | ast.ImportFrom] = [*facts.walk(ast.Import), *facts.walk(ast.ImportFrom)]
        self.imported = {(a.asname or a.name).partition(".")[0] for s in statements for a in s.names}

    def may_have(self, node: ast.AST) -> bool:
        """May a batch norm run when this is called? True where nothing shows that none does."""
        self.seen = set()
        if _own(node) and not self._of_class(node):
            return True
        variables = [n for n in walk(node, ast.Name) if self._is_variable(n)]
        return self._has(node) or any(self._has(self._holder(n)) for n in variables)

    def anywhere(self) -> bool:
        return any(self._is_norm(n) for kind in (ast.Attribute, ast.Name) for n in self.facts.walk(kind))

    def _has(self, node: ast.AST) -> bool:
        if node in self.seen:
            return False
        self.seen.add(node)
        if node is self.facts.tree and self.facts.is_library:
            return True  # another file gives it
        return any(self._is(n) for n in walk(node))

    def _is(self, n: ast.AST) -> bool:
        if self._is_norm(n):
            return True
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
            definition = self._definition(n)
            return definition is not None and self._has(definition)
        if _own(n) and isinstance(n.ctx, ast.Load):  # type: ignore[attr-defined]
            return any(self._has(v) for v in self._of_class(n))
        return isinstance(n, ast.Call) and (self._keeps_statistics(n) or self._is_made_elsewhere(n))

    def _keeps_statistics(self, call: ast.Call) -> bool:
        """`nn.InstanceNorm2d(3, track_running_stats=True)` counts as batch norm does."""
        if not (self.facts.names.resolve(call.func) or "").startswith("torch.nn.InstanceNorm"):
            return False
        asked = argument_at(call, "track_running_stats", 4)
        return asked is not None and not (isinstance(asked, ast.Constant) and not asked.value)

    def _is_norm(self, n: ast.AST) -> bool:
        full = self.facts.names.resolve(n) if isinstance(n, (ast.Attribute, ast.Name)) else None
        return full is not None and full.startswith("torch.nn.") and "batchnorm" in full.lower().replace("_", "")

    def _is_made_elsewhere(self, call: ast.Call) -> bool:
        """A part that another file or package makes, or whatever a parameter stands for."""
        f = call.func
        full = self.facts.names.resolve(f)
        if full is not None:
            root, last = full.partition(".")[0], full.rpartition(".")[2]
            if full.startswith(FACTORIES):
                return True
            return root not in ("torch", *sys.stdlib_module_names) and (last[:1].isupper() or self._is_kept(call))
        if not isinstance(f, ast.Name):
            return False
        if f.id in self.imported:
            return f.id[:1].isupper() or self._is_kept(call)
        scope = self.facts.scopes.scope_of(f).lookup(f.id)
        given = scope is not None and f.id in scope.params and self._is_kept(call)
        return given and (self.anywhere() or not self._has_default(scope, f.id))

    def _has_default(self, scope: object, name: str) -> bool:
        args = getattr(getattr(scope, "node", None), "args", None)
        if args is None:
            return False
        places = [*args.posonlyargs, *args.args]
        with_default = {a.arg for a in places[len(places) - len(args.defaults) :]}
        return name in with_default | {a.arg for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d}

    def _is_plain(self, name: ast.Name) -> bool:
        """A parameter that is a flag, a number or a text where nothing else is given."""
        scope = self.facts.scopes.scope_of(name).lookup(name.id)
        given = default_of(scope.node, name.id) if scope is not None and name.id in scope.params else None  # type: ignore[arg-type]
        return isinstance(given, ast.Constant) and given.value is not None

    def _is_kept(self, call: ast.Call) -> bool:
        """Whether it makes something that a module keeps."""
        s = next((u for u in self.facts.scopes.ancestors(call) if isinstance(u, ast.stmt)), None)
        return isinstance(s, ast.Assign) and any(_own(n) for n in walk(s)) and _stores_own(s)

    def _definition(self, name: ast.Name) -> ast.AST | None:
        """The class or function of the file, or the only value, that a name stands for."""
        scope = self.facts.scopes.scope_of(name).lookup(name.id)
        stores = scope.stores.get(name.id, ()) if scope is not None else ()
        for s in stores:
            if isinstance(s, (*FUNCTIONS, ast.ClassDef)):
                return s
            up = self.facts.scopes.parents.get(s)
            if isinstance(up, ast.Assign) and len(stores) == 1:
                return up.value
        return None

    def _of_class(self, attribute: ast.AST) -> list[ast.AST]:
        """What `self.name` may be: the method, or the values that its class assigns; [] where none is seen."""
        name = _own(attribute)
        c = next((u for u in self.facts.scopes.ancestors(attribute) if isinstance(u, ast.ClassDef)), None)
        return list(self._values(c, name)) if c is not None else []

    def _values(self, c: ast.ClassDef, name: str) -> Iterator[ast.AST]:
        for n in walk(c):
            if isinstance(n, FUNCTIONS) and n.name == name:
                yield n
            elif isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None:
                for target in n.targets if isinstance(n, ast.Assign) else [n.target]:
                    value = _part(target, n.value, name)
                    is_given = isinstance(value, ast.Name) and self._definition(value) is None
                    if value is not None and not (isinstance(value, ast.Name) and self._is_plain(value)):
                        yield self.facts.tree if is_given else value
            elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "add_module":
                yield from (n.args[1] for key in n.args[:1] if len(n.args) == 2 and _is_text(key, name))

    def _is_variable(self, name: ast.Name) -> bool:
        """The variable of a loop, a parameter: it may stand for anything that there is."""
        known = name.id in ("self", "cls") or self._definition(name) is not None or name.id in self.imported
        return not known and self.facts.scopes.scope_of(name).lookup(name.id) is not None

    def _holder(self, node: ast.AST) -> ast.AST:
        """The class around a node, or the file."""
        around = (u for u in self.facts.scopes.ancestors(node) if isinstance(u, ast.ClassDef))
        return next(around, self.facts.tree)


def _own(node: ast.AST) -> str:
    """`self.block` by its name; empty for anything else."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own else ""  # type: ignore[attr-defined]


def _part(target: ast.AST, value: ast.expr, name: str) -> ast.expr | None:
    """What `self.name` gets of `self.name = value`, or of `self.other, self.name = a, value`."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        return value if _own(target) == name else None
    at = next((i for i, t in enumerate(target.elts) if any(_own(n) == name for n in walk(t))), None)
    if at is None:
        return None
    alike = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
    starred = any(isinstance(e, ast.Starred) for e in (*target.elts, *getattr(value, "elts", ())))
    return _part(target.elts[at], value.elts[at], name) if alike and not starred else value  # type: ignore[attr-defined]


def _is_text(node: ast.AST, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _stores_own(s: ast.Assign) -> bool:
    return any(_own(e) for t in s.targets for e in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t]))
