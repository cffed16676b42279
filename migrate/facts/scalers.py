"""Where a script keeps its gradient scalers: variables, attributes of one class, and parameters that are given one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import argument

if TYPE_CHECKING:
    from .scopes import Scope
    from .script import Facts

SCALER = {"torch.amp.GradScaler", "torch.cuda.amp.GradScaler"}


class Unfollowed(Exception):
    """A scaler goes somewhere where its uses are not seen."""


class Scalers:
    """`made`: the assignments, by the call; `is_one(node)`: is this expression a scaler? Raises Unfollowed."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.made: dict[ast.Call, ast.Assign] = {}
        self.conditions: list[ast.expr] = []  # under which there is one: `GradScaler() if use_amp else None`
        self.names: dict[Scope, set[str]] = {}
        self.attributes: dict[ast.ClassDef, set[str]] = {}
        self.parameters: list[tuple[ast.FunctionDef, str]] = []
        self.arguments: dict[ast.Call, list[tuple[ast.FunctionDef, ast.expr]]] = {}
        for call in facts.walk(ast.Call):
            if facts.names.resolve(call.func) in SCALER:
                self._keep(call)
        if self.made:
            self._follow()
        self.texts = {n for names in self.names.values() for n in names}
        self.texts |= {f"self.{n}" for names in self.attributes.values() for n in names}

    def is_one(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            home = self.facts.scopes.scope_of(node).lookup(node.id)
            return home is not None and node.id in self.names.get(home, ())
        c = self._class_of(node)
        return c is not None and node.attr in self.attributes.get(c, ())  # type: ignore[attr-defined]

    def asks(self, test: ast.expr) -> bool:
        """`scaler`, `scaler is not None`"""
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
            return self.is_one(test.left) and ast.unparse(test.comparators[0]) == "None"
        return self.is_one(test)

    def reads(self) -> list[ast.expr]:
        """Every place that reads one."""
        candidates: list[ast.Name | ast.Attribute] = [*self.facts.walk(ast.Name), *self.facts.walk(ast.Attribute)]
        return [n for n in candidates if isinstance(n.ctx, ast.Load) and self.is_one(n)]

    def _keep(self, call: ast.Call) -> None:
        up = self.facts.scopes.parents.get(call)
        if isinstance(up, ast.IfExp) and up.body is call and ast.unparse(up.orelse) == "None":
            self.conditions.append(up.test)
            up = self.facts.scopes.parents.get(up)
        if not (isinstance(up, ast.Assign) and len(up.targets) == 1):
            raise Unfollowed
        target = up.targets[0]
        self.made[call] = up
        c = self._class_of(target)
        if isinstance(target, ast.Name):
            scope = self.facts.scopes.scope_of(target).lookup(target.id)
            if scope is None or scope.is_class or len(scope.stores[target.id]) != 1:
                raise Unfollowed
            self.names.setdefault(scope, set()).add(target.id)
        elif c is not None and isinstance(target, ast.Attribute):
            others = [a for a in self.facts.attributes[target.attr] if a is not target]
            if any(self._class_of(a) is not c or not isinstance(a.ctx, ast.Load) for a in others):
                raise Unfollowed
            self.attributes.setdefault(c, set()).add(target.attr)
        else:
            raise Unfollowed

    def _class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class in which `self.x` stands."""
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"):
            return None
        return next((u for u in self.facts.scopes.ancestors(node) if isinstance(u, ast.ClassDef)), None)

    def _follow(self) -> None:
        """Into the functions of the file that are given a scaler at every call."""
        grew = True
        while grew:
            grew = False
            for f in self.facts.walk(ast.FunctionDef):
                scope = self.facts.scopes.by_node[f]
                for name in scope.params:
                    if name not in self.names.get(scope, ()) and self._is_given(f, scope, name):
                        self.names.setdefault(scope, set()).add(name)
                        self.parameters.append((f, name))
                        grew = True

    def _is_given(self, f: ast.FunctionDef, scope: Scope, name: str) -> bool:
        uses = self.facts.devices.uses_of_function(f)
        calls = [u for u in uses if isinstance(u, ast.Call)]
        if not calls or len(calls) < len(uses) or name in scope.stores or scope.params[name] in _gathering(f):
            return False
        values = [argument(c, f, name) for c in calls]
        if not all(v is not None and self.is_one(v) for v in values):
            return False
        for call, value in zip(calls, values, strict=True):
            assert value is not None
            self.arguments.setdefault(call, []).append((f, value))
        return True


def _gathering(f: ast.FunctionDef) -> tuple[ast.arg | None, ast.arg | None]:
    return f.args.vararg, f.args.kwarg
