"""Whether ranks add to a sum as often as one process does: what the step asks around it of its batch."""

from __future__ import annotations

import ast

from ..facts.batch_tests import asks_values
from ..facts.nodes import walk
from ..facts.script import Facts
from .counted import Counted
from .mixes import flow_of
from .recipe import CannotLift, DataPass
from .shown import of_the_batch

NUMBERED = ("range", "enumerate")


def once_a_sample(facts: Facts, passing: DataPass, added: ast.AugAssign) -> bool:
    """Whether a loop over the samples stands around it, so that the ranks add it up; CannotLift where they would not.

    `for o, t in zip(out, y): if o.argmax() == t: hits += 1` is a sum; `if loss.item() < 1: good += 1` is none.
    """
    part = of_the_batch(passing, set(), {})
    around: list[tuple[ast.stmt, ast.expr]] = []
    for up in facts.scopes.ancestors(added):
        if up is passing.loop:
            break
        if isinstance(up, (ast.If, ast.While, ast.For)):
            around.append((up, up.iter if isinstance(up, ast.For) else up.test))
    while around and not asks_values(around[-1][1], part):
        around.pop()
    if not around:
        return False
    loop = around[-1][0]
    counted = Counted(facts, passing.body, lambda: flow_of(facts, passing))
    if not isinstance(loop, ast.For) or not counted.goes_through_samples(loop.iter):
        raise CannotLift(added, f"`{facts.short(added)}` is added where the step asks for values of its batch")
    numbers = _numbers(loop)
    own = _of_each(loop, part, numbers)
    if not all(_of_sample(asked, part, own, numbers) for _, asked in around[:-1]):
        raise CannotLift(added, f"`{facts.short(added)}` is added by more than what its own sample is")
    return True


def _of_each(loop: ast.For, part: set[str], numbers: set[str]) -> set[str]:
    """The names that a loop gives the samples one by one, and those that it gives what is computed of one."""
    own = {n.id for n in walk(loop.target, ast.Name)} - numbers
    for s in loop.body:
        if isinstance(s, ast.Assign) and _of_sample(s.value, part, own, numbers):
            own |= {t.id for t in s.targets if isinstance(t, ast.Name)}
    return own


def _numbers(loop: ast.For) -> set[str]:
    """The names in a loop's target that number the samples: the i of `range(len(x))`, of `enumerate(x)`."""
    call = loop.iter
    name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
    if name not in NUMBERED:
        return set()
    numbered = loop.target.elts[0] if name == "enumerate" and isinstance(loop.target, ast.Tuple) else loop.target
    return {n.id for n in walk(numbered, ast.Name)}


def _of_sample(e: ast.AST, part: set[str], own: set[str], numbers: set[str]) -> bool:
    """Whether an expression reads no more of the batch than one sample: `o.argmax() == t`, `out[i] > 0`."""
    if isinstance(e, ast.Subscript) and isinstance(e.slice, ast.Name) and e.slice.id in numbers:
        return True
    if isinstance(e, ast.Name):
        return e.id not in numbers and (e.id in own or e.id not in part)
    return all(_of_sample(child, part, own, numbers) for child in ast.iter_child_nodes(e))
