"""Which names of a step a statement reads, and which it gives or changes: `losses["ce"] = ...`, `mask.fill_(1)`.

What a nested function, a lambda or a comprehension has for itself is not of the step. An attribute of the module that
the step gives a value is a name of it, too: `self.z`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

from ..facts.batch_operations import SHUFFLES
from ..facts.batch_values import Flow
from ..facts.batch_views import one_each
from ..facts.nodes import walk
from ..facts.script import Facts
from .rank_guards import CHANGES

VIEWS = set("view reshape squeeze unsqueeze t transpose permute detach flatten narrow select diagonal get".split())
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Pass)


class StepNames:
    def __init__(self, facts: Facts, step: ast.FunctionDef) -> None:
        self.facts, self.scope = facts, facts.scopes.by_node[step]
        self.me = (step.args.posonlyargs + step.args.args)[0].arg
        self.kept = {name for s in step.body for n in walk(s) if (name := self._kept(n)) and not _is_read(n)}

    def reads(self, s: ast.AST, but: Collection[ast.AST] = ()) -> list[str]:
        """The names that a statement takes the values of, without those in nodes that are replaced."""
        found: list[str] = []
        augmented = _augmented(s)
        for n in walk(s):
            if n in but or not (_is_read(n) or n in augmented):
                continue
            if isinstance(n, ast.Name) and self._is_own(n):
                found.append(n.id)
            elif isinstance(n, ast.Attribute) and self._kept(n) in self.kept:
                found.append(self._kept(n))
        return found

    def binds(self, s: ast.stmt) -> set[str]:
        """The names that a statement gives another value."""
        found = {self._kept(n) for n in walk(s, ast.Attribute) if not _is_read(n)}
        found |= {n.id for n in walk(s, ast.Name) if not _is_read(n) and self._is_own(n)}
        for n in walk(s):
            if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and self.facts.scopes.scope_of(n) is self.scope:
                found.add(n.name)
            elif isinstance(n, ast.alias) and self.facts.scopes.scope_of(n) is self.scope:
                found.add((n.asname or n.name).partition(".")[0])
        return found - {""}

    def changes(self, s: ast.stmt) -> set[str]:
        """Those, and the names of what it changes in place."""
        found = self.binds(s)
        for n in walk(s):
            if isinstance(n, (ast.Subscript, ast.Attribute)) and not _is_read(n):
                found.add(self._root(n.value))
            elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and _changes(n.func.attr):
                found.add(self._root(n.func.value))
            elif isinstance(n, ast.Call) and n.args and self.facts.names.resolve(n.func) in SHUFFLES:
                found.add(self._root(n.args[0]))
        return found - {"", self.me}

    def every(self, block: list[ast.stmt]) -> set[str]:
        """The names that a block gives or changes."""
        return {name for s in block for name in self.changes(s)}

    def makes(self, s: ast.stmt) -> bool:
        """Whether a statement does nothing but give and change names, so that it can stand elsewhere."""
        if isinstance(s, ast.If):
            return all(self.makes(x) for x in (*s.body, *s.orelse))
        if isinstance(s, ast.Expr):
            func = s.value.func if isinstance(s.value, ast.Call) else None
            if func is not None and self.facts.names.resolve(func) in SHUFFLES:
                return True
            return isinstance(func, ast.Attribute) and _changes(func.attr) and bool(self._root(func.value))
        return isinstance(s, SIMPLE)

    def _is_own(self, n: ast.Name) -> bool:
        scopes = self.facts.scopes
        return n not in scopes.hidden and scopes.scope_of(n).lookup(n.id) is self.scope

    def _kept(self, n: ast.AST) -> str:
        """`self.z` by that name."""
        own = isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == self.me
        return f"{self.me}.{n.attr}" if own else ""  # type: ignore[attr-defined]

    def _root(self, e: ast.expr) -> str:
        """`losses` of `losses["ce"][0]`, `mask` of `mask.view(-1)`."""
        while not isinstance(e, ast.Name):
            if isinstance(e, (ast.Attribute, ast.Subscript)):
                e = e.value
            elif isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in VIEWS:
                e = e.func.value
            else:
                return ""
        return e.id if self._is_own(e) else ""


def _changes(method: str) -> bool:
    return method in CHANGES or (method.endswith("_") and not method.endswith("__"))


def _is_read(n: ast.AST) -> bool:
    return isinstance(getattr(n, "ctx", None), ast.Load)


def _augmented(s: ast.AST) -> set[ast.AST]:
    """The targets of `loss += x`, which are read, too."""
    return {n.target for n in walk(s, ast.AugAssign)}


def derived(names: StepNames, block: list[ast.stmt], flow: Flow) -> set[str]:
    """The names of a block that are given what mixes the samples, or what follows from that."""
    mixes, found = set(flow.mixes), set[str]()
    for s in block:
        if any(n in mixes for n in walk(s)) or not found.isdisjoint(names.reads(s)):
            found |= names.changes(s)
    return found


def ahead(
    names: StepNames, block: list[ast.stmt], flow: Flow, others: Collection[str], is_still: Callable[[ast.AST], bool]
) -> list[int]:
    """The statements that need what is not of the batch, and nothing that mixes: `if batch_idx == 0: self.show(x)`.

    They can come before the first of the block, as long as what they pass is still: it draws nothing.
    """
    mixed, found = derived(names, block, flow), list[int]()
    for i, s in enumerate(block[1:], 1):
        reads = set(names.reads(s))
        if reads.isdisjoint(others) or walk(s, ast.Return):
            continue
        passed = [x for j, x in enumerate(block[:i]) if j not in found]
        read_later = {name for x in (*passed, *block[i + 1 :]) for name in names.reads(x)}
        apart = reads.isdisjoint(mixed | names.every(passed)) and names.changes(s).isdisjoint(read_later)
        if apart and not any(n in flow.mixes for n in walk(s)) and all(is_still(n) for x in passed for n in walk(x)):
            found.append(i)
    return found


def joins(s: ast.stmt, listed: str) -> bool:
    """`torch.cat(listed)`"""
    given = (one_each(n.args[0]) for n in walk(s, ast.Call) if n.args)
    return any(isinstance(e, ast.Name) and e.id == listed for e in given)


def path_of(node: ast.expr) -> list[str]:
    """`self.net.features` as its parts; empty for what is no dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


def last_of(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
