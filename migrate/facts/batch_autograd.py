"""What a step runs by `Score.apply(z, y, self.memory)`, an autograd Function: its backward may fill a buffer, too."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .batch_elsewhere import place_of
from .batch_functions import held
from .batch_values import BATCH, Flow, Value, replace
from .classes import Function
from .nodes import walk
from .other_files import OtherFile, There, found_there

if TYPE_CHECKING:
    from .batch_calls import BatchCall
    from .mixing import Run
    from .script import Facts


def function_applied(of: BatchCall, of_batch: Value) -> Value | None:
    """What such a call gives, where the function mixes samples; None for any other."""
    found = _function(of.run, of.call.func)
    if found is None:
        return None
    file, facts, c = found
    forward, backward = (facts.classes.methods(c).get(name) for name in ("forward", "backward"))
    if forward is None or not forward.args.args:
        return None
    ctx, *names = (a.arg for a in forward.args.args)
    given = {**dict(zip(names, of.args, strict=False)), **{k: v for k, v in of.keywords.items() if k}}
    flow = facts.mixing.flow(forward, given, None)
    in_network = of.run.mixing.networks is not None and of.run.holder in of.facts.classes.modules
    nodes, f = flow.kept if in_network else flow.mixes, forward
    if not nodes and backward is not None and backward.args.args:
        nodes, f = _kept_behind(facts, backward, _saved(facts, forward, ctx, flow)), backward
    if not nodes:
        return None
    of.run.flow.mixes.append(of.call)
    if file is not None:
        of.run.flow.there[of.call] = place_of(There(file, facts, f, c), nodes[0])
    else:
        of.run.flow.within[of.call] = flow.within.get(nodes[0], nodes[0])
    return replace(of_batch, holds=False, loose=True)


def _function(run: Run, func: ast.expr) -> tuple[OtherFile | None, Facts, ast.ClassDef] | None:
    """The class of `Score.apply`, and of `score = Score.apply`."""
    if not (isinstance(func, ast.Attribute) and func.attr == "apply"):
        made = held(run, func) if isinstance(func, (ast.Name, ast.Attribute)) else None
        if not (isinstance(made, ast.Attribute) and made.attr == "apply"):
            return None
        func = made
    name, file, facts = func.value, None, run.facts
    home = facts.scopes.scope_of(name).lookup(name.id) if isinstance(name, ast.Name) else None
    stores = home.stores[name.id] if home is not None and isinstance(name, ast.Name) else []
    own: ast.AST | None = stores[0] if len(stores) == 1 else None
    if not isinstance(own, ast.ClassDef):
        there = found_there(facts, name) if facts.others else None
        if there is None:
            return None
        file, facts, own = there
    if not isinstance(own, ast.ClassDef):
        return None
    bases = [(facts.names.resolve(b) or ast.unparse(b)).rpartition(".")[2] for b in own.bases]
    return (file, facts, own) if "Function" in bases else None


def _saved(facts: Facts, forward: Function, ctx: str, flow: Flow) -> dict[object, Value]:
    """What forward gives its context: `ctx.save_for_backward(x, memory)`, `ctx.features = features`."""
    saved: dict[object, Value] = {}
    for s in forward.body:
        known = flow.after.get(s, {})
        for n in walk(s):
            if isinstance(n, ast.Call) and ast.unparse(n.func) == f"{ctx}.save_for_backward":
                values = [facts.mixing.value(a, known)[0] for a in n.args]
                saved["saved_tensors"] = Value(holds=True, items=tuple(enumerate(values)))
            of = n.targets[0] if isinstance(n, ast.Assign) else None
            if isinstance(n, ast.Assign) and isinstance(of, ast.Attribute) and ast.unparse(of.value) == ctx:
                saved[of.attr] = facts.mixing.value(n.value, known)[0]
    return saved


def _kept_behind(facts: Facts, backward: Function, saved: dict[object, Value]) -> list[ast.AST]:
    """Where backward gives a buffer values of the samples; what it adds up for the gradients is a sum of parts."""
    ctx, *gradients = (a.arg for a in backward.args.args)
    given = dict.fromkeys(gradients, BATCH) | {ctx: Value(holds=True, items=tuple(saved.items()))}
    if ctx == "self":
        given |= {f"self.{name}": value for name, value in saved.items()}
    return facts.mixing.flow(backward, given, None).kept
