"""PTM603: async became a word of the language in Python 3.7, and a file with `async=` does not even parse."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..edits import Edit, Repair
from ..file import File, last_part
from ..rule import Finding, Rule

ARGUMENT = re.compile(r"([(,]\s*)async(\s*=(?!=))")
STAND_IN = "asyn_"  # as long as the word, so that every place in the text stays
# what the argument is called today, by the function that takes it
COPIES = ("cuda", "to", "copy_", "type", "cpu")
COLLECTIVES = ("all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "barrier", "reduce_scatter")


class AsyncArgument(Rule):
    code = "PTM603"
    name = "async-argument"
    why = (
        "`async` has been a keyword since Python 3.7: a file with `async=` is a syntax error. The argument is called "
        "`non_blocking` for copies and `async_op` for collectives."
    )
    fix = "safe"

    BAD = """
        import torch
        x = x.cuda(async=True)
        """
    GOOD = """
        import torch
        x = x.cuda(non_blocking=True)
        """

    def check_file(self, file: File) -> Iterator[Finding]:
        for k in file.old_async:
            call = file.nodes.parents.get(k)
            known = isinstance(call, ast.Call) and last_part(call.func) in COPIES + COLLECTIVES
            text = f"`async=` is a syntax error since Python 3.7; use {k.arg}="
            yield self.finding(k, text, file, _renamed(k) if known else None)


def parse_mended(text: str) -> tuple[ast.Module, list[ast.keyword]] | None:
    """The tree with today's names of the arguments, and those arguments; None where that is not what is wrong."""
    mended, count = ARGUMENT.subn(rf"\1{STAND_IN}\2", text)
    if not count:
        return None
    try:
        tree = ast.parse(mended)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = []
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        for k in call.keywords:
            if k.arg == STAND_IN:
                k.arg = "async_op" if (last_part(call.func) or "") in COLLECTIVES else "non_blocking"
                found.append(k)
    return tree, found


def _renamed(k: ast.keyword) -> Repair:
    def repair(text: object) -> list[Edit]:
        start = text.span(k)[0]  # type: ignore[attr-defined]
        return [Edit(start, start + len("async"), k.arg or "")]

    return repair
