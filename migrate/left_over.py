"""Seen, and not handled: what ptlint would still say of a result about devices, pickling, distribution and host copies.

The linter reads the result itself, so that the list is complete by making. This is the one place where migration asks
lint; it is asked here only, and when a result is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from .facts.nodes import walk
from .facts.script import Facts
from .facts.source import Source, SourceError
from .report import Note, at_line

if TYPE_CHECKING:
    from ptmigrate.lint_rules.engine import Linter
    from ptmigrate.lint_rules.rule import Rule

# device, pickling, distribution; tensors copied to the host at every step, which no edit takes away
THEMES = ("PTM1", "PTM2", "PTM4", "PTM304", "PTM305")
NUMBERED = re.compile(r"cuda:\d")  # that a device stays says nothing of which one it is
NOT_READ = "PTM707"
ALONE = ("PTM700", "PTM704")  # of the lift, and why a file is refused: nothing else is to be said of such a line


def left_over(facts: Facts, told: list[Note], line: Callable[[int], int], wants: Callable[[str], bool]) -> list[Note]:
    """Notes of the result's findings, at the lines of the original; none where its theme is told of at that line."""
    from ptmigrate.lint_rules.file import File

    text = facts.text.text
    try:
        findings = _linter().lint_file(File(text, facts.tree), Source("", b"", text, "utf-8", b""))
    except SourceError:
        return [_not_read(facts)] if wants(NOT_READ) else []
    known = {(n.line, n.code[:4]) for n in told}
    same = {(n.line, n.code) for n in told}
    alone = {n.line for n in told if n.code in ALONE}
    notes = []
    for f in findings:
        at = line(f.line)
        by_number = NUMBERED.search(f.message) is not None and (at, f.code) not in same
        says_enough = ((at, f.code[:4]) in known and not by_number) or at in alone
        if says_enough or not wants(f.code):
            continue
        notes.append(at_line(Note(f.line, f.column, f.code, f.message), line))
    return notes


def _not_read(facts: Facts) -> Note:
    """A file that is nested too deep for the rules, at its deepest place."""
    deepest = next(n for n in reversed(walk(facts.tree)) if hasattr(n, "lineno"))
    line, column, _, _ = facts.text.key(deepest)
    says = "nested too deep for the rules: what is left in this file is not looked for; shorten the expression"
    return Note(line, column + 1, NOT_READ, says)


@cache
def _linter() -> Linter:
    from ptmigrate.lint_rules.engine import Linter

    return Linter(rules(), report_unused=False)


def rules() -> list[Rule]:
    """The rules by which a result is looked through."""
    from ptmigrate.lint_rules.registry import all_rules

    return [r for r in all_rules() if r.code.startswith(THEMES) and not r.lesser]
