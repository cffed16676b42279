"""Parentheses that what is left of an expression needs no more: `(x.cuda() if use_cuda else x)` is `x`."""

from __future__ import annotations

import ast
import re
from typing import Any

from ..facts.script import Facts
from .rewrites import take_branch, take_branch_bare


def stands_alone(facts: Facts, whole: ast.expr, left: ast.expr) -> bool:
    """`(rank + 1)`, whose parentheses a number, a name or a call needs no more."""
    start, stop = facts.text.span(whole)
    before, after = facts.text.text[max(start - 3, 0) : start], facts.text.text[stop : stop + 2]
    simple = isinstance(left, (ast.Name, ast.Constant, ast.Attribute, ast.Call)) and "\n" not in facts.text.get(left)
    number = isinstance(left, ast.Constant) and after[1:2] == "."
    opened = bool(re.search(r"(^|[^\w)\]])\($", before)) and bool(re.match(r"\)(\W|$)", after))
    return simple and opened and not number


def branch_of(facts: Facts, choice: ast.IfExp, field: str) -> Any:
    """`a if c else b` to one of its branches, without the parentheses that only the choice needed."""
    alone = stands_alone(facts, choice, getattr(choice, field))
    return take_branch_bare(field) if alone else take_branch(field)
