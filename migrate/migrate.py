"""One file from text to text: facts, plan, edits."""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass, field, replace

from .codemods.base import Change, Codemod, apply
from .codemods.once import PRINT, SAVE, Once
from .codemods.remove_device_calls import RemoveDeviceCalls
from .codemods.remove_unused_devices import RemoveUnusedDevices
from .facts.choice import accelerator
from .facts.script import Facts
from .lift.imports import add_imports
from .lift.recipe import CannotLift
from .report import Edit, Note

MODULE_NAMES = ("Module", "Trainer")


@dataclass
class Options:
    """What the user asked for: which codes to apply, and whether a loop may be lifted."""

    plan: str = "auto"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def wants(self, code: str) -> bool:
        return (not self.select or any(code.startswith(s) for s in self.select)) and not any(
            code.startswith(i) for i in self.ignore
        )


@dataclass
class Result:
    """The new text of a file; `text` is the old one when nothing had to change."""

    text: str
    plan: str
    edits: list[Edit] = field(default_factory=list)
    attention: list[Note] = field(default_factory=list)


def migrate_text(text: str, options: Options | None = None, is_script: bool = True) -> Result:
    """Migrate one file. `is_script` is False for modules that a script imports: their loops are not lifted.

    Raises SyntaxError when the text does not parse.
    """
    options = options or Options()
    if "torch" not in text:
        return Result(text, "none")
    facts = Facts(text)
    changes = _device_changes(facts, options)
    plain = apply(facts, changes)
    edits = [c.edit for c in changes]
    if already_migrated(facts):
        return Result(plain, "none" if not edits else "definitions", edits)
    if is_script and options.plan != "loop" and options.wants("PTM700"):
        try:
            return _lifted(facts, plain, edits, options)
        except CannotLift as why:
            decided = _decided(facts, plain, why)
            if why.node is None:
                return Result(plain, "definitions" if _defines(facts) else "none", edits)
            return Result(plain, "loop", edits, [decided])
    return Result(plain, "definitions" if edits or _defines(facts) else "none", edits)


def _device_changes(facts: Facts, options: Options) -> list[Change]:
    calls: Codemod = RemoveDeviceCalls()
    changes = list(calls.plan(facts)) if options.wants(calls.code) else []
    if options.wants(RemoveUnusedDevices.code):
        changes += RemoveUnusedDevices().plan(facts, changes)
    return changes


def _lifted(facts: Facts, plain: str, edits: list[Edit], options: Options) -> Result:
    from .lift.lift import lift

    moved = Facts(plain)
    text, more, attention = lift(moved, accelerator(facts))
    line = _line_map(plain, facts.text.text)
    edits = edits + [replace(e, line=line(e.line)) for e in more]
    attention = [replace(n, line=line(n.line)) for n in attention]
    names = [*MODULE_NAMES]
    if options.wants(Once.code):
        text, once = _once(text)
        back = _line_map(text, facts.text.text)
        edits += [replace(e, line=back(e.line)) for e in once]
        names += [n for n in (PRINT, SAVE) if f"{n}(" in text]
    text = add_imports(text, "ptmigrate.runtime", names)
    ast.parse(text)
    return Result(text, "module", edits, attention)


def _once(text: str) -> tuple[str, list[Edit]]:
    facts = Facts(text)
    changes = list(Once().plan(facts))
    return apply(facts, changes), [c.edit for c in changes]


def _decided(facts: Facts, plain: str, why: CannotLift) -> Note:
    """The line of the original that kept the loop from being lifted."""
    line = getattr(why.node, "lineno", 1)
    column = getattr(why.node, "col_offset", 0) + 1
    return Note(_line_map(plain, facts.text.text)(line), column, "PTM701", f"the loop is kept: {why.reason}")


def _line_map(new: str, old: str):  # type: ignore[no-untyped-def]
    """A function from lines of the new text to those of the old one."""
    matcher = difflib.SequenceMatcher(None, new.splitlines(), old.splitlines(), autojunk=False)
    blocks = matcher.get_opcodes()

    def line(n: int) -> int:
        for _, a, b, c, d in blocks:
            if a <= n - 1 < b:
                return min(c + (n - 1 - a), max(d - 1, c)) + 1
        return n

    return line


def already_migrated(facts: Facts) -> bool:
    return any(
        isinstance(s, ast.ImportFrom) and s.module in ("ptmigrate.runtime", "lightning.pytorch", "pytorch_lightning", "lightning")
        for s in facts.walk(ast.ImportFrom)
    )


def _defines(facts: Facts) -> bool:
    """Whether the file defines modules or data sets."""
    for c in facts.walk(ast.ClassDef):
        for base in c.bases:
            full = facts.names.resolve(base) or ""
            if full.startswith("torch."):
                return True
    return False
