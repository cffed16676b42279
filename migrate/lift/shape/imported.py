"""What a loop over epochs, or a pass over the data, imports is imported above it: methods share no names.

`import numpy as np` in the loop goes above it, and that of `def train(...):` to the imports of the file.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..splice import Splice
from .edits import Edits
from .hoist import passes_of

Import = ast.Import | ast.ImportFrom


def import_above(facts: Facts) -> str | None:
    """The text with one import moved; None where there is none to move."""
    passes = passes_of(facts)
    imports: list[Import] = [*facts.walk(ast.Import), *facts.walk(ast.ImportFrom)]
    inside = [s for s in imports if s not in facts.tree.body]
    for s in inside:
        where = _where(facts, s, passes)
        if where is not None and not Splice(facts.text).shares_a_line(s):
            edits = Edits(facts)
            edits.replace_lines(s.lineno, s.end_lineno or s.lineno, _left(facts, s))
            line = facts.text.line_of(facts.text.span(where)[0])
            edits.replace_lines(line, line - 1, [facts.text.margin(where) + facts.text.get(s)])
            return edits.done()
    return None


def _where(facts: Facts, s: Import, passes: set[ast.AST]) -> ast.stmt | None:
    """The statement that an import goes above; None where it stays."""
    names = [(a.asname or a.name).partition(".")[0] for a in s.names]
    loops: list[ast.AST] = []
    child: ast.AST = s
    for up in facts.scopes.ancestors(s):
        if isinstance(up, (ast.FunctionDef, ast.Module)):
            break
        if not (isinstance(up, (ast.For, ast.While)) and child in up.body):
            return None  # not in every round, or as an attempt
        loops.append(up)
        child = up
    scope = facts.scopes.scope_of(s)
    reads = [r for n in names for r in facts.scopes.reads(n, scope)]
    hot = [loop for loop in loops if loop in facts.loops.hot_loops]
    if "*" in names or all(any(r in walk(loop) for loop in hot) for r in reads):
        return None
    if loops and (len(loops) > len(hot) or not isinstance(up, ast.FunctionDef)):
        return child if isinstance(child, ast.stmt) and _trains(facts, child, passes) else None
    one_pass = isinstance(up, ast.FunctionDef) and up in passes and not _has_epochs(facts, up)
    taken = any(n in facts.scopes.module.stores for n in names)
    return _first_import(facts) if one_pass and not taken else None


def _has_epochs(facts: Facts, f: ast.FunctionDef) -> bool:
    return any(n in facts.loops.hot_loops and facts.loops.epoch_loop(n) is not None for n in walk(f))


def _trains(facts: Facts, loop: ast.stmt, passes: set[ast.AST]) -> bool:
    """Whether a pass over the data is made in a loop, or in a function that is called there."""
    names = {f.name for f in passes if isinstance(f, ast.FunctionDef)}
    return any(
        n in facts.loops.hot_loops
        or (isinstance(n, ast.Call) and getattr(n.func, "attr", getattr(n.func, "id", "")) in names)
        for n in walk(loop)
    )


def _first_import(facts: Facts) -> ast.stmt | None:
    above = (s for s in facts.tree.body if isinstance(s, Import))
    return next((s for s in above if getattr(s, "module", "") != "__future__"), None)


def _left(facts: Facts, s: Import) -> list[str]:
    """What takes the place of an import that stood alone."""
    block = facts.scopes.block_of(s)
    return [facts.text.margin(s) + "pass"] if len(block) == 1 else []
