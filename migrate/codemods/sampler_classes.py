"""T4: the class DistributedSampler as a value: a choice between classes, `functools.partial` of it, or handed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.annotated import Annotated
from ..facts.distribution import SAMPLER
from ..facts.script import Facts
from .argument_rewrites import change_call
from .base import Change, Codemod
from .restored_shuffle import asks_of_data
from .rewrites import take_branch
from .sampler_entries import WHY

ASKS = ("isinstance", "issubclass", "hasattr")


def class_changes(codemod: Codemod, facts: Facts, left: list[tuple[ast.AST, str]]) -> Iterator[Change]:
    """The changes where the class itself is chosen or bound; `left` is given what stays, and why."""
    for node in _classes(facts):
        up = facts.scopes.parents.get(node)
        if isinstance(up, ast.IfExp) and node is not up.test:
            field = "orelse" if node is up.body else "body"
            if not asks_of_data(up.test):
                says = f"`{facts.short(up)}`: the sampler of one process stays, {WHY}"
                yield Change(up, codemod.edit(facts, up, says), take_branch(field), (up.test, node))
                continue
        if isinstance(up, ast.Call) and facts.names.resolve(up.func) == "functools.partial" and up.args[:1] == [node]:
            given = {k.arg: getattr(k.value, "value", None) for k in up.keywords}
            if (given.get("num_replicas"), given.get("rank")) == (1, 0) and "rank" in given:
                continue
            if len(up.args) == 1:
                says = f"`{facts.short(up)}` is that of one process: {WHY}"
                left.append((up, "DistributedSampler kept: it draws every sample"))
                rewrite = change_call((), set(), {"num_replicas": "1", "rank": "0"})
                yield Change(up, codemod.edit(facts, up, says), rewrite)
                continue
        left.append((node, f"`{facts.short(node)}` is handed on: what it makes divides the samples"))


def _classes(facts: Facts) -> Iterator[ast.expr]:
    """Where the class is read for more than to make a sampler or to ask for one."""
    names = {a.asname or a.name for i in facts.walk(ast.ImportFrom) for a in i.names if a.name == "DistributedSampler"}
    found: list[ast.expr] = [n for n in facts.walk(ast.Name) if n.id in names and isinstance(n.ctx, ast.Load)]
    found += facts.attributes.get("DistributedSampler", [])
    for node in found:
        child, up = node, facts.scopes.parents.get(node)
        while isinstance(up, (ast.Tuple, ast.BinOp, ast.Subscript)):  # `A | B`, `Optional[A]`, `(A, B)`
            child, up = up, facts.scopes.parents.get(up)
        if isinstance(up, ast.Call) and (up.func is child or getattr(up.func, "id", "") in ASKS):
            continue
        plain = isinstance(up, ast.Assign) and len(up.targets) == 1 and isinstance(up.targets[0], ast.Name)
        known = plain and facts.names.resolve(up.targets[0]) == SAMPLER  # type: ignore[union-attr]
        other = ast.ClassDef | ast.arg | ast.AnnAssign | ast.FunctionDef | ast.Compare | ast.Attribute | ast.Expr
        annotates = isinstance(up, Annotated) and child is up.annotation
        if not known and not annotates and not isinstance(up, other) and facts.names.resolve(node) == SAMPLER:
            yield node
