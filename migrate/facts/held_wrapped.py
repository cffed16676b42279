"""Wrapped models that are parts of others, whose states have keys with `module.` within: `features.module.0.bias`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from .arguments import argument_at
from .wrapped import CONVERTERS, last_name

if TYPE_CHECKING:
    from .distribution import Distribution


class HeldWrapped:
    def __init__(self, found: Distribution) -> None:
        self.found, self.facts = found, found.facts

    @cached_property
    def held(self) -> dict[ast.Call, str]:
        """The wrappers that another module holds: what that is called, `Net()` for the objects of a class."""
        held = {}
        for call in self.found.wrapped:
            holder = self._holder(call) if self.found.full.get(call) not in CONVERTERS else None
            if holder is not None:
                held[call] = holder
        return held

    def states(self, method: str) -> Iterator[ast.Call]:
        """Calls of `state_dict` or `load_state_dict` of what holds a wrapped model."""
        for c in self.found.full if self.held else ():
            if isinstance(c.func, ast.Attribute) and c.func.attr == method and self._holds(c.func.value):
                yield c

    def keys(self) -> re.Pattern[str] | None:
        """What the names of those parameters look like."""
        if not self.held:
            return None
        targets = [self.facts.scopes.statement_of(c) for c in self.held]
        names = {
            t.attr for s in targets if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Attribute)
        }
        return re.compile(rf"(.*\.)?({'|'.join((*map(re.escape, sorted(names)), '[0-9]+'))})\.module\.[\w.]+\Z")

    def _holder(self, call: ast.Call) -> str | None:
        c = next((up for up in self.facts.scopes.ancestors(call) if isinstance(up, ast.ClassDef)), None)
        own = f"{c.name}()" if c is not None and c in self.facts.classes.modules else None
        s = self.facts.scopes.statement_of(call)
        target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
        root = target.value if isinstance(target, ast.Attribute) else None
        if own is not None and (self._is_self(root) or (isinstance(s, ast.Expr) and self._is_self(_first(s.value)))):
            return own
        if root is not None and ast.unparse(argument_at(call, "module", 0) or call) == ast.unparse(target or call):
            return last_name(root)  # `model.features = DataParallel(model.features)`
        up = next((u for u in self.facts.scopes.ancestors(call) if isinstance(u, ast.Call)), None)
        made = (
            up is not None and (self.found.full.get(up) or "").startswith("torch.nn.") and up not in self.found.wrapped
        )
        return last_name(target) if made and target is not None else None

    def _is_self(self, node: ast.expr | None) -> bool:
        return isinstance(node, ast.Name) and self.facts.classes.is_self(node)

    @cached_property
    def _names(self) -> set[str]:
        """What holds one, by all its names, through the modules that hold that again and the classes below them."""
        names: set[str] = set()
        new = set(self.held.values())
        while not new <= names:
            names = self.found.grown(names | new)
            new = {f"{c.name}()" for c in self.facts.classes.modules if self._takes(c, names)}
        return names

    def _takes(self, c: ast.ClassDef, names: set[str]) -> bool:
        if any(f"{last_name(b)}()" in names for b in c.bases):
            return True
        given = [s for s in self.facts.walk(ast.Assign) if c in self.facts.scopes.ancestors(s)]
        kept = [s for s in given if any(isinstance(t, ast.Attribute) and self._is_self(t.value) for t in s.targets)]
        return any(last_name(s.value) in names for s in kept)

    def _holds(self, node: ast.expr) -> bool:
        if self._is_self(node):
            c = next((up for up in self.facts.scopes.ancestors(node) if isinstance(up, ast.ClassDef)), None)
            return c is not None and f"{c.name}()" in self._names
        return last_name(node) in self._names


def _first(node: ast.expr) -> ast.expr:
    """The `self` of `self.layers.append(...)`."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node
