"""Seeds that told the ranks apart: where batches are drawn by hand, each rank had its own, and has no more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .codemods.plain_branches import PlainBranches
from .facts.nodes import walk
from .facts.script import Facts
from .facts.world import PEERS
from .report import Note

SEEDS = re.compile(r"seed|default_rng|RandomState", re.IGNORECASE)
WHOLE = re.compile(r"is no DataLoader\Z|a kept loop's data is not divided")
STATEMENTS = (ast.Expr, ast.Assign, ast.AugAssign)


def told(original: Facts, notes: list[Note]) -> Iterator[Note]:
    """`torch.manual_seed(seed + rank)`, where every process computes the batches that it draws itself."""
    text = original.text.text
    whole = next((m.group() for n in notes if (m := WHOLE.search(n.message))), None)
    if not (original.by_hand and whole and SEEDS.search(text)) or (whole.startswith("a kept") and _loads(original)):
        return
    for kind in STATEMENTS:
        for s in original.walk(kind):
            shown = SEEDS.search(original.text.get(s)) is not None and SEEDS.search(ast.unparse(s)) is not None
            if shown and any(_is_rank(original, n) for n in walk(s)):
                line, column, _, _ = original.text.key(s)
                says = "the ranks drew other batches; now every process draws, and computes, the same ones"
                yield Note(line, column + 1, PlainBranches.code, f"`{original.short(s)}`: {says}")


def _loads(facts: Facts) -> bool:
    return any((facts.names.resolve(c.func) or "").endswith(".DataLoader") for c in facts.walk(ast.Call))


def _is_rank(facts: Facts, node: ast.AST) -> bool:
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        return False
    known = [facts.worlds.value(node, w) for w in PEERS]
    return len({k.value for k in known if k is not None and k.asked}) == len(PEERS)
