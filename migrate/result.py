"""What a migration was asked for, and what came of it for one file."""

from __future__ import annotations

from dataclasses import dataclass, field

from .report import Edit, Note


@dataclass
class Options:
    """What the user asked for: which codes to apply, and whether a loop may be lifted."""

    plan: str = "auto"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    checkpoint: tuple[str, ...] = ()  # attributes of modules whose activations are computed again in backward
    framework: str = "ptmigrate"  # or lightning: which package a lifted result imports
    in_place: bool = False  # the files themselves change: others beside them may import from them
    of_lifted: bool = False  # the file is one that a lifted script imports: its output is rank 0's too

    def wants(self, code: str) -> bool:
        return (not self.select or code.startswith(self.select)) and not code.startswith(self.ignore)


@dataclass
class Result:
    """The new text of a file; `text` is the old one when nothing had to change."""

    text: str
    plan: str
    edits: list[Edit] = field(default_factory=list)
    attention: list[Note] = field(default_factory=list)
    reason: str = ""  # why there is nothing to do
    framework: str = "ptmigrate"  # what the result runs on
