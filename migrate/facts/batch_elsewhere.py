"""What a step calls of the project's other files, followed there: a loss of `losses.py` may mix samples as one here."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from .arguments import is_static
from .batch_functions import constants, is_loss_class, makers
from .batch_values import REDUCED, Value
from .other_files import There, defined_there

if TYPE_CHECKING:
    from .batch_calls import BatchCall


def followed_there(of: BatchCall) -> Value | None:
    """What a call gives that another file has the function for, or the loss; None where none shows it."""
    run, call = of.run, of.call
    if not run.facts.others:
        return None
    made = makers(run, call.func)
    there = defined_there(run.facts, made[0].func if made else call.func)
    if there is None or (there.holder is not None) != bool(made):
        return None
    if there.holder is not None and not is_loss_class(there.facts, there.holder):
        return None
    f = there.f
    names = [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
    names = names[1:] if there.holder is not None and not is_static(f) else names
    given = {**dict(zip(names, of.args, strict=False)), **{k: v for k, v in of.keywords.items() if k}}
    if f.args.vararg is not None:
        given[f.args.vararg.arg] = run.held(of.args[len(names) :])
    inside = there.facts.mixing.flow(f, given, there.holder, constants(call, f, names))
    found = run.joined(inside.returned) if inside.returned else REDUCED
    if inside.mixes:
        run.flow.mixes.append(call)
        run.flow.there[call] = place_of(there, inside.mixes[0])
    elif found.all_bent():
        run.flow.there[call] = place_of(there, found.all_bent()[0])
    found = found.bent_by(call)
    return replace(found, sorts=found.sorts and call, met=found.met and call)


def place_of(there: There, node: ast.AST) -> str:
    """`torch.mm(z, z.t())` in pairs() of losses.py"""
    ups = [up.name for up in there.facts.scopes.ancestors(node) if isinstance(up, ast.FunctionDef | ast.ClassDef)]
    return f"`{there.facts.short(node)}` in {'.'.join(reversed(ups))}() of {there.file.stem}.py"
