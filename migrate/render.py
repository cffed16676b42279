"""The report as text for a terminal or a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from .report import Edit, FileReport, Note, Report, counted

if TYPE_CHECKING:
    from .verify.ladder import Ladder

SAID_OF = re.compile(r"\A`[^`]*`")
ONE_BY_ONE = 5  # notes of one cause in a file


def render(report: Report, where: Path | None = None, to_stderr: bool = False) -> None:
    """One line an edit, `path:line:column: CODE message`, then what needs a person, then a summary."""
    if where is not None:
        with where.open("w", encoding="utf-8", errors="backslashreplace") as f:
            _render(report, Console(file=f, width=1000, color_system=None))
    else:
        _render(report, Console(stderr=to_stderr, soft_wrap=True, highlight=False))


def _render(report: Report, console: Console) -> None:
    for f in report.files:
        if f.error is None:
            _render_file(f, console)
    changed = [f for f in report.files if f.changed]
    failed = sum(f.error is not None for f in report.files)
    notes = sum(len(f.attention) for f in report.files)
    edits = sum(len(f.edits) for f in report.files)
    parts = [f"{counted(len(changed), 'file')} changed", counted(edits, "edit")]
    if notes:
        parts.append(f"{counted(notes, 'place')} to look at")
    if failed:
        parts.append(f"{counted(failed, 'file')} could not be read")
    console.print(Text(", ".join(parts), style="bold"))


def _render_file(f: FileReport, console: Console) -> None:
    if not f.edits and not f.attention and not f.changed:
        return
    line = Text(f"{f.path}", style="bold")
    line.append(f"  plan: {f.plan}", style="cyan")
    if f.output and f.output != f.path:
        line.append(f"  -> {f.output}")
    console.print(line)
    rows: list[Note] = sorted([*f.edits, *f.attention], key=lambda n: (n.line, n.column, n.code, n.message))
    alike = _of_one_cause(n for n in rows if not isinstance(n, Edit))
    for n in rows:
        others = alike.get(_cause(n), []) if not isinstance(n, Edit) else []
        if others and n is not others[0]:
            continue
        more = f", and at {len(others) - 1} more of its kind: lines {_lines(others[1:])}" if others else ""
        kind = "" if isinstance(n, Edit) else f"  (look at this{more})"
        row = Text(f"  {f.path}:{n.line}:{n.column}: ")
        row.append(n.code, style="green" if not kind else "yellow")
        row.append(f" {n.message}{kind}")
        console.print(row)


def _cause(n: Note) -> tuple[str, str]:
    """What is said, but for the code that it is said of."""
    return n.code, SAID_OF.sub("", n.message)


def _of_one_cause(notes: Iterable[Note]) -> dict[tuple[str, str], list[Note]]:
    """The notes that are told once for all, by their cause: more than a reader would read one by one."""
    found: dict[tuple[str, str], list[Note]] = {}
    for n in notes:
        found.setdefault(_cause(n), []).append(n)
    return {cause: of for cause, of in found.items() if len(of) > ONE_BY_ONE}


def _lines(notes: list[Note]) -> str:
    return ", ".join(str(line) for line in dict.fromkeys(n.line for n in notes))


def render_ladder(ladder: Ladder) -> None:
    """The ladder as a table, and one sentence on what it means."""
    from rich.table import Table

    console = Console(highlight=False)
    table = Table("rung", "result", "what was seen")
    colours = {"yes": "green", "no": "red", "not tried": "yellow"}
    for r in ladder.rungs:
        table.add_row(r.name, Text(r.result, style=colours[r.result]), r.detail)
    console.print(table)
    if ladder.missing is not None:
        says = f"nothing is proven: the original does not run here ({ladder.original}): {ladder.missing.way_out}"
        console.print(Text(says, style="yellow"))
    else:
        console.print(Text("the result trains the same" if ladder.proven else "the result is not proven", style="bold"))
