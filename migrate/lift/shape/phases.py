"""`for phase in ["train", "val"]:` around the batch loop is written out: one pass for training, one for evaluation.

In each copy the phase is known, so what asks for it (`if phase == "train":`, `set_grad_enabled(phase == "train")`) is
answered.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..nodes import is_call_of, walk_here
from ..splice import indent
from .edits import Edits
from .known import Known

MOST = 4  # copies of a loop that a person would write out


def write_out_phases(facts: Facts) -> str | None:
    """The text with one loop over phases written out; None where there is none."""
    for loop in facts.walk(ast.For):
        phases = _phases(facts, loop)
        if phases is None:
            continue
        assert isinstance(loop.target, ast.Name)
        name, copies = loop.target.id, list[str]()
        scope = facts.scopes.scope_of(loop.target).lookup(name)
        if scope is None:
            continue
        for phase in phases:
            lines = Known(facts, scope, {name: phase}).lines(loop.body)
            copies += ([""] if copies else []) + lines
        edits = Edits(facts)
        first = facts.text.line_of(facts.text.span(loop)[0])
        edits.replace_lines(first, loop.end_lineno or first, indent(copies, facts.text.margin(loop)))
        return edits.done()
    return None


def _phases(facts: Facts, loop: ast.For) -> list[str] | None:
    """The texts that a loop around a batch loop goes through."""
    if not isinstance(loop.iter, (ast.List, ast.Tuple)) or not isinstance(loop.target, ast.Name) or loop.orelse:
        return None
    texts = [e.value for e in loop.iter.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    if len(texts) != len(loop.iter.elts) or not 1 < len(texts) <= MOST or facts.text.margin(loop).strip():
        return None
    name = loop.target.id
    for n in walk_here(loop):
        if isinstance(n, (ast.Break, ast.Continue)) and _nearest_loop(facts, n) is loop:
            return None
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and n is not loop.target:
            return None
    scope = facts.scopes.scope_of(loop)
    if any(loop not in facts.scopes.ancestors(read) for read in facts.scopes.reads(name, scope)):
        return None
    trains = any(
        isinstance(n, ast.For) and any(is_call_of(x, "backward") for x in walk(n, ast.Call)) for n in loop.body
    )
    return texts if trains else None


def _nearest_loop(facts: Facts, n: ast.AST) -> ast.AST | None:
    return next((up for up in facts.scopes.ancestors(n) if isinstance(up, (ast.For, ast.While))), None)
