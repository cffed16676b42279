"""What a migration tells: every edit and every place that wants a person, with code, place and reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

LINES = re.compile(r"(?<!\.py, )\bline (\d+)")
N = TypeVar("N", bound="Note")


@dataclass(frozen=True, order=True)
class Note:
    """A place in the original file (1-based line, 1-based column) and what is said of it."""

    line: int
    column: int
    code: str
    message: str


@dataclass(frozen=True, order=True)
class Edit(Note):
    safe: bool = True


def at_line(note: N, line: Callable[[int], int]) -> N:
    """The same where its text is another by now: `line` gives the lines of the original, for what it names too."""
    at, message = line(note.line), note.message
    if "line " in message:
        parts = message.split("`")
        parts[::2] = [LINES.sub(lambda m: f"line {line(int(m.group(1)))}", p) for p in parts[::2]]
        message = "`".join(parts)
    return replace(note, line=at, message=message) if at != note.line or message != note.message else note


@dataclass
class FileReport:
    path: str
    plan: str = "none"
    output: str | None = None
    edits: list[Edit] = field(default_factory=list)
    attention: list[Note] = field(default_factory=list)
    error: str | None = None
    changed: bool = False

    def as_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {
            "path": self.path,
            "plan": self.plan,
            "output": self.output,
            "edits": [asdict(e) for e in sorted(self.edits)],
            "attention": [asdict(n) for n in sorted(self.attention)],
        }
        if self.error is not None:
            row["error"] = self.error
        return row


@dataclass
class Report:
    files: list[FileReport] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 done, 1 something needs attention, 2 a file could not be read or parsed."""
        if any(f.error for f in self.files):
            return 2
        return 1 if any(f.attention for f in self.files) else 0

    def as_json(self) -> dict[str, Any]:
        plans: dict[str, int] = {}
        for f in self.files:
            plans[f.plan] = plans.get(f.plan, 0) + 1
        return {
            "version": 1,
            "files": [f.as_json() for f in self.files],
            "summary": {
                "files": len(self.files),
                "changed": sum(f.changed for f in self.files),
                "edits": sum(len(f.edits) for f in self.files),
                "attention": sum(len(f.attention) for f in self.files),
                "errors": sum(f.error is not None for f in self.files),
                "plans": plans,
            },
        }


def counted(n: int, what: str) -> str:
    """`1 file`, `2 files`"""
    return f"{n} {what}{'' if n == 1 else 's'}"
