"""Statements that go are not read: libcst gets an empty tuple in their place."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from ..facts.script import Facts
from ._regions import COMMENT, FEED, Region
from .base import Change, Key

Edit = tuple[int, int, str]  # where it starts and stops, and what is read instead
INSTEAD = "()"


def not_read(
    facts: Facts, region: Region, keys: Sequence[Key], wanted: Mapping[Key, list[Change]]
) -> Iterator[tuple[Key, Edit, Key, tuple[int, int]]]:
    """What is planned, what stands in its place, as what that is planned, and from which line on how many more there
    are; `keys` are in the order of the text.
    """
    if FEED in facts.text.text:
        return
    reached = (0, 0)  # as far as what is planned above goes
    for n, key in enumerate(keys):
        within, reached = reached >= key[3:], max(reached, key[3:])
        holds = any(other[1:3] <= key[3:] for other in keys[n + 1 : n + 2])
        if within or holds or any(change.rewrite is not None for change in wanted[key]):
            continue
        node = wanted[key][0].node
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Match) and has_its_lines(facts, node):
            start, stop = facts.text.span(node)
            first, last = facts.text.line_of(start), _last_line(facts, node, region)
            stop = max(stop, facts.text.line_span(last, last)[1] if last > (node.end_lineno or 0) else 0)
            end = facts.text.newline if facts.text.text[start:stop].endswith(("\n", "\r")) else ""
            column = start - facts.text.starts[first - 1]
            instead = "statement", first, column, first, column + len(INSTEAD)
            yield key, (start, stop, INSTEAD + end), instead, (last + 1, first - last)


def has_its_lines(facts: Facts, s: ast.stmt) -> bool:
    """Whether nothing but a comment shares the lines of a statement."""
    _, stop = facts.text.span(s)
    _, end = facts.text.line_span(1, s.end_lineno or 0)
    return not facts.text.margin(s).strip() and facts.text.text[stop:end].strip()[:1] in ("", COMMENT)


def _last_line(facts: Facts, s: ast.stmt, region: Region) -> int:
    """The last line of a statement, comments at the end of its blocks among them."""
    last = at = s.end_lineno or 0
    block = getattr(s, "body", None)
    margin = facts.text.margin(block[0]) if block else ""
    if not margin or margin.strip():
        return last
    for line in facts.text.lines[last : region.last]:
        at += 1
        if line.startswith(margin) and line.lstrip().startswith(COMMENT):
            last = at
        elif line.strip():
            break
    return last
