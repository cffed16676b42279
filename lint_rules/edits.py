"""Small repairs of single expressions, as edits of the text: what a rule itself can mend without a codemod.

Each function gives the edits of one repair, or None where the text is written in a way that it does not handle.
Offsets are in characters of the text without its byte order mark.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ptmigrate.migrate.facts.text import Text


class Edit(NamedTuple):
    start: int
    stop: int
    new: str


Repair = Callable[[Text], "list[Edit] | None"]

COMMENT = re.compile(r"#[^\r\n]*")


def replaced(node: ast.AST, new: str) -> Repair:
    return lambda text: [Edit(*text.span(node), new)]


def renamed(attribute: ast.Attribute, new: str) -> Repair:
    """The last part of a dotted name."""

    def repair(text: Text) -> list[Edit] | None:
        stop = text.span(attribute)[1]
        start = stop - len(attribute.attr)
        return [Edit(start, stop, new)] if text.text[start:stop] == attribute.attr else None

    return repair


def appended(node: ast.expr, new: str) -> Repair:
    """`node.detach()`; what binds less than a call is put in parentheses."""

    def repair(text: Text) -> list[Edit] | None:
        start, stop = text.span(node)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
            return [Edit(stop, stop, new)]
        return [Edit(start, start, "("), Edit(stop, stop, f"){new}")]

    return repair


def wrapped(node: ast.expr, before: str, after: str = ")") -> Repair:
    def repair(text: Text) -> list[Edit] | None:
        start, stop = text.span(node)
        return [Edit(start, start, before), Edit(stop, stop, after)]

    return repair


def with_argument(call: ast.Call, new: str) -> Repair:
    """One more keyword argument at the end, in the way in which the others are written."""

    def repair(text: Text) -> list[Edit] | None:
        close = text.span(call)[1] - 1
        given = [*call.args, *call.keywords]
        if not given:
            return [Edit(close, close, new)] if text.text[text.span(call.func)[1] : close].strip() == "(" else None
        if len(given) == 1 and isinstance(given[0], ast.GeneratorExp):
            return None
        last = max(given, key=lambda a: text.span(a)[1])
        start, stop = text.span(last)
        gap = COMMENT.sub(lambda m: " " * len(m.group()), text.text[stop:close])
        code = gap.rstrip()
        at = stop + len(code)
        if not code.endswith(","):
            return [Edit(at, at, f", {new}")]
        line_start = max(text.text.rfind("\n", 0, start), text.text.rfind("\r", 0, start)) + 1
        indent = text.text[line_start:start]
        if indent.strip() or not re.search(r"[\r\n]", gap):
            return [Edit(at, at, f" {new},")]
        end = re.compile(r"\r\n|\r|\n").search(text.text, at)
        assert end is not None  # the gap has a line end behind the comma
        return [Edit(end.end(), end.end(), f"{indent}{new},{end.group()}")]

    return repair


def without_argument(call: ast.Call, argument: ast.expr | ast.keyword | None) -> Repair:
    """The call without an argument; by position only the last one can go."""

    def repair(text: Text) -> list[Edit] | None:
        given: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=lambda a: text.span(a))
        if argument not in given or (argument in call.args and argument is not call.args[-1]):
            return None
        i = given.index(argument)
        start, stop = text.span(argument)
        if i + 1 < len(given):
            following = text.span(given[i + 1])[0]
            between = text.text[stop:following]
            if between.strip() != ",":
                return [Edit(start, stop + between.index(",") + 1, "")] if "," in between.partition("#")[0] else None
            return [Edit(start, following, "")]
        if i == 0:
            return [Edit(start, stop, "")] if text.text[stop : text.span(call)[1] - 1].strip() in ("", ",") else None
        before = text.text[text.span(given[i - 1])[1] : start]
        if before.strip() != ",":
            return None
        return [Edit(text.span(given[i - 1])[1], stop, "")]

    return repair


def applied(text: str, repairs: Iterable[list[Edit]]) -> str:
    """The text after the repairs; one that touches what another has changed waits for the next round."""
    taken: list[Edit] = []
    for edits in repairs:
        fresh = [e for e in edits if e not in taken]
        if not any(_touch(e, other) for e in fresh for other in taken):
            taken += fresh
    for edit in sorted(taken, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.stop :]
    return text


def _touch(a: Edit, b: Edit) -> bool:
    return a.start <= b.stop and b.start <= a.stop
