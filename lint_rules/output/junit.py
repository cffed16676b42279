"""JUnit XML, which build servers read: a suite a file, a failed case a finding."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptmigrate.migrate.facts.source import SourceError

from ..result import Result
from ..rule import Finding

# what XML 1.0 cannot hold, escaped or not
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(result: Result, color: bool = False) -> Iterator[str]:
    findings: dict[str, list[Finding]] = {}
    for path, finding in result.findings:
        findings.setdefault(path, []).append(finding)
    errors = {e.path: e for e in result.errors}
    cases = len(result.findings) + len(errors) or 1
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield f'<testsuites name="ptlint" tests="{cases}" failures="{len(result.findings)}" errors="{len(errors)}">'
    for path in sorted({*findings, *errors}):
        yield from _suite(path, findings.get(path, []), errors.get(path))
    if not findings and not errors:
        yield '  <testsuite name="ptlint" tests="1" failures="0" errors="0">'
        yield f'    <testcase classname="ptlint" name="{result.files} files" />'
        yield "  </testsuite>"
    yield "</testsuites>"


def _suite(path: str, findings: list[Finding], error: SourceError | None) -> Iterator[str]:
    tests, errors = len(findings) + (error is not None), int(error is not None)
    name = _escaped(path)
    yield f'  <testsuite name="{name}" tests="{tests}" failures="{len(findings)}" errors="{errors}">'
    for f in findings:
        yield f'    <testcase classname="{name}" name="{f.code} line {f.line}" line="{f.line}">'
        place = f"line {f.line}, column {f.column}"
        yield f'      <failure type="{f.code}" message="{_escaped(f.message)}">{place}</failure>'
        yield "    </testcase>"
    if error is not None:
        yield f'    <testcase classname="{name}" name="read" line="{error.line}">'
        yield f'      <error message="{_escaped(error.reason)}">line {error.line}, column {error.column}</error>'
        yield "    </testcase>"
    yield "  </testsuite>"


def _escaped(text: str) -> str:
    text = FORBIDDEN.sub("\ufffd", text)
    for raw, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("\n", "&#10;")):
        text = text.replace(raw, entity)
    return text
