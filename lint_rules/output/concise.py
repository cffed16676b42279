"""One line a finding: `path:line:column: CODE message`."""

from __future__ import annotations

from collections.abc import Iterator

from ..result import Result


def write(result: Result, color: bool = False) -> Iterator[str]:
    for path, f in result.findings:
        yield f"{path}:{f.line}:{f.column}: {f.code} {f.message}"
