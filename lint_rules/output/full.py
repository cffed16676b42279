"""For people: each finding with its source line, a caret below what is meant, and the reason for the rule."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptmigrate.migrate.facts.source import SourceError, read_source

from ..registry import all_rules
from ..result import Result
from ..rule import Finding

BOLD, RED, CYAN, GREEN, PLAIN = "\033[1m", "\033[31m", "\033[36m", "\033[32m", "\033[0m"
LINE_END = re.compile(r"\r\n|\r|\n")
LINES = {"safe": "--fix settles it", "unsafe": "--unsafe-fixes settles it"}


def write(result: Result, color: bool = False) -> Iterator[str]:
    whys = {rule.code: rule.why for rule in all_rules()}
    texts: dict[str, list[str]] = {}
    for path, finding in result.findings:
        if path not in texts:
            texts = {path: LINE_END.split(_text(result, path))}
        yield from _shown(path, finding, texts[path], whys.get(finding.code, ""), color)
    if result.findings:
        yield _count(result)
    if result.lesser:
        counts = ", ".join(f"{count} of {code}" for code, count in sorted(result.lesser.items()))
        yield f"Lesser findings are not shown ({counts}): --select {next(iter(sorted(result.lesser)))} shows them."


def _shown(path: str, f: Finding, lines: list[str], why: str, color: bool) -> Iterator[str]:
    yield f"{_in(BOLD, f'{path}:{f.line}:{f.column}:', color)} {_in(RED, f.code, color)} {f.message}"
    margin = " " * len(str(f.line))
    bar = _in(CYAN, "|", color)
    if 0 < f.line <= len(lines) and lines[f.line - 1].strip():
        line = lines[f.line - 1]
        end = f.end_column if f.end_line == f.line else len(line) + 1
        yield f"{margin} {bar}"
        yield f"{_in(CYAN, str(f.line), color)} {bar} {line}"
        yield f"{margin} {bar} {_below(line, f.column, end, color)}"
    if why:
        yield f"{margin} {_in(CYAN, '=', color)} {why}"
    if f.fix in LINES:
        yield f"{margin} {_in(CYAN, '=', color)} {_in(GREEN, LINES[f.fix], color)}"
    yield ""


def _below(line: str, start: int, end: int, color: bool) -> str:
    """Carets below the columns start to end, tabs kept as tabs and wide characters counted twice."""
    before = "".join("\t" if c == "\t" else " " * _width(c) for c in line[: start - 1])
    carets = "^" * max(1, sum(_width(c) for c in line[start - 1 : max(start, end - 1)]))
    return before + _in(RED, carets, color)


def _width(c: str) -> int:
    if c.isascii():
        return 1
    import unicodedata

    if unicodedata.combining(c):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def _in(style: str, text: str, color: bool) -> str:
    return f"{style}{text}{PLAIN}" if color else text


def _text(result: Result, path: str) -> str:
    if path in result.sources:
        return result.sources[path]
    try:
        return read_source(path).text
    except SourceError:
        return ""


def _count(result: Result) -> str:
    n = len(result.findings)
    fixable = sum(f.fix == "safe" for _, f in result.findings)
    more = f", {fixable} of them settled by --fix" if fixable else ""
    return f"{n} finding{'s' if n != 1 else ''} in {result.files} file{'s' if result.files != 1 else ''}{more}."
