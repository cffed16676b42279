"""SARIF 2.1.0, which code hosts and editors read: https://docs.oasis-open.org/sarif/sarif/v2.1.0/"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..noqa import UNUSED, UNUSED_NAME
from ..registry import all_rules
from ..result import Result
from ..rule import Finding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def write(result: Result, color: bool = False) -> Iterator[str]:
    import json
    from importlib.metadata import version

    rules = _rules()
    index = {rule["id"]: i for i, rule in enumerate(rules)}
    lesser = {rule.code for rule in all_rules() if rule.lesser}
    run = {
        "tool": {"driver": {"name": "ptlint", "version": version("ptmigrate"), "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not result.errors,
                "toolExecutionNotifications": [
                    {
                        "level": "error",
                        "message": {"text": e.reason},
                        "locations": [_location(e.path, {"startLine": e.line, "startColumn": e.column})],
                    }
                    for e in result.errors
                ],
            }
        ],
        "results": [_result(path, f, index[f.code], f.code in lesser) for path, f in result.findings],
    }
    yield json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _rules() -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = [
        {"id": UNUSED, "name": UNUSED_NAME, "shortDescription": {"text": "A suppression that suppresses nothing."}}
    ]
    for rule in all_rules():
        level = "note" if rule.lesser else "warning"
        rules.append(
            {
                "id": rule.code,
                "name": rule.name,
                "shortDescription": {"text": rule.name.replace("-", " ")},
                "fullDescription": {"text": rule.why},
                "defaultConfiguration": {"level": level, "enabled": not rule.lesser},
                **({"helpUri": rule.see} if rule.see else {}),
            }
        )
    return rules


def _result(path: str, f: Finding, index: int, lesser: bool) -> dict[str, Any]:
    region = {"startLine": f.line, "startColumn": f.column, "endLine": f.end_line, "endColumn": f.end_column}
    return {
        "ruleId": f.code,
        "ruleIndex": index,
        "level": "note" if lesser else "warning",
        "message": {"text": f.message},
        "locations": [_location(path, region)],
    }


def _location(path: str, region: dict[str, int]) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(path)}, "region": region}}


def _uri(path: str) -> str:
    from urllib.parse import quote

    plain = quote(os.fsencode(path.replace(os.sep, "/")))  # a name of other bytes, too
    return f"file://{plain}" if os.path.isabs(path) else plain
