"""PTM604: loss.data[0] fails since a loss has no dimension."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..file import File, is_constant, last_part
from ..rule import Finding, Rule

SCALAR = re.compile(r"(^|_)(loss|losses?_?[a-z]?|err|error|cost|kld|mse|bce|nll|norm)(_?\w?)$|loss$", re.I)


class DataZero(Rule):
    code = "PTM604"
    name = "data-zero"
    why = "A loss is a tensor without dimensions since torch 0.4: `loss.data[0]` raises an IndexError. Use `.item()`."
    fix = "safe"
    settled_by = "old_idioms"

    BAD = """
        import torch
        loss = criterion(model(x), y)
        loss.backward()
        total = loss.data[0]
        """
    GOOD = """
        import torch
        total += loss.detach()
        first = weights.data[0]
        losses = torch.zeros(3)
        first = losses.data[0]
        """

    def check_subscript(self, node: ast.Subscript, file: File) -> Iterator[Finding]:
        value = node.value
        if not (is_constant(node.slice, 0) and isinstance(value, ast.Attribute) and value.attr == "data"):
            return
        if not isinstance(node.ctx, ast.Load):
            return
        name = value.value
        while isinstance(name, ast.Call) and isinstance(name.func, ast.Attribute):
            name = name.func.value
        if isinstance(name, ast.Subscript) and isinstance(name.slice, ast.Constant):
            last: str | None = f"{last_part(name.value)}_{name.slice.value!s}"  # losses["total"]
        else:
            last = last_part(name)
        if not last or not (SCALAR.search(last) or last.startswith("loss")):
            return
        from ptmigrate.migrate.facts.dimensions import has_dimensions

        if not has_dimensions(file.facts, value.value):
            yield self.finding(
                node, f"`{file.source(node)}` fails on a scalar; use `.item()`, outside the hot loop", file
            )
