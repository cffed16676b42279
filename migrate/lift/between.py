"""A network that works on tensors of its own before each of several trainings, as an agent that plays and then learns.

The script placed it before all of them. A Trainer does when the first begins: what the network was given before that,
on the script's device, would find it on the CPU.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from .networks import made_network
from .recipe import CannotLift, Recipe

if TYPE_CHECKING:
    from .rewriting import Rewriter

KEEPS = ("load_state_dict", "train", "eval", "to", "apply", "register_buffer", "requires_grad_")


def check_between(r: Rewriter) -> None:
    """Raise where a loop around the lifted one gives the network something above it, which no loader gives."""
    if r.facts.without_devices:
        return  # it stays where it was made, and so do its tensors
    homes = (r.binder.trunk_scope, r.facts.scopes.module)
    for call in _calls_above(r.facts, r.recipe, r.variables.constructor, homes):
        says = f"`{r.facts.short(call)}`: the model works before each training, which is when a Trainer places it"
        raise CannotLift(call, says)


def _calls_above(facts: Facts, recipe: Recipe, names: Iterable[str], homes: tuple[Scope, Scope]) -> Iterator[ast.Call]:
    networks = {n for n in names if any(made_network(facts, n, home) is not None for home in homes)}
    at: ast.AST = recipe.epoch_loop
    while not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
        up = facts.scopes.parents[at]
        if isinstance(up, (ast.For, ast.While)) and at in up.body:
            above = up.body[: up.body.index(at)]
            made_here = {n.id for s in above for n in walk(s, ast.Name) if isinstance(n.ctx, ast.Store)}
            for call in (c for s in above for c in walk(s, ast.Call) if given_to(c)):
                name = _network(call)
                # once a Trainer has placed one, loaders give what is there, and what is made anew is not
                if name in networks and (name in made_here or not _of_loader(facts, call)):
                    yield call
        at = up


def _network(call: ast.Call) -> str | None:
    """The `net` of `net(x)` and of `net.act(x)`."""
    f = call.func
    if isinstance(f, ast.Attribute):
        return f.value.id if isinstance(f.value, ast.Name) and f.attr not in KEEPS else None
    return f.id if isinstance(f, ast.Name) else None


def _of_loader(facts: Facts, call: ast.Call) -> bool:
    loops = (up for up in facts.scopes.ancestors(call) if isinstance(up, ast.For))
    return any(facts.loops.is_loader(loop.iter) for loop in loops)
