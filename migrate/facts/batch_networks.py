"""The networks that a step calls, where the classes of the file show them: their forward may mix samples, too."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from .back_from_cpu import itself
from .classes import Function

if TYPE_CHECKING:
    from .script import Facts


class Networks:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def called(self, func: ast.expr) -> ast.ClassDef | None:
        """The class whose forward `model(x)`, `self.encoder(x)` or `model.forward(x)` runs, where that is one."""
        if isinstance(func, ast.Attribute) and func.attr == "forward":
            func = func.value
        c = self._of(func)
        return c if c is not None and "forward" in self.facts.classes.methods(c) else None

    def method(self, func: ast.expr) -> tuple[Function, ast.ClassDef] | None:
        """The method of its own that a network is asked for, with its class: `model.log_prob(x)`."""
        c = self._of(func.value) if isinstance(func, ast.Attribute) else None
        f = self.facts.classes.methods(c).get(func.attr) if c is not None else None  # type: ignore[attr-defined]
        return (f, c) if f is not None and c is not None else None

    def _of(self, func: ast.expr) -> ast.ClassDef | None:
        if isinstance(func, ast.Attribute):
            holder = self.facts.names.nodes.class_of(func)
            own = isinstance(func.value, ast.Name) and func.value.id == "self" and holder is not None
            return self._one(self._kept.get((holder, func.attr), [])) if own else None
        if not isinstance(func, ast.Name):
            return None
        scope = self.facts.scopes.scope_of(func).lookup(func.id)
        values = self.facts.devices.assigned(func.id, scope) if scope is not None else None
        return self._one(values or [])

    @cached_property
    def _kept(self) -> dict[tuple[ast.AST | None, str], list[ast.expr]]:
        """What `self.name` is given, by the class and the name."""
        found: dict[tuple[ast.AST | None, str], list[ast.expr]] = {}
        for s in self.facts.walk(ast.Assign):
            for t in s.targets:
                if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == "self":
                    holder = self.facts.names.nodes.class_of(s)
                    found.setdefault((holder, t.attr), []).append(s.value)
        return found

    def _one(self, values: list[ast.expr]) -> ast.ClassDef | None:
        found = {self._class(v) for v in values}
        return found.pop() if len(found) == 1 else None

    def _class(self, made: ast.expr) -> ast.ClassDef | None:
        """The class of the file that a call makes a module of."""
        made = itself(made)
        name = made.func.id if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else None
        own = [c for c in self.facts.classes.modules if c.name == name] if name is not None else []
        return own[0] if len(own) == 1 else None
