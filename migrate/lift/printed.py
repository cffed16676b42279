"""What an evaluation's step prints: where batches go round among the ranks, rank 0 has only some of them.

A line for each batch is printed in the order of one process when the batches are over. What else shows the samples (a
log, a writer) is told of. A sum so far is not there before all ranks' batches are: a step that reads it has them all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..facts.arguments import given_to
from ..facts.loops import last_part
from ..facts.nodes import FUNCTIONS
from ..facts.script import Facts
from .nodes import local_function, names_of, walk_here
from .recipe import CannotLift, DataPass, Recipe
from .shown import is_picture, is_print, keeps, of_the_batch, reads_part, shows, spread
from .written import is_of_first_batch

if TYPE_CHECKING:
    from .chunks import Variable

# a line that the next one takes the place of: tqdm's, or one of a function `progress_bar(i, n, text)`
BAR = re.compile(r"set_post|set_desc|(^|_)p?bar($|_)|progress", re.IGNORECASE)


def printed(facts: Facts, passing: DataPass) -> set[ast.stmt]:
    """The statements that print a line for a batch; what is printed into a file, which cannot be sent, is none."""
    found = set[ast.stmt]()
    for n in (n for s in passing.body for n in walk_here(s)):
        if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and is_print(n.value):
            to_file = any(k.arg in (None, "file") for k in n.value.keywords)
            if not to_file and not is_of_first_batch(facts, n.value, passing):
                found.add(n)
    return found


def shows_its_part(facts: Facts, recipe: Recipe) -> Iterator[ast.Call]:
    """The calls of a divided evaluation's step that show what this process has of the batches."""
    passing = recipe.evaluate
    if passing is None or recipe.whole_evaluation is not None:
        return
    part = of_the_batch(passing, set(), {})
    added = (n.target for s in passing.body for n in walk_here(s) if isinstance(n, ast.AugAssign))
    so_far = spread(passing.body, {t.id for t in added if isinstance(t, ast.Name)}, set(), {})
    made = {s.value for s in recipe.in_order if isinstance(s, ast.Expr)}
    for call in (n for s in passing.body for n in walk_here(s) if isinstance(n, ast.Call)):
        bar = _is_of_bar(call)  # the last one stays on the screen
        says = _shows_within(facts, call)
        told = bar or _shows(call) or says
        if not told or call in made or is_of_first_batch(facts, call, passing):
            continue
        if says or any(reads_part(e, so_far if bar else part, {}) is not None for e in given_to(call)):
            yield call


def _shows(call: ast.Call) -> bool:
    return (shows(call) or is_picture(call)) and not keeps(call)


def _shows_within(facts: Facts, call: ast.Call) -> bool:
    """Whether a function of this file says something each time: `def say(i, y): print(i, y.shape)`."""
    f = local_function(facts, call.func) if isinstance(call.func, ast.Name) else None
    ahead: list[ast.AST] = [*f.body] if f is not None else []
    for n in ahead:  # which grows meanwhile
        if isinstance(n, ast.Call) and _shows(n):
            return True
        if not isinstance(n, (ast.If, ast.IfExp, ast.BoolOp, ast.Try, *FUNCTIONS, ast.Lambda, ast.ClassDef)):
            ahead += ast.iter_child_nodes(n)
    return False


def check_sums_so_far(facts: Facts, passing: DataPass, reads: list[tuple[ast.Name, Variable]]) -> None:
    """Raise for a sum that the evaluation's step reads. `reads`: where it reads what the ranks bring together."""
    for n, var in reads:
        if not _only_for_bar(facts, passing, n):
            raise CannotLift(n, f"`{var.name}` is read in the step before all of it is there")


def _only_for_bar(facts: Facts, passing: DataPass, n: ast.Name) -> bool:
    """Whether a value goes to a progress bar and nowhere else, at once or under one name: `acc = hits / seen`."""
    if any(isinstance(up, ast.Call) and _is_of_bar(up) for up in facts.scopes.ancestors(n)):
        return True
    s = facts.scopes.statement_of(n)
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    if not isinstance(target, ast.Name):
        return False
    others = [m for s in (*passing.body, *passing.after) for m in names_of(s) if m.id == target.id and m is not target]
    ups = [list(facts.scopes.ancestors(m)) for m in others]
    return all(any(isinstance(up, ast.Call) and _is_of_bar(up) for up in each) for each in ups)


def _is_of_bar(call: ast.Call) -> bool:
    return BAR.search(last_part(call.func) or "") is not None
