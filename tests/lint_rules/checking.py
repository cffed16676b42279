"""Linting a source text in a test."""

from __future__ import annotations

import textwrap

from ptmigrate.lint_rules.engine import Linter
from ptmigrate.lint_rules.registry import choose


def findings(source: str, *select: str) -> list:
    return Linter(choose(select)).lint_bytes(textwrap.dedent(source).strip("\n").encode(), "script.py")


def found(source: str, *select: str) -> list[str]:
    """ "CODE line" for each finding."""
    return [f"{f.code} {f.line}" for f in findings(source, *select)]
