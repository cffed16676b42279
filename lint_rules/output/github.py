"""Workflow commands that GitHub shows beside the lines of a pull request.

https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Iterator

from ..registry import all_rules
from ..result import Result


def write(result: Result, color: bool = False) -> Iterator[str]:
    lesser = {rule.code for rule in all_rules() if rule.lesser}
    for path, f in result.findings:
        place = f"file={_property(path)},line={f.line},endLine={f.end_line},col={f.column}"
        if f.end_line == f.line:
            place += f",endColumn={f.end_column}"
        title = _property(f"ptlint {f.code} {f.name}")
        text = _data(f"{path}:{f.line}:{f.column}: {f.code} {f.message}")
        level = "notice" if f.code in lesser else "warning"
        yield f"::{level} {place},title={title}::{text}"
    for e in result.errors:
        yield f"::error file={_property(e.path)},line={e.line},col={e.column},title=ptlint::{_data(e.reason)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
