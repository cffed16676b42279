"""A step that a function makes of a network and its optimizer is a function that is given them with every batch.

def make_step(model, optimizer):        def train_step(x, y, model, optimizer):
    def step(x, y):                         loss = loss_of(model(x), y)
        loss = loss_of(model(x), y)         loss.backward()
        loss.backward()                     optimizer.step()
        optimizer.step()                    return loss.item()
        return loss.item()

    return step

train_step = make_step(net, sgd)        for x, y in loader:
for x, y in loader:                         train_step(x, y, net, sgd)
    train_step(x, y)
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ...facts.nodes import walk
from ...facts.script import Facts
from ..chunks import given_arguments
from ..nodes import is_call_of, local_function
from ..splice import Splice
from .edits import Edits, block_lines

BLOCKS = (ast.Module, ast.FunctionDef, ast.For, ast.While)


def give_with_the_batch(facts: Facts) -> str | None:
    """The text with one such function; None where there is none."""
    if "backward" not in facts.attributes:
        return None
    for outer in facts.walk(ast.FunctionDef):
        step = _made_by(facts, outer)
        made = _making(facts, outer) if step is not None else None
        if step is None or made is None:
            continue
        own = {a.arg for a in _parameters(step)}
        given = _given(outer, made.value, own)  # type: ignore[arg-type]
        calls = _calls(facts, made)
        if calls and given is not None and _keeps_its_value(facts, made, given):
            return _written(facts, made, outer, step, given, calls)
    return None


def _parameters(f: ast.FunctionDef) -> list[ast.arg]:
    return [*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs]


def _made_by(facts: Facts, outer: ast.FunctionDef) -> ast.FunctionDef | None:
    """The function that is all that another defines and returns, where it trains or calls what that is given."""
    body = outer.body[1:] if isinstance(outer.body[0], ast.Expr) and len(outer.body) == 3 else outer.body
    step, last = body if len(body) == 2 else (None, None)
    if not isinstance(step, ast.FunctionDef) or not isinstance(last, ast.Return) or outer.decorator_list:
        return None
    a = step.args
    fixed = not (step.decorator_list or a.defaults or a.vararg or a.kwonlyargs or a.kwarg)
    returned = isinstance(last.value, ast.Name) and last.value.id == step.name
    if not fixed or not returned or outer.args.vararg or outer.args.kwarg:
        return None
    if any(isinstance(n, (ast.Nonlocal, ast.Global, ast.Yield, ast.YieldFrom)) for n in walk(step)):
        return None
    set_inside = {n.id for n in walk(step, ast.Name) if isinstance(n.ctx, ast.Store)}
    itself = any(n.id == step.name for n in walk(step, ast.Name))
    params = {a.arg for a in _parameters(outer)}
    if itself or facts.scopes.parents.get(outer) is not facts.tree or set_inside & params:
        return None
    calls = {c.func.id for c in walk(step, ast.Call) if isinstance(c.func, ast.Name)}
    return step if any(is_call_of(c, "backward") for c in walk(step, ast.Call)) or calls & params else None


def _making(facts: Facts, outer: ast.FunctionDef) -> ast.Assign | None:
    """`train_step = make_step(net, sgd)`, all that reads the outer function, of a name that is given nothing else."""
    reads = list(facts.scopes.reads(outer.name, facts.scopes.module))
    call = facts.scopes.parents.get(reads[0]) if len(reads) == 1 else None
    s = facts.scopes.parents.get(call) if isinstance(call, ast.Call) and call.func is reads[0] else None
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    if not isinstance(s, ast.Assign) or not isinstance(target, ast.Name) or s.value is not call:
        return None
    if local_function(facts, reads[0]) is not outer or Splice(facts.text).shares_a_line(s):
        return None
    scope, block = facts.scopes.scope_of(target), facts.scopes.block_of(s)
    taken = scope is not facts.scopes.module and target.id in facts.scopes.module.stores
    one = len(scope.stores[target.id]) == 1 and target.id not in scope.globals and not taken
    return s if one and len(block) > 1 else None


def _calls(facts: Facts, made: ast.Assign) -> list[ast.Call]:
    """The calls that are all that reads what is made; none where something else does, or where names mean others."""
    target: ast.Name = made.targets[0]  # type: ignore[assignment]
    home, calls = facts.scopes.scope_of(target), []
    for read in facts.scopes.reads(target.id, home):
        up = facts.scopes.parents.get(read)
        plain = isinstance(up, ast.Call) and up.func is read and not any(isinstance(a, ast.Starred) for a in up.args)
        if not plain or read.lineno < made.lineno or facts.scopes.scope_of(read) is not home or facts.is_fixed(read):
            return []
        if any(k.arg is None for k in up.keywords):  # type: ignore[union-attr]
            return []
        calls.append(up)
    return calls  # type: ignore[return-value]


def _given(outer: ast.FunctionDef, call: ast.Call, own: set[str]) -> dict[str, ast.expr] | None:
    """What every parameter that the step may read is given, by name; None where it is no name of there, no constant."""
    found = {name: v for name, v in given_arguments(outer, call).items() if name not in own}
    there = {*call.args, *(k.value for k in call.keywords)}
    known = (isinstance(v, ast.Constant) or (isinstance(v, ast.Name) and v in there) for v in found.values())
    return found if found.keys() == {a.arg for a in _parameters(outer)} - own and all(known) else None


def _keeps_its_value(facts: Facts, made: ast.Assign, given: Mapping[str, ast.expr]) -> bool:
    """Whether what the step is given is not set anew between its making and a call."""
    home = facts.scopes.scope_of(made)
    if not isinstance(facts.scopes.parents.get(made), BLOCKS):
        return False  # it may be made in the first of several rounds
    roots = {v.id for v in given.values() if isinstance(v, ast.Name)}
    others = {name for s in facts.walk(ast.Global) for name in s.names}
    others |= {name for s in facts.walk(ast.Nonlocal) for name in s.names}
    stores = [n for name in roots for n in (home.lookup(name) or home).stores.get(name, ())]
    return not roots & others and not any(getattr(n, "lineno", 0) > made.lineno for n in stores)


def _written(
    facts: Facts,
    made: ast.Assign,
    outer: ast.FunctionDef,
    step: ast.FunctionDef,
    given: Mapping[str, ast.expr],
    calls: list[ast.Call],
) -> str | None:
    read = {n.id for n in walk(step, ast.Name)}
    names = [name for name in given if name in read]
    last, target = step.args.args[-1] if step.args.args else None, made.targets[0].id  # type: ignore[attr-defined]
    if last is None or not names:
        return None
    start, stop = facts.text.span(last)
    lines = block_lines(facts, [step], {(start, stop): ", ".join([facts.text.text[start:stop], *names])})
    at = next(i for i, line in enumerate(lines) if line.startswith("def "))
    lines[at] = lines[at].replace(f"def {step.name}", f"def {target}", 1)
    edits = Edits(facts)
    edits.replace_lines(outer.lineno, outer.end_lineno or outer.lineno, lines)
    edits.replace_lines(made.lineno, made.end_lineno or made.lineno, [])
    for call in calls:
        end = _end_of_arguments(facts, call)
        if end is None:
            return None
        values = [f"{name}={facts.text.get(given[name])}" for name in names]
        edits.replace(end, end, f"{', ' if call.args or call.keywords else ''}{', '.join(values)}")
    return edits.done()


def _end_of_arguments(facts: Facts, call: ast.Call) -> int | None:
    """Where the last argument of a call ends; None where something is around it, or a comment follows."""
    _, stop = facts.text.span(call)
    ends = [facts.text.span(a)[1] for a in (*call.args, *(k.value for k in call.keywords))]
    end = max(ends, default=stop - 1)
    return end if "".join(facts.text.text[end:stop].split()) in (")", ",)") else None
