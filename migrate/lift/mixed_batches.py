"""Batches whose samples a collate_fn mixes, as mixup does there: a process that collates its share mixes others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from ..facts.nodes import FUNCTIONS, walk
from ..facts.script import Facts
from .mixes import STRAIGHT
from .padded import collating, functions
from .recipe import CannotLift

# over another dimension than the first: what puts the samples together may have been given that by then
ALONG = re.compile(r"(dim|axis)=\(?-?[1-9]|\((-\d|[1-9])[,)]")
COLLATES = ("torch.", "default_collate")


def mixed_batches(facts: Facts) -> CannotLift | None:
    """Why the step needs whole batches: a collate_fn of the project mixes the samples that it puts together."""
    files = [(o.facts() if "collate_fn" in o.text else None, f" in {o.stem}") for o in facts.others]
    for home, where in [(facts, ""), *((there, where) for there, where in files if there is not None)]:
        for given in collating(home):
            mixing = next((n for there, f in functions(home, given) for n in _mixing(there, f)), None)
            if mixing is not None:
                says = f"`{home.short(given)}`{where} mixes the samples of a batch: `{mixing}`"
                return CannotLift(given if home is facts else facts.tree.body[0], says)
    return None


def _mixing(facts: Facts, f: ast.AST) -> Iterator[str]:
    """What mixes the rows of tensors that a function makes of the samples it is given."""
    if not isinstance(f, FUNCTIONS):
        return
    holder = facts.classes.holder(f)
    names = [a.arg for a in f.args.args][holder is not None :]
    if not names:
        return
    flow = facts.mixing.flow(f, {names[0]: replace(STRAIGHT, holds=True)}, holder)
    made = (s for s in walk(f, ast.Assign) if _makes_tensors(facts, s.value))
    rows = {n.id for s in made for t in s.targets for n in walk(t, ast.Name)}
    for node in (n for n in flow.mixes if not ALONG.search(facts.text.get(n))):
        if _makes_tensors(facts, node) or any(n.id in rows for n in walk(node, ast.Name)):
            yield facts.short(node)


def _makes_tensors(facts: Facts, node: ast.AST) -> bool:
    made = (facts.names.resolve(c.func) or ast.unparse(c.func) for c in walk(node, ast.Call))
    return any(name.startswith(COLLATES) for name in made)
