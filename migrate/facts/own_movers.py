"""Methods of a script's own classes that are called as those which move tensors: `def to(self, currency)`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property

from .names import Names
from .nodes import walk
from .scopes import Scope, Scopes

MOVERS = ("cuda", "xpu", "mps", "to")
# methods whose own work is to move what they get, or themselves
PLACING = (*MOVERS, "_apply", "transfer_batch_to_device")


class OwnMovers:
    """`assigned`: the values that plain assignments give a name of a scope."""

    def __init__(
        self,
        tree: ast.Module,
        names: Names,
        scopes: Scopes,
        assigned: Callable[[str, Scope], list[ast.expr] | None],
    ) -> None:
        self.tree, self.names, self.scopes, self.assigned = tree, names, scopes, assigned

    def holds(self, call: ast.Call) -> bool:
        """In a class's own `def to(self, device):`, which whoever places its objects calls, or a Trainer's hook."""
        for up in self.scopes.ancestors(call):
            if isinstance(up, ast.FunctionDef):
                return up.name in PLACING and isinstance(self.scopes.parents.get(up), ast.ClassDef)
        return False

    def has(self, f: ast.Attribute) -> bool:
        """Whether the receiver is of a class of this file that is no module and has such a method of its own."""
        if not self.movers:
            return False
        holder = self.class_of(f.value)
        if holder is None and isinstance(f.value, ast.Call) and self._has_before(f.value):
            return True
        return holder is not None and f.attr in self.movers.get(holder, ())

    def _has_before(self, call: ast.Call) -> bool:
        """`Money(1).to("eur").to("usd")`: what such a method gives is nothing that this can place."""
        return isinstance(call.func, ast.Attribute) and call.func.attr in MOVERS and self.has(call.func)

    @cached_property
    def movers(self) -> dict[ast.ClassDef, set[str]]:
        found = {}
        for c in self.scopes.by_node:
            if isinstance(c, ast.ClassDef) and not any(self.names.resolve(b) for b in c.bases) and len(c.bases) < 2:
                own = {s.name for s in c.body if isinstance(s, ast.FunctionDef)} & {"cuda", "to", "xpu", "mps"}
                if own:
                    found[c] = own
        return found

    def class_of(self, node: ast.expr, depth: int = 0) -> ast.ClassDef | None:
        """The class of this file that an expression makes an instance of, as far as it shows."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            home = self.scopes.scope_of(node.func).lookup(node.func.id)
            made = home.stores.get(node.func.id, []) if home is not None else []
            return made[0] if len(made) == 1 and isinstance(made[0], ast.ClassDef) else None
        if isinstance(node, ast.Name) and depth < 4:
            home = self.scopes.scope_of(node).lookup(node.id)
            if home is None:
                return None
            if node.id == "self" and node.id in home.params:
                up = self.scopes.parents.get(home.node)
                return up if isinstance(up, ast.ClassDef) else None
            said = home.params[node.id].annotation if node.id in home.params else None
            if said is not None:
                return self._class_named(said)
            kinds = {self.class_of(v, depth + 1) for v in self.assigned(node.id, home) or []}
            return kinds.pop() if len(kinds) == 1 else None
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self" and depth < 4:
            holder = next((up for up in self.scopes.ancestors(node) if isinstance(up, ast.ClassDef)), None)
            stores = (n for n in walk(holder) if isinstance(n, ast.Attribute) and n.attr == node.attr) if holder else ()
            given = [self.scopes.parents.get(n) for n in stores if not isinstance(n.ctx, ast.Load)]
            kinds = {self.class_of(s.value, depth + 1) if isinstance(s, ast.Assign) else None for s in given}
            return kinds.pop() if len(kinds) == 1 else None
        return None

    def _class_named(self, said: ast.expr) -> ast.ClassDef | None:
        """The class of this file that an annotation names."""
        name = said.value if isinstance(said, ast.Constant) else getattr(said, "id", None)
        return next((c for c in self.movers if c.name == name), None)


def is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
