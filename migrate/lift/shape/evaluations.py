"""A method that evaluates, called from the epoch loop of its class in one place, is written into the loop.

`loss, acc = self.validate()` becomes the body of validate(), which the lift reads as the epoch's evaluation: where it
is one pass over a loader whose step keeps nothing in the object.
"""

from __future__ import annotations

import ast

from ...facts.nodes import walk
from ...facts.script import Facts
from ..backwards import training_backwards
from ..collected import FILLS
from ..loaders import iterates_loader
from ..nodes import walk_here
from ..passes import flat, is_without_gradients
from ..reads import exposed
from .calls import only_call
from .inline import Inlining, can_stand


def inline_evaluation(facts: Facts) -> str | None:
    """The text with one method written into the epoch loop; None where there is none to write in."""
    loop = _epoch_loop(facts)
    found = [(f, s) for s in loop.body if (f := _evaluating(facts, s)) is not None] if loop is not None else []
    if loop is None or len(found) != 1:
        return None
    f, statement = found[0]
    call = only_call(facts, f, decorated=True)
    if call is None or facts.scopes.parents[call] is not statement or not can_stand(facts, f, call, statement):
        return None
    if not _is_one_pass(facts, f):
        return None
    return Inlining(facts, f, call, statement, _spare(facts, loop, statement)).text()


def _epoch_loop(facts: Facts) -> ast.For | None:
    """The loop in a method that holds the loop of the only backward()."""
    backwards = training_backwards(facts)
    if len(backwards) != 1:
        return None
    ups = list(facts.scopes.ancestors(backwards[0]))
    loops = [up for up in ups if isinstance(up, ast.For)]
    f = next((up for up in ups if isinstance(up, ast.FunctionDef)), None)
    return loops[1] if f is not None and facts.scopes.scope_of(f).is_class and len(loops) == 2 else None


def _evaluating(facts: Facts, s: ast.stmt) -> ast.FunctionDef | None:
    """The method of the same class that a statement calls, where it goes over a loader."""
    call = s.value if isinstance(s, (ast.Expr, ast.Assign)) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    owner = next((up for up in facts.scopes.ancestors(s) if isinstance(up, ast.ClassDef)), None)
    f = facts.classes.methods(owner).get(call.func.attr) if owner is not None else None
    if not isinstance(f, ast.FunctionDef) or ast.unparse(call.func.value) != "self":
        return None
    return f if any(iterates_loader(facts, n) for n in walk(f, ast.For)) else None


def _is_one_pass(facts: Facts, f: ast.FunctionDef) -> bool:
    statements, _ = flat(facts, f.body)
    loops = [n for s in statements for n in walk_here(s) if isinstance(n, ast.For) and iterates_loader(facts, n)]
    return (
        len(loops) == 1
        and loops[0] in statements
        and not loops[0].orelse
        and all(is_without_gradients(facts, d) for d in f.decorator_list)
        and not any(_leaves_or_keeps(n) for s in loops[0].body for n in walk(s))
    )


def _spare(facts: Facts, loop: ast.For, statement: ast.stmt) -> frozenset[str]:
    """The names of the method that nothing reads after the evaluation before they have another value."""
    at, caller, end = loop.body.index(statement), facts.scopes.scope_of(loop), loop.end_lineno or 0
    read = exposed([*loop.body[at + 1 :], *loop.body[:at]])
    read |= {name for name, loads in caller.loads.items() if any(n.lineno > end for n in loads)}
    read |= {name for below in caller.children for name in below.read()}
    return frozenset(set(caller.stores) - set(caller.params) - read)


def _leaves_or_keeps(n: ast.AST) -> bool:
    """Whether a loop is left early, or its step keeps something in the object."""
    if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load):
        return True
    filled = (
        n.func.value if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in FILLS else n
    )
    return isinstance(n, ast.Break) or (isinstance(filled, ast.Attribute) and filled is not n)
