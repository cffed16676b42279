"""What no shape of a loop can mend is seen before anything is tried: a lift that fails late costs as much as one."""

from __future__ import annotations

import ast

from ..facts.nodes import walk
from ..facts.of_inputs import is_of_inputs
from ..facts.own_methods import differentiates_nothing, own_methods
from ..facts.refusals import takes_gradients
from ..facts.script import Facts
from .networks import is_network, own_calls, set_elsewhere, with_parameters
from .recipe import CannotLift
from .uncalled import uncalled

Function = ast.FunctionDef | ast.AsyncFunctionDef
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def check_hopes(facts: Facts) -> None:
    """Raises CannotLift where a step calls a network that no line of the file sets or asks for its parameters,
    where backward() stands in no loop, nor in a function that a loop of the file may call, where it is for gradients of
    inputs alone, and where the script reads a name of its own that is another one within a class.
    """
    for name in facts.scopes.module.stores:
        if name.startswith("__") and not name.endswith("__"):
            for read in facts.scopes.reads(name, facts.scopes.module):
                raise CannotLift(read, f"a class takes `{name}` for a name of its own")
    backwards = [c for c in facts.calls_of("backward") if facts.names.resolve(c.func) is None]
    if backwards and all(is_of_inputs(facts, c) for c in (*backwards, *facts.calls_of("step"))):
        raise CannotLift(backwards[0], "its gradients are those of inputs: nothing is trained")
    unread = {c for f in uncalled(facts) for c in walk(f, ast.Call)}
    for call in facts.calls_of("backward"):
        if call in unread or facts.names.resolve(call.func) is not None or differentiates_nothing(facts, call.func):
            continue
        if takes_gradients(call) or is_own(facts, call):
            raise CannotLift(call, f"`{facts.short(call)}` takes the gradients itself")
        ups = list(facts.scopes.ancestors(call))
        functions = [up for up in ups if isinstance(up, Function)]
        in_a_loop = any(isinstance(up, (ast.For, ast.While)) for up in ups)
        if not in_a_loop and not any(_may_be_repeated(facts, f, {f}) for f in functions):
            raise CannotLift(call, outside(functions[0].name if functions else None))
        around = next((up for up in ups if isinstance(up, (ast.For, ast.While, ast.FunctionDef))), None)
        for called in own_calls(around.body) if isinstance(around, (ast.For, ast.While)) else ():
            known = facts.stores_of(called.attr) or called.attr in with_parameters(facts)
            if not known and is_network(facts, called.attr):
                raise set_elsewhere(facts, called)


def is_own(facts: Facts, call: ast.Call) -> bool:
    """`Tape(loss).backward()` of a class of the script's own."""
    return isinstance(call.func, ast.Attribute) and bool(own_methods(facts, call.func))


def outside(function: str | None) -> str:
    """What is said of a backward() that no loop holds."""
    return f"backward() stands in {function}(), outside any loop" if function else "backward() stands outside any loop"


def _may_be_repeated(facts: Facts, f: Function, asked: set[Function]) -> bool:
    """Whether a loop may call a function, straight or through others of the file; of a method by its name alone."""
    if f.name in facts.attributes:
        return True
    for name in facts.walk(ast.Name):
        if name.id != f.name:
            continue
        call = facts.scopes.parents.get(name)
        if not (isinstance(call, ast.Call) and call.func is name):
            return True  # it is given to somebody
        for up in facts.scopes.ancestors(call):
            if isinstance(up, LOOPS):
                return True
            if isinstance(up, Function) and up not in asked:
                asked.add(up)
                if _may_be_repeated(facts, up, asked):
                    return True
    return False
