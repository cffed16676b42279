"""Edits of a text by character offsets, as every shaping makes them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ...facts.script import Facts
from ..splice import Splice


@dataclass
class Edits:
    """Replacements that do not overlap; `done` gives the new text."""

    facts: Facts
    spans: list[tuple[int, int, str]] = field(default_factory=list)

    def replace(self, start: int, stop: int, new: str) -> None:
        self.spans.append((start, stop, new))

    def replace_node(self, node: ast.AST, new: str) -> None:
        self.replace(*self.facts.text.span(node), new)

    def replace_lines(self, first: int, last: int, lines: list[str]) -> None:
        """Whole lines, first to last; none are put before `first` where last < first."""
        a, b = self.facts.text.line_span(first, last) if last >= first else (self._line_start(first),) * 2
        ended = self.facts.text.text[a:b].endswith(("\n", "\r")) or b < len(self.facts.text.text) or a == b
        newline = self.facts.text.newline
        self.replace(a, b, newline.join(lines) + (newline if lines and ended else ""))

    def _line_start(self, line: int) -> int:
        return self.facts.text.starts[line - 1] if line <= len(self.facts.text.starts) else len(self.facts.text.text)

    def done(self) -> str:
        text, out, at = self.facts.text.text, [], 0
        for a, b, new in sorted(self.spans, key=lambda e: (e[0], e[1])):
            assert a >= at, "edits overlap"
            out += [text[at:a], new]
            at = b
        return "".join([*out, text[at:]])


def block_lines(facts: Facts, statements: list[ast.stmt], replaced: dict[tuple[int, int], str]) -> list[str]:
    """Statements at no indentation, with their comments and the blank lines between them."""
    splice, lines = Splice(facts.text), []
    floor = 1
    for i, s in enumerate(statements):
        first, _ = splice.with_comments(s, floor)
        if i and first - 1 >= floor and not _line(facts, first - 1).strip():
            lines.append("")
        lines += splice.render(s, replaced, floor)
        floor = (s.end_lineno or s.lineno) + 1
    return lines


def _line(facts: Facts, n: int) -> str:
    a, b = facts.text.line_span(n, n)
    return facts.text.text[a:b]
