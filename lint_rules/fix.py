"""`--fix`: what a rule mends itself, then the codemods of the migration for what one of them settles.

Each codemod is run alone, by its code, and is imported on use.
Suppressions that suppress nothing are taken out here, where they are known.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable

from ptmigrate.migrate.facts.source import Source, SourceError, decode, parses, read_source

from .config import Config
from .engine import Linter, file_of
from .registry import matches
from .result import Result
from .rule import Finding, Rule
from .write import write_text

# Findings that a codemod of another code settles.
CODEMODS = {"PTM103": ["PTM104", "PTM101"], "PTM609": ["PTM601"]}
ROUNDS = 5  # a repair inside of another's place waits for the next round


def fix(
    result: Result, options: Namespace, config: Config, rules: list[Rule], again: Callable[[list[str]], Result]
) -> Result:
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
        wanted = [rule for rule in rules if not any(matches(rule, code) for code in config.ignored(path))]
        text = fixed_text(source, findings, wanted, unsafe)
        if text == source.text:
            continue
        changed.append(path)
        if options.diff:
            _print_diff(path, source.text, text)
        elif not _write(source, text, result):
            changed.pop()
    if options.diff or not changed:
        return result
    left = again(changed)
    rest = [(path, f) for path, f in result.findings if path not in set(changed)]
    before = len(result.findings)
    result.findings = sorted(rest + left.findings, key=lambda item: (item[0], item[1].line, item[1].column))
    result.fixed = before - len(result.findings)
    return result


def fixed_data(
    name: str, data: bytes, result: Result, config: Config, rules: list[Rule], unsafe: bool, diff: bool
) -> bytes:
    """The bytes of standard input after fixing, and as they were where they cannot be read; a diff is printed."""
    if result.errors:
        return data
    source = decode(data, name)
    wanted = [rule for rule in rules if not any(matches(rule, code) for code in config.ignored(name))]
    text = fixed_text(source, [f for _, f in result.findings], wanted, unsafe)
    if diff:
        _print_diff(name, source.text, text)
    return source.encode(text)


def fixed_text(source: Source, findings: list[Finding], rules: list[Rule], unsafe: bool) -> str:
    """The text of a file with what can be settled, settled, and what that brings to light too."""
    text = source.text
    for _ in range(ROUNDS):
        fixed = _fixed_once(_with_text(source, text), findings, rules, unsafe)
        if fixed == text:
            break
        text = fixed
        try:
            findings = Linter(rules).lint_source(_with_text(source, text))
        except SourceError:
            break
    return text


def _with_text(source: Source, text: str) -> Source:
    return Source(source.path, source.raw, text, source.encoding, source.bom)


def _fixed_once(source: Source, findings: list[Finding], rules: list[Rule], unsafe: bool) -> str:
    text = _without_unused(source.text, findings)
    codes = {f.code for f in findings if f.fix == "safe" or (unsafe and f.fix == "unsafe")}
    if not codes:
        return text
    text = _by_repairs(source, text, [rule for rule in rules if rule.code in codes], unsafe)
    return _by_codemods(source.path, text, {r.code for r in rules if r.settled_by} & codes, findings, unsafe)


def _by_repairs(source: Source, text: str, rules: list[Rule], unsafe: bool) -> str:
    """The text after the repairs that the findings bring, until none is left; as it was where it would not compile."""
    from ptmigrate.migrate.facts.text import Text

    from .edits import applied

    linter = Linter([rule for rule in rules if rule.fix], report_unused=False)
    for _ in range(ROUNDS):
        now = _with_text(source, text)
        file = file_of(now)
        file.repairs = {}
        found = [f for f in linter.lint_file(file, now) if f.fix == "safe" or unsafe]
        places = Text(text)
        repairs = [edits for f in found if f in file.repairs and (edits := file.repairs[f](places))]
        mended = applied(text, repairs)
        if mended == text or not (parses(mended) or file.old_async):
            return text
        text = mended
    return text


def _by_codemods(path: str, text: str, codes: set[str], findings: list[Finding], unsafe: bool) -> str:
    if not codes or not parses(text):
        return text
    for code in sorted(codes):
        # the codemods of PTM103 also place what no module has asked for
        only = {f.line for f in findings if f.code == code} if code == "PTM103" else None
        for codemod in CODEMODS.get(code, [code]):
            try:
                text = _by_codemod(text, code, codemod, unsafe, only)
            except Exception as error:  # a fault of one codemod leaves the file to the others
                print(f"error: {path}: {code} not fixed: {type(error).__name__}: {error}", file=sys.stderr)
    return text


def _by_codemod(text: str, code: str, codemod: str, unsafe: bool, only: set[int] | None) -> str:
    """The text after one codemod; as it was where that would touch a suppressed line, or is not safe and has to be."""
    from ptmigrate.migrate.codemods.base import apply
    from ptmigrate.migrate.codemods.every import plan_all
    from ptmigrate.migrate.codemods.old_idioms import DataZero
    from ptmigrate.migrate.facts.script import Facts

    from .add_noqa import lines_of

    facts = Facts(text)
    early = codemod == DataZero.code  # the migration makes that before all others
    changes = list(DataZero().plan(facts)) if early else plan_all(facts, lambda wanted: wanted == codemod)
    if codemod == "PTM602":  # it also does what PTM604 and PTM108 ask for; each is done for its own finding only
        changes = [c for c in changes if c.edit.code == code]
    if only is not None:
        changes = [c for c in changes if c.edit.line in only]
    lines = lines_of(text)
    for change in changes:
        edit = change.edit
        if (not edit.safe and not unsafe) or "noqa" in lines[edit.line - 1][0].lower():
            return text
    return apply(facts, changes)


def _write(source: Source, text: str, result: Result) -> bool:
    """Whether the file could be written."""
    try:
        write_text(source, text)
    except (OSError, UnicodeEncodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        result.errors.append(SourceError(source.path, 1, 1, f"cannot be written: {reason.lower()}"))
        return False
    return True


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
