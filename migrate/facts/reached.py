"""Which statements are reached in a world: a plain script, or one rank of a launched one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .world import World
    from .worlds import Worlds

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
EXITS = {"sys.exit", "os._exit", "exit", "quit"}


class Reached:
    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds
        self.facts = worlds.facts
        self._exits: dict[tuple[ast.stmt, World], bool] = {}
        self._live: dict[tuple[ast.AST, World], bool] = {}

    def live(self, node: ast.AST, world: World) -> bool:
        """Whether a node may be reached: no condition around it, and no way out before it, says otherwise."""
        key = (node, world)
        if key not in self._live:
            up = self.facts.scopes.parents.get(node)
            if up is None:
                return True
            if not self._comes_to(node, up, world):
                self._live[key] = False
            else:
                self._live[key] = isinstance(up, FUNCTIONS) or self.live(up, world)
        return self._live[key]

    def _comes_to(self, child: ast.AST, up: ast.AST, world: World) -> bool:
        """Whether what holds a node lets it be reached."""
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test:
            test = self.worlds.value(up.test, world)
            in_body = child is up.body if isinstance(up, ast.IfExp) else child in up.body
            if test is not None and test.asked and bool(test.value) is not in_body:
                return False
        if not isinstance(child, ast.stmt):
            return True
        for field in ("body", "orelse", "finalbody"):
            block = getattr(up, field, None)
            if isinstance(block, list) and child in block:
                return not any(self.exits(s, world) for s in block[: block.index(child)])
        return True

    def exits(self, s: ast.stmt, world: World) -> bool:
        """Whether nothing after a statement is reached, because of a question about processes or a plain return."""
        key = (s, world)
        if key not in self._exits:
            self._exits[key] = False
            self._exits[key] = self._does_exit(s, world)
        return self._exits[key]

    def _does_exit(self, s: ast.stmt, world: World) -> bool:
        if isinstance(s, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            return True
        if isinstance(s, ast.With):
            return self.block_exits(s.body, world)
        if not isinstance(s, ast.If):
            return False
        test = self.worlds.value(s.test, world)
        if test is not None and test.asked:
            taken = s.body if test.value else s.orelse
            return self.block_exits(taken, world) and not self.refuses(taken)
        return bool(s.orelse) and self.block_exits(s.body, world) and self.block_exits(s.orelse, world)

    def block_exits(self, block: list[ast.stmt], world: World) -> bool:
        return any(self.exits(s, world) for s in block)

    def refuses(self, block: list[ast.stmt]) -> bool:
        """A way out that ends the script, by whichever branch: it wants several processes, or none of them."""
        last = block[-1] if block else None
        if isinstance(last, ast.Raise):
            return True
        if isinstance(last, ast.If):
            return self.refuses(last.body) and self.refuses(last.orelse)
        call = last.value if isinstance(last, ast.Expr) else None
        if not isinstance(call, ast.Call):
            return False
        name = call.func.id if isinstance(call.func, ast.Name) else None
        return (self.facts.names.resolve(call.func) or name) in EXITS
