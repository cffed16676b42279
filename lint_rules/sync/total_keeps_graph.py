"""PTM311: a running total of losses that keeps the graph of every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.loops import TRAINS
from ptmigrate.migrate.facts.nodes import walk

from ..edits import appended
from ..file import File, last_part
from ..rule import Finding, Rule
from .where import where


class TotalKeepsGraph(Rule):
    code = "PTM311"
    name = "running-total-keeps-graph"
    why = (
        "A sum of losses that still have their graph holds the history of every step: memory grows until it is full. "
        "Add `loss.detach()`."
    )

    fix = "unsafe"
    BAD = (
        """
        import torch
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            total += loss
        """,
        """
        import torch
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            losses.append(loss)
        """,
    )
    GOOD = (
        """
        import torch
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            total += loss.detach()
            other += loss.item() * len(x)
            count += 1
        """,
        """
        import torch
        for batch in loader:
            total = 0
            for x, y in batch:
                loss = criterion(model(x), y)
                total += loss
            total.backward()
        """,
        """
        import torch
        for x, y in loader:
            losses = []
            for head in heads:
                loss = criterion(head(x), y)
                losses.append(loss)
            loss = sum(losses)
            loss.backward()
        """,
    )
    calls = ("append",)

    def check_augmented(self, node: ast.AugAssign, file: File) -> Iterator[Finding]:
        if isinstance(node.op, ast.Add):
            listed = isinstance(node.value, ast.List) and len(node.value.elts) == 1
            value = node.value.elts[0] if listed else node.value  # type: ignore[attr-defined]
            yield from self._kept(node.target, value, node, file)

    def check_assign(self, node: ast.Assign, file: File) -> Iterator[Finding]:
        """`total = total + loss`"""
        value, target = node.value, node.targets[0]
        if (
            isinstance(value, ast.BinOp)
            and isinstance(value.op, ast.Add)
            and isinstance(target, (ast.Name, ast.Attribute))
        ):
            sides = {ast.dump(value.left): value.right, ast.dump(value.right): value.left}
            stored = ast.dump(target).replace("Store()", "Load()")
            if stored in sides:
                yield from self._kept(target, sides[stored], node, file)

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        if isinstance(call.func, ast.Attribute) and len(call.args) == 1:
            yield from self._kept(call.func.value, call.args[0], call, file)

    def _kept(self, total: ast.expr, value: ast.expr, at: ast.AST, file: File) -> Iterator[Finding]:
        loss = _loss_in(value, file)
        if loss is None or not _is_backwarded(loss, file):
            return
        hot = file.hot(at)
        if hot is None or hot.kind != TRAINS or self._made_in_loop(total, hot.loop):
            return
        if not self._feeds_backward(total, file):
            text = f"`{file.source(total)}` keeps the graph of every step of {where(hot)}; add `{loss.id}.detach()`"
            yield self.finding(at, text, file, appended(loss, ".detach()"))

    def _made_in_loop(self, total: ast.expr, loop: ast.AST) -> bool:
        """Whether the total starts anew in each round."""
        name = _name_of(total)
        return name is None or any(
            any(last_part(t) == name for t in n.targets) and not any(last_part(part) == name for part in walk(n.value))
            for n in walk(loop, ast.Assign)
        )

    def _feeds_backward(self, total: ast.expr, file: File) -> bool:
        """Whether the sum itself is what backward is called on, or goes into that."""
        name = _name_of(total)
        scope = file.tensors.scope(total)
        backwarded = file.tensors.backwarded_in(scope)
        if name in backwarded:
            return True
        for assign in file.nodes.of(ast.Assign):
            gives = any(last_part(t) in backwarded for t in assign.targets) and file.tensors.scope(assign) is scope
            if gives and any(last_part(n) == name for n in walk(assign.value)):
                return True
        return False


def _name_of(total: ast.expr) -> str | None:
    """`history` of `history["loss"]`"""
    return last_part(total.value if isinstance(total, ast.Subscript) else total)


def _loss_in(value: ast.expr, file: File) -> ast.Name | None:
    """The name in `loss`, `loss * n` or `n * loss / k`; nothing where it is detached."""
    if isinstance(value, ast.Name):
        return value
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div, ast.Add)):
        for side in (value.left, value.right):
            found = _loss_in(side, file)
            if found is not None and _is_backwarded(found, file):
                return found
    return None


def _is_backwarded(name: ast.Name, file: File) -> bool:
    return name.id in file.tensors.backwarded_in(file.tensors.scope(name)) and file.tensors.is_tensor(name)
