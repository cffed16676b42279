"""Modules with a `module` of their own: `hasattr(net, "module")` holds for them though nothing wraps them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from functools import cached_property
from typing import TypeGuard

from .nodes import walk
from .script import Facts

# torch's AveragedModel and timm's ModelEma keep what they average there
OWN = re.compile(r"\bself\.module\s*(:[^=\n]+)?=[^=]|\bdef module\(|\b(AveragedModel|ModelEma\w*)\b")
WORDS = ("self.module", "def module(", "AveragedModel", "ModelEma")  # told in less time whether they are there
SOMETIMES = (ast.If, ast.IfExp, ast.Try)


class OwnWrapped:
    """`wrapped`: the calls of a file that wrap a model."""

    def __init__(self, facts: Facts, wrapped: list[ast.Call]) -> None:
        self.facts, self.wrapped = facts, wrapped

    def may_answer(self, test: ast.expr, name: str) -> bool:
        """Whether `hasattr(net, "module")` may be asked of a model with its own, which nothing may wrap."""
        return self._are_there and name not in self._always and any(self.is_asked(n) for n in walk(test))

    def is_asked(self, node: ast.AST, by: str = "hasattr", given: int = 2) -> TypeGuard[ast.Call]:
        """`hasattr(net, "module")`"""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == by):
            return False
        name = node.args[1] if len(node.args) == given else None
        return isinstance(name, ast.Constant) and name.value == "module"

    def asked_of(self, a: ast.Attribute) -> ast.expr | None:
        """The question above `net.module`, in a branch of it."""
        for up in self.facts.scopes.ancestors(a) if self._are_there else ():
            if isinstance(up, (ast.If, ast.IfExp)):
                asked = [n.args[0] for n in walk(up.test) if self.is_asked(n)]
                if any(ast.unparse(n) == ast.unparse(a.value) for n in asked):
                    return up.test
            if isinstance(up, ast.FunctionDef):
                return None
        return None

    def is_above(self, a: ast.Attribute) -> bool:
        """`net.module` above the statement that wraps the net, both in one scope and in no loop: the net's own."""
        if not (self._are_there and isinstance(a.value, ast.Name)):
            return False
        scopes, name = self.facts.scopes, a.value.id
        home = scopes.scope_of(a).lookup(name)
        if home is None or name in home.params or scopes.scope_of(a) is not home:
            return False
        stores = [s for s in home.stores.get(name, ()) if isinstance(s, ast.Name)]
        wrapping = [s for s in map(scopes.statement_of, stores) if any(c in walk(s) for c in self.wrapped)]
        around = set(scopes.ancestors(a))
        looped = any(isinstance(u, (ast.For, ast.While)) and u in around for s in wrapping for u in scopes.ancestors(s))
        made = any(s.lineno < a.lineno for s in stores)
        return made and not looped and bool(wrapping) and all(s.lineno > a.lineno for s in wrapping)

    def is_of_bare(self, a: ast.Attribute, wrappers: Collection[str]) -> bool:
        """`net.module` in the branch where `isinstance(net, DataParallel)` does not hold: the net's own."""
        child: ast.AST = a
        for up in self.facts.scopes.ancestors(a) if self._are_there else ():
            if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test:
                test = up.test if isinstance(up.test, ast.UnaryOp) and isinstance(up.test.op, ast.Not) else None
                negated, asked = test is not None, test.operand if test is not None else up.test
                first = child is up.body if isinstance(up, ast.IfExp) else child in up.body
                if first is negated and _asks_kind(self.facts, asked, a.value, wrappers):
                    return True
            child = up
        return False

    @cached_property
    def wraps_always(self) -> bool:
        return self._are_there and self.in_any_case

    @property
    def in_any_case(self) -> bool:
        """Whether a model is wrapped under no condition."""
        return bool(self._always or self.facts.given_wrapped)

    @cached_property
    def _are_there(self) -> bool:
        return _has_own(self.facts.text.text) or any(o.once(_has_own) for o in self.facts.others)

    @cached_property
    def _always(self) -> set[str]:
        """The names that get a wrapped model under no condition."""
        found = set()
        for call in self.wrapped:
            s = self.facts.scopes.statement_of(call)
            if isinstance(s, ast.Assign) and not any(
                isinstance(u, SOMETIMES) for u in self.facts.scopes.ancestors(call)
            ):
                found |= {getattr(t, "attr", getattr(t, "id", "")) for t in s.targets}
        return found


def _asks_kind(facts: Facts, asked: ast.expr, of: ast.expr, wrappers: Collection[str]) -> bool:
    """`isinstance(net, nn.DataParallel)`, of one of these or of several."""
    if not (isinstance(asked, ast.Call) and getattr(asked.func, "id", "") == "isinstance" and len(asked.args) == 2):
        return False
    kinds = asked.args[1].elts if isinstance(asked.args[1], ast.Tuple) else [asked.args[1]]
    return ast.unparse(asked.args[0]) == ast.unparse(of) and any(facts.names.resolve(k) in wrappers for k in kinds)


def _has_own(text: str) -> bool:
    return any(word in text for word in WORDS) and OWN.search(text) is not None
