"""The report as SARIF 2.1.0, which code hosts and editors read.

Edits are notes, what wants a person is a warning. https://docs.oasis-open.org/sarif/sarif/v2.1.0/
"""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from .codes import all_codes
from .report import Edit, FileReport, Note, Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(report: Report) -> dict[str, Any]:
    rules = [
        {
            "id": code,
            "name": name,
            "shortDescription": {"text": name.replace("-", " ")},
            "fullDescription": {"text": what},
        }
        for code, (name, what) in sorted(all_codes().items())
    ]
    index = {rule["id"]: i for i, rule in enumerate(rules)}
    run = {
        "tool": {"driver": {"name": "ptmigrate", "version": version("ptmigrate"), "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not any(f.error for f in report.files),
                "toolExecutionNotifications": [_notification(f) for f in report.files if f.error is not None],
            }
        ],
        "results": [_result(f, n, index) for f in report.files for n in sorted([*f.edits, *f.attention], key=_place)],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _place(n: Note) -> tuple[int, int, str, str]:
    return n.line, n.column, n.code, n.message


def _result(f: FileReport, n: Note, index: dict[Any, int]) -> dict[str, Any]:
    edited = isinstance(n, Edit)
    result: dict[str, Any] = {
        "ruleId": n.code,
        "level": "note" if edited else "warning",
        "message": {"text": n.message},
        "locations": [_location(f.path, n.line, n.column)],
        "properties": {"edited": edited, "plan": f.plan},
    }
    if n.code in index:
        result["ruleIndex"] = index[n.code]
    if isinstance(n, Edit):
        result["properties"]["safe"] = n.safe
    return result


def _notification(f: FileReport) -> dict[str, Any]:
    """An error's text starts with the place: `path:line:column: reason`."""
    rest = (f.error or "").removeprefix(f"{f.path}:")
    line, _, rest = rest.partition(":")
    column, _, reason = rest.partition(":")
    place = (int(line), int(column)) if line.isdigit() and column.isdigit() else (1, 1)
    return {
        "level": "error",
        "message": {"text": reason.strip() or f.error},
        "locations": [_location(f.path, *place)],
    }


def _location(path: str, line: int, column: int) -> dict[str, Any]:
    plain = quote(os.fsencode(path.replace(os.sep, "/")))  # a name of other bytes, too
    uri = f"file://{plain}" if os.path.isabs(path) else plain
    region = {"startLine": line, "startColumn": column}
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
