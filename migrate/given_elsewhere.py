"""What a file gives functions of other files that move it, and that nothing but the script places.

`def put(x): return x.float().cuda()` stands in one file, `put(torch.from_numpy(a))` in another.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from .codemods.inline_movers import said_here
from .facts.other_files import name_there
from .facts.script import Facts
from .facts.source import SourceError, mentions_torch, read_source

# a short function that moves what it is given first, and gives it back: `def to_gpu(x):`
# each part has one way to match a line: with more, the deep margins of a real file took hours
MOVER = re.compile(
    r"^def (\w+)\(\s*\w+[^\n:]*[:\n][^\n]*\n?(?:(?:[ \t)][^\n]*)?\n){0,40}?[ \t][^\n]*\.(?:cuda|to)\(", re.MULTILINE
)

WORD = re.compile(r"\w+")
LIBRARIES = ("torch.", "numpy.")


def given_made(paths: list[Path], movers: dict[str, str]) -> dict[Path, frozenset[tuple[str, int]]]:
    """For each file, the functions of others and the place of the argument; not where `movers` have it said there."""
    texts = {path: text for path in paths if (text := _text(path))}
    found: dict[Path, frozenset[tuple[str, int]]] = {}
    homes: dict[str, set[Path]] = {}
    for path, text in texts.items():
        for name in MOVER.findall(text):
            homes.setdefault(name, set()).add(path)
    for path, text in texts.items() if homes else ():
        called = {name for name in set(WORD.findall(text)) if homes.get(name, {path}) != {path}}
        if called and (given := _given(text, called, movers)):
            found[path] = given
    return found


def _given(text: str, called: set[str], movers: dict[str, str]) -> frozenset[tuple[str, int]]:
    try:
        facts = Facts(text)
    except (SyntaxError, RecursionError):
        return frozenset()
    given: set[tuple[str, int]] = set()
    for call in facts.walk(ast.Call):
        full = name_there(facts, call.func) or ""
        name = full.rpartition(".")[2]
        if name not in called or full.startswith(LIBRARIES) or said_here(facts, call, movers) is not None:
            continue
        given.update((name, i) for i, a in enumerate(call.args) if _is_left(facts, a))
    return frozenset(given)


def _is_left(facts: Facts, node: ast.expr) -> bool:
    """Whether nothing but the script places a value that may be a tensor."""
    if facts.tensors.made(node):
        return True
    return isinstance(node, (ast.Subscript, ast.Call, ast.Attribute)) and not facts.placed.by_runtime(node)


def _text(path: Path) -> str:
    try:
        source = read_source(path)
    except SourceError:
        return ""
    return source.text if mentions_torch(source.raw) else ""
