"""`--fix`: the codemods of the migration, for the findings that one settles. Here is only the way to them.

Each codemod is run alone, by its code, and is imported on use.
Suppressions that suppress nothing are taken out here, where they are known.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable

from ptmigrate.migrate.facts.source import SourceError, read_source

from .config import Config
from .result import Result
from .rule import Finding
from .write import write_text

# Findings that a codemod of another code settles.
CODEMODS = {"PTM604": "PTM602"}


def fix(result: Result, options: Namespace, config: Config, again: Callable[[list[str]], Result]) -> Result:
    """The findings that are left after fixing; with `--diff`, nothing is written and the change is printed."""
    unsafe = options.unsafe_fixes or config.unsafe_fixes
    by_path: dict[str, list[Finding]] = {}
    for path, finding in result.findings:
        by_path.setdefault(path, []).append(finding)
    changed = []
    for path, findings in by_path.items():
        try:
            source = read_source(path)
        except SourceError:
            continue
        text = _without_unused(source.text, findings)
        codes = {f.code for f in findings if f.fix == "safe" or (unsafe and f.fix == "unsafe")}
        text = _by_codemods(path, text, codes, unsafe)
        if text == source.text:
            continue
        changed.append(path)
        if options.diff:
            _print_diff(path, source.text, text)
        else:
            write_text(source, text)
    if options.diff or not changed:
        return result
    left = again(changed)
    rest = [(path, f) for path, f in result.findings if path not in set(changed)]
    before = len(result.findings)
    result.findings = sorted(rest + left.findings, key=lambda item: (item[0], item[1].line, item[1].column))
    result.fixed = before - len(result.findings)
    return result


def _by_codemods(path: str, text: str, codes: set[str], unsafe: bool) -> str:
    for code in sorted({CODEMODS.get(code, code) for code in codes}):
        try:
            text = _by_codemod(text, code, unsafe)
        except Exception as error:  # a fault of one codemod leaves the file to the others
            print(f"error: {path}: {code} not fixed: {type(error).__name__}: {error}", file=sys.stderr)
    return text


def _by_codemod(text: str, code: str, unsafe: bool) -> str:
    """The text after one codemod; as it was where that would touch a suppressed line, or is not safe and has to be."""
    from ptmigrate.migrate.codemods.base import apply
    from ptmigrate.migrate.codemods.every import plan_all
    from ptmigrate.migrate.facts.script import Facts

    from .add_noqa import lines_of

    facts = Facts(text)
    changes = plan_all(facts, lambda wanted: wanted == code)
    lines = lines_of(text)
    for change in changes:
        edit = change.edit
        if (not edit.safe and not unsafe) or "noqa" in lines[edit.line - 1][0].lower():
            return text
    return apply(facts, changes)


def _without_unused(text: str, findings: list[Finding]) -> str:
    """The text without the comments of PTM001; a comment that also names other codes keeps those."""
    from .add_noqa import joined, lines_of
    from .noqa import CODE

    lines = lines_of(text)
    for f in findings:
        if f.code != "PTM001":
            continue
        body, end = lines[f.line - 1]
        idle = set(CODE.findall(f.message.partition(":")[0]))
        comment = body[f.column - 1 : f.end_column - 1]
        codes = [c for c in CODE.findall(comment.partition(":")[2]) if c.upper() not in idle]
        if codes:
            body = body[: f.column - 1] + "# noqa: " + ", ".join(codes) + body[f.end_column - 1 :]
        else:
            body = (body[: f.column - 1] + _reason_dropped(body[f.end_column - 1 :])).rstrip()
        lines[f.line - 1] = (body, end)
    return joined(lines)


def _reason_dropped(rest: str) -> str:
    """What follows a suppression is its reason, unless it is a comment of its own."""
    at = rest.find("#")
    return rest[at:] if at >= 0 else ""


def _print_diff(path: str, before: str, after: str) -> None:
    import difflib

    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), path, path)
    for line in lines:
        sys.stdout.write(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
