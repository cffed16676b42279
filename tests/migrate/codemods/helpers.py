"""What every codemod's tests ask: the exact result, the report, and that nothing else moved."""

from __future__ import annotations

import ast
import difflib
import re
import textwrap

from ptmigrate.migrate.facts.source import decode
from ptmigrate.migrate.migrate import Options, Result, migrate_text

VARIANTS = {
    "as it is": lambda s: s,
    "CRLF": lambda s: s.replace("\n", "\r\n"),
    "tabs": lambda s: "".join(_tabbed(line) for line in s.splitlines(True)),
    "no newline at the end": lambda s: s.removesuffix("\n"),
    "an umlaut before": lambda s: "ü = 'ß'\n" + s,
    "latin-1 and form feeds": lambda s: "# -*- coding: latin-1 -*-\n\x0c\nü = 'ß'\n\x0c\n" + s + "\x0c\n# end",
}


def _tabbed(line: str) -> str:
    margin = len(line) - len(line.lstrip(" "))
    return "\t" * (margin // 4) + " " * (margin % 4) + line.lstrip(" ")


def dedent(source: str) -> str:
    return textwrap.dedent(source).lstrip("\n")


def migrated(text: str, select: str = "") -> Result:
    """The file as a module that a script imports: edited, no loop lifted; its imports, and what is still moved in the
    result, are other tests'.
    """
    options = Options(select=tuple(filter(None, select.split(","))), ignore=("PTM690", "PTM115"))
    return migrate_text(text, options, is_script=False)


def check(
    before: str, after: str, says: list[str] | None = None, attention: list[str] | None = None, select: str = ""
) -> None:
    """Before becomes after, in every form of line end and indentation, and `says` is the beginning of each edit told.

    Lines of the report read `PTM101 line 3: ...`.
    """
    before, after = dedent(before), dedent(after)
    for name, form in VARIANTS.items():
        if name == "tabs" and not re.search(r"(?m)^ ", before):
            continue  # nothing shows how such a file is indented
        result = migrated(form(before), select)
        assert result.text == form(after), f"{name}:\n{result.text}"
        ast.parse(result.text)
        _bytes_are_kept(form(before), form(after))
        again = migrated(result.text, select)
        assert again.text == result.text, f"a second run changes more ({name}):\n{again.text}"
    result = migrated(before, select)
    assert result.edits, "changed, and not told"
    _changed_lines_are_told(before, result)
    if says is not None:
        _matches(result.edits, says)
    if attention is not None:
        _matches(result.attention, attention)


def _bytes_are_kept(before: str, after: str) -> None:
    """What is read as bytes is written as the bytes of the result: encoding and byte order mark are the file's."""
    encoding = "latin-1" if "coding: latin-1" in before else "utf-8"
    for mark in (b"", b"\xef\xbb\xbf") if encoding == "utf-8" else (b"",):
        source = decode(mark + before.encode(encoding))
        assert source.text == before and source.encode(after) == mark + after.encode(encoding)


def check_unchanged(source: str, attention: list[str] | None = None, select: str = "") -> Result:
    source = dedent(source)
    for name, form in VARIANTS.items():
        result = migrated(form(source), select)
        assert result.text == form(source), f"{name}:\n{result.text}"
    result = migrated(source, select)
    assert not result.edits
    if attention is not None:
        _matches(result.attention, attention)
    return result


def _matches(notes: list, expected: list[str]) -> None:
    told = [f"{n.code} line {n.line}: {n.message}" for n in sorted(notes)]
    assert len(told) == len(expected) and all(t.startswith(e) for t, e in zip(told, expected, strict=True)), told


def _changed_lines_are_told(before: str, result: Result) -> None:
    """Every line that changed lies within the statements that the report names."""
    tree = ast.parse(before)
    told: set[int] = set()
    for edit in result.edits:
        told.add(edit.line)
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt) and node.lineno <= edit.line <= (node.end_lineno or 0):
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
                compound = isinstance(node, ast.FunctionDef | ast.ClassDef | ast.For | ast.With | ast.Try)
                if not compound or node.lineno == edit.line:
                    told.update(range(first, (node.end_lineno or first) + 1))
    lines = difflib.SequenceMatcher(None, before.splitlines(), result.text.splitlines(), autojunk=False)
    text = before.splitlines()
    for op, a, b, _, _ in lines.get_opcodes():
        if op in ("replace", "delete"):
            silent = [n + 1 for n in range(a, b) if n + 1 not in told and text[n].strip()]
            assert not silent, f"lines {silent} changed, and are not told"


def net(*lines: str, method: str = "def forward(self, x):", base: str = "nn.Module") -> str:
    """A module of torch's, or of Lightning's by `base`, with one method of these lines."""
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"import torch\nimport torch.nn as nn\nimport pytorch_lightning as pl\nclass Net({base}):\n    {method}\n{body}"
    )
