"""The report as text for a terminal or a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from .report import Edit, FileReport, Note, Report

if TYPE_CHECKING:
    from .verify.ladder import Ladder


def render(report: Report, where: Path | None = None, to_stderr: bool = False) -> None:
    """One line an edit, `path:line:column: CODE message`, then what needs a person, then a summary."""
    if where is not None:
        with where.open("w", encoding="utf-8") as f:
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
    parts = [f"{_count(len(changed), 'file')} changed", _count(edits, "edit")]
    if notes:
        parts.append(f"{_count(notes, 'place')} to look at")
    if failed:
        parts.append(f"{_count(failed, 'file')} could not be read")
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
    for n in rows:
        kind = "" if isinstance(n, Edit) else "  (look at this)"
        row = Text(f"  {f.path}:{n.line}:{n.column}: ")
        row.append(n.code, style="green" if not kind else "yellow")
        row.append(f" {n.message}{kind}")
        console.print(row)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


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
