"""One JSON object; its shape is a promise, and `version` says which."""

from __future__ import annotations

from collections.abc import Iterator

from ..result import Result


def write(result: Result, color: bool = False) -> Iterator[str]:
    import json

    findings = [{"path": path, **f._asdict()} for path, f in result.findings]
    errors = [{"path": e.path, "line": e.line, "column": e.column, "message": e.reason} for e in result.errors]
    document = {"version": 1, "findings": findings, "errors": errors, "summary": result.summary()}
    yield json.dumps(document, indent=1)
