"""What holds a script's options: by one of the usual names, or because a parser gave it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from .arguments import argument
from .names import Names
from .scopes import Scopes

# `args.device` is an option, `x.device` is where a tensor is
OPTIONS = re.compile(
    r"(args?|opts?|options|flags|cfgs?|conf|config|hparams|params|settings|c|self|cls)\Z", re.IGNORECASE
)
PARSES = ("parse_args", "parse_known_args", "parse_intermixed_args")


class OptionHolders:
    def __init__(self, names: Names, scopes: Scopes) -> None:
        self.names, self.scopes = names, scopes

    def has(self, name: str) -> bool:
        return OPTIONS.match(name) is not None or name in self.parsed

    @cached_property
    def parsed(self) -> set[str]:
        """`hp = parser.parse_args()`, `main(hp)`: names and attributes that hold nothing else in this file."""
        given: list[ast.expr] = [c for name in PARSES for c in self.names.nodes.calls.get(name, ())]
        found: dict[str, set[ast.AST]] = {}
        for call in given:  # it grows
            for name, store in self._held(call):
                if store in found.setdefault(name, set()):
                    continue
                found[name].add(store)
                given += [c for c in self._read(name) if c not in given]
        return {name for name, stores in found.items() if self._only(name, stores, given)}

    def _held(self, value: ast.expr) -> Iterator[tuple[str, ast.AST]]:
        """The names that hold a value, each with what stores it there."""
        up = self.scopes.parents.get(value)
        if isinstance(up, ast.Subscript) and up.value is value:  # parse_known_args()[0]
            value, up = up, self.scopes.parents.get(up)
        if isinstance(up, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and up.value is value:
            for t in up.targets if isinstance(up, ast.Assign) else [up.target]:
                t = t.elts[0] if isinstance(t, ast.Tuple) and t.elts else t  # `hp, rest = parse_known_args()`
                if isinstance(t, (ast.Name, ast.Attribute)):
                    yield t.id if isinstance(t, ast.Name) else t.attr, t
        elif isinstance(up, ast.Call) and value in up.args and isinstance(up.func, ast.Name):
            home = self.scopes.scope_of(up.func).lookup(up.func.id)
            made = home.stores.get(up.func.id, ()) if home is not None else ()
            for f in made:
                names = [a.arg for a in (*f.args.posonlyargs, *f.args.args)] if isinstance(f, ast.FunctionDef) else []
                if up.args.index(value) < len(names):
                    yield names[up.args.index(value)], f

    def _read(self, name: str) -> list[ast.expr]:
        return [n for n in self.names.nodes.of(ast.Name) if n.id == name and isinstance(n.ctx, ast.Load)]

    def _only(self, name: str, stores: set[ast.AST], given: list[ast.expr]) -> bool:
        """Whether nothing else gives the name: no other store, and no parameter that may be something else."""
        for f in (f for f in stores if isinstance(f, ast.FunctionDef)):
            calls = self.names.nodes.calls.get(f.name, ())
            if any((value := argument(call, f, name)) is not None and value not in given for call in calls):
                return False
        for scope in self.scopes.by_node.values():
            if not stores.issuperset(scope.stores.get(name, ())):
                return False
            if name in scope.params and scope.node not in stores:
                return False
        return True
