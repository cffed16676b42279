"""What only one process reaches: under a rank guard, behind a way out for the others, or called from there only."""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import TYPE_CHECKING

from .nodes import walk
from .other_files import defined_there
from .runtime_names import runtime_name
from .spelled import spelled

if TYPE_CHECKING:
    from .script import Facts

# the words by which scripts ask whether they are the process that writes
RANK_GUARD = re.compile(r"rank|is_(global|local)_zero|master|is_main|main_process", re.IGNORECASE)
ALONE = re.compile(r"(rank_?(zero|0)|master|main_process)_?only|(only_)?on_(main|master|rank_?(zero|0))", re.IGNORECASE)
OURS = ("is_global_zero", "is_local_zero")
WAYS_OUT = (ast.Return, ast.Continue, ast.Raise, ast.Break)


class Alone:
    """Who comes where, through the calls of functions by their names: each name is looked at once a question."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def reached_by(self, node: ast.AST) -> set[bool]:
        """{True} where one process comes alone, {False} where all come, both where it depends on the caller."""
        found: set[bool] = set()
        seen: set[str] = set()
        open_nodes = [node]
        while open_nodes:
            holder = self._here(open_nodes.pop(), found)
            if holder is not None and holder.name not in seen:
                seen.add(holder.name)
                open_nodes += self._calls.get(holder.name, ())
                self._from_elsewhere(holder.name, found)
        return found or {False}

    def _here(self, node: ast.AST, found: set[bool]) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """Add what the node's own function says; the function itself where it says nothing, for its callers to say."""
        child = node
        for up in self.facts.scopes.ancestors(node):
            if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test and _asks(self.facts, up.test):
                found.add(True)
                return None
            for field in ("body", "orelse"):
                block = getattr(up, field, None)
                if (
                    isinstance(block, list)
                    and child in block
                    and any(self.lets_go(s) for s in block[: block.index(child)])
                ):
                    found.add(True)
                    return None
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if self.is_for_one(up):
                    found.add(True)
                    return None
                return up
            child = up
        found.add(False)
        return None

    def is_for_one(self, f: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """`@rank_zero_only`"""
        return any(ALONE.search(spelled(d)) for d in f.decorator_list)

    def lets_go(self, s: ast.stmt) -> bool:
        """`if rank != 0: return`"""
        if not isinstance(s, ast.If) or s.orelse or not isinstance(s.body[-1], WAYS_OUT):
            return False
        return _asks(self.facts, s.test)

    def is_called(self, name: str) -> bool:
        """Whether anything of that name is called in this file."""
        return name in self._calls

    def calls_of(self, name: str) -> list[ast.Call]:
        """The calls of what has a name in this file."""
        return self._calls.get(name, [])

    def _from_elsewhere(self, name: str, found: set[bool]) -> None:
        """What a library defines and what nobody calls here is called by other files, some of it on rank 0 alone."""
        guarded = name in self.facts.guarded_elsewhere
        if guarded:
            found.add(True)
        nobody = not guarded and (self.facts.is_library or name not in self._calls)
        if nobody or name in self.facts.called_elsewhere:
            found.add(False)

    @cached_property
    def _calls(self) -> dict[str, list[ast.Call]]:
        calls: dict[str, list[ast.Call]] = {}
        for call in self.facts.walk(ast.Call):
            last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
            if last is not None:
                calls.setdefault(last, []).append(call)
        return calls


def asks_for_rank_zero(facts: Facts, node: ast.AST) -> bool:
    """Whether a rank guard stands around a node, in its own function."""
    child = node
    for up in facts.scopes.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test and _asks(facts, up.test):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        child = up
    return False


def rank_zero_alone(facts: Facts, node: ast.AST) -> bool:
    """Whether a guard that is shown to let rank 0 through alone stands around a node, in its own function."""
    child = node
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.If) and child in up.body:
            tests = up.test.values if isinstance(up.test, ast.BoolOp) and isinstance(up.test.op, ast.And) else [up.test]
            if any(_is_rank_zero(facts, test) for test in tests):
                return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        child = up
    return False


def _is_rank_zero(facts: Facts, test: ast.expr) -> bool:
    if isinstance(test, ast.Call) and runtime_name(facts, test.func) in OURS:
        return True
    return facts.worlds.by_rank(test) is True


def _asks(facts: Facts, test: ast.expr) -> bool:
    text = spelled(test)
    always = {spelled(n) for n in walk(test) if always_true(facts, n)}
    for name in always:
        text = re.sub(rf"(?<![\w.]){re.escape(name)}\b(?!\()", "", text)
    if RANK_GUARD.search(text) is not None:
        return True
    names = facts.askers
    asked = (n for n in walk(test) if names and isinstance(n, (ast.Name, ast.Attribute)))
    return any(getattr(n, "attr", getattr(n, "id", None)) in names and spelled(n) not in always for n in asked)


def always_true(facts: Facts, node: ast.AST) -> bool:
    """Whether a guard is the function that should be called there: `if is_main_process:` lets every process through."""
    up = facts.scopes.parents.get(node)
    asked = isinstance(up, (ast.If, ast.IfExp, ast.BoolOp, ast.UnaryOp)) and node is getattr(up, "test", node)
    if not (asked and isinstance(node, (ast.Name, ast.Attribute)) and RANK_GUARD.search(spelled(node))):
        return False
    home = facts.scopes.scope_of(node).lookup(node.id) if isinstance(node, ast.Name) else None
    if home is not None and isinstance(node, ast.Name):
        stores = home.stores.get(node.id, []) if node.id not in home.params else []
        if not all(isinstance(s, ast.alias) for s in stores):
            return all(isinstance(s, ast.FunctionDef) for s in stores)
    there = defined_there(facts, node)
    return there is not None and there.holder is None


def askers_of(facts: Facts) -> frozenset[str]:
    """Functions and properties of any name that answer whether this is the one process: `return self.rank == 0`."""
    found = set()
    for f in facts.walk(ast.FunctionDef):
        last = f.body[-1]
        value = last.value if isinstance(last, ast.Return) else None
        if value is not None and RANK_GUARD.search(spelled(value)):
            inner = value.operand if isinstance(value, ast.UnaryOp) else value
            if _is_rank_zero(facts, inner) or facts.worlds.by_rank(value) is not None:
                found.add(f.name)
    return frozenset(found)
