"""The report as one HTML page that needs nothing else: each file's diff, with the reasons beside the lines."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from .facts.text import lines_of
from .report import Edit, Note, Report, counted

if TYPE_CHECKING:
    from .one_file import Migrated

AROUND = 3  # lines shown above and below what changed
STYLE = """
:root { color-scheme: light dark; --del: #ffebe9; --add: #e6ffec; --look: #fff3c4; --line: #d0d7de; --faint: #6e7781; }
@media (prefers-color-scheme: dark) {
  :root { --del: #4b1e22; --add: #12361f; --look: #4a3c0b; --line: #3d444d; --faint: #9198a1; }
}
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
.diff { table-layout: fixed; }
.diff td { vertical-align: top; padding: 0 .5rem; }
.diff pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.5 ui-monospace, monospace; }
.n { width: 3.2rem; text-align: right; color: var(--faint); font: 13px/1.5 ui-monospace, monospace; }
.why { width: 38%; border-left: 1px solid var(--line); font-size: 13px; }
.del pre { background: var(--del); } .add pre { background: var(--add); }
.look { background: var(--look); padding: 0 .25rem; }
.gap td { color: var(--faint); border-top: 1px solid var(--line); height: .6rem; }
code { font: 13px ui-monospace, monospace; }
summary { cursor: pointer; font-weight: 600; padding: .4rem 0; }
summary .plan { font-weight: 400; color: var(--faint); }
.error { color: #cf222e; }
details { border-top: 1px solid var(--line); }
"""


def as_page(done: list[Migrated], report: Report) -> str:
    """The whole page."""
    rows = report.as_json()["summary"]
    plans = ", ".join(f"{n} {plan}" for plan, n in sorted(rows["plans"].items()))
    counts = f"{counted(rows['files'], 'file')}, {rows['changed']} changed, {counted(rows['edits'], 'edit')}"
    counts += f", {counted(rows['attention'], 'place')} to look at"
    if rows["errors"]:
        counts += f", {rows['errors']} could not be read"
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>ptmigrate: {escape(counts)}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        f"<h1>ptmigrate</h1>\n<p>{escape(counts)}. Plans: {escape(plans)}.</p>",
    ]
    for m in done:
        if m.report.error or m.report.changed or m.report.edits or m.report.attention:
            parts += _file(m)
    untouched = [m.report.path for m in done if not (m.report.error or m.report.changed or m.report.attention)]
    if untouched:
        names = "".join(f"<li><code>{escape(p)}</code></li>" for p in untouched)
        parts.append(f"<details><summary>nothing to do in {len(untouched)}</summary><ul>{names}</ul></details>")
    return "\n".join([*parts, "</body>\n</html>", ""])


def _file(m: Migrated) -> Iterator[str]:
    r = m.report
    told = f"plan {r.plan}, {counted(len(r.edits), 'edit')}, {len(r.attention)} to look at"
    where = f" &rarr; <code>{escape(r.output)}</code>" if r.output and r.output != r.path else ""
    yield "<details open>"
    yield f'<summary><code>{escape(r.path)}</code>{where} <span class="plan">{escape(told)}</span></summary>'
    if r.error:
        yield f'<p class="error">{escape(r.error)}</p>'
    if m.source is not None and m.result is not None:
        yield '<table class="diff">'
        yield from _diff(m.source.text, m.result.text, [*r.edits, *r.attention])
        yield "</table>"
    yield "</details>"


def _diff(before: str, after: str, notes: list[Note]) -> Iterator[str]:
    """The lines that changed or are spoken of, some around them, and the reasons beside the original's lines."""
    old, new = lines_of(before), lines_of(after)
    reasons: dict[int, list[Note]] = {}
    for note in sorted(notes, key=lambda n: (n.line, n.column, n.code, n.message)):
        reasons.setdefault(min(note.line, max(len(old), 1)), []).append(note)
    rows: list[tuple[str, int | None, int | None, str]] = []
    for op, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if op == "equal":
            rows += [("", a + i + 1, c + i + 1, old[a + i]) for i in range(b - a)]
        else:
            rows += [("del", i + 1, None, old[i]) for i in range(a, b)]
            rows += [("add", None, i + 1, new[i]) for i in range(c, d)]
    wanted = {i for i, (kind, o, _, _) in enumerate(rows) if kind or o in reasons}
    shown = {i + k for i in wanted for k in range(-AROUND, AROUND + 1)}
    last = -1
    for i, (kind, o, n, text) in enumerate(rows):
        if i not in shown:
            continue
        if last >= 0 and i > last + 1:
            yield '<tr class="gap"><td colspan="4"></td></tr>'
        last = i
        why = "".join(_reason(r) for r in reasons.pop(o, [])) if o is not None else ""
        numbers = "".join(f'<td class="n">{number or ""}</td>' for number in (o, n))
        code = f"<td><pre>{escape(text)}</pre></td>"
        yield f'<tr class="{kind}">{numbers}{code}<td class="why">{why}</td></tr>'


def _reason(n: Note) -> str:
    kind = "" if isinstance(n, Edit) else ' class="look"'
    says = escape(n.message)
    return f"<div{kind}><b>{escape(n.code)}</b> {says}{'' if not kind else ' (look at this)'}</div>"
