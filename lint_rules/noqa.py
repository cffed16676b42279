"""Suppressions: `# noqa`, `# noqa: PTM301`, `# noqa: PTM301 - printed every 100 steps`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ptmigrate.migrate.facts.nodes import Nodes

from .rule import Finding

NOQA = re.compile(r"#\s*noqa(?P<codes>\s*:\s*[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+|\s+[A-Z]+\d+)*)?(?![\w:])", re.IGNORECASE)
CODE = re.compile(r"[A-Z]+\d+", re.IGNORECASE)
UNUSED, UNUSED_NAME = "PTM001", "unused-noqa"


class Suppressions:
    """The suppressions of a file, by line."""

    def __init__(self, lines: list[str], nodes: Nodes) -> None:
        self.by_line: dict[int, tuple[set[str], int, int]] = {}
        inside = _strings_with_noqa(nodes)
        for number, line in enumerate(lines, 1):
            if "noqa" not in line.lower():
                continue
            found = NOQA.search(line)
            if not found or any(
                first <= number <= last and (first != last or c >= found.start()) for first, last, c in inside
            ):
                continue
            codes = {code.upper() for code in CODE.findall(found.group("codes") or "")}
            self.by_line[number] = (codes, found.start() + 1, found.end() + 1)

    def apply(self, findings: Iterable[Finding], active: set[str]) -> list[Finding]:
        """The findings that stay; and one for each code of ours that suppresses nothing."""
        kept: list[Finding] = []
        used: set[tuple[int, str]] = set()
        for finding in findings:
            lines = [n for n in (finding.line, finding.end_line) if self._covers(n, finding.code)]
            used.update((n, finding.code) for n in lines)
            if not lines:
                kept.append(finding)
        if UNUSED in active:
            kept += self._unused(used, active)
        return kept

    def _covers(self, line: int, code: str) -> bool:
        entry = self.by_line.get(line)
        return entry is not None and (not entry[0] or code in entry[0])

    def _unused(self, used: set[tuple[int, str]], active: set[str]) -> Iterable[Finding]:
        for line, (codes, start, stop) in self.by_line.items():
            idle = sorted(c for c in codes if c.startswith("PTM") and c in active and (line, c) not in used)
            if idle:
                message = f"unused suppression of {', '.join(idle)}: nothing is found here"
                yield Finding(UNUSED, UNUSED_NAME, line, start, line, stop, message, None)


def _strings_with_noqa(nodes: Nodes) -> list[tuple[int, int, int]]:
    """Where string literals hold the word: (first line, last line, end column)."""
    return [
        (node.lineno, node.end_lineno or node.lineno, node.end_col_offset or 0)
        for node in nodes.of(ast.Constant)
        if isinstance(node.value, str) and "noqa" in node.value.lower()
    ]
