"""A function that trains or evaluates as a flag tells it is written out: one function for each value of the flag.

`run_epoch(train_loader, optimizer)` and `run_epoch(val_loader)` become calls of two functions, in which
`if optimizer is not None:` is answered.
"""

from __future__ import annotations

import ast

from ...facts.arguments import default_of
from ...facts.nodes import walk
from ...facts.script import Facts
from ..backwards import training_backwards
from ..optimizers import is_optimizer
from ..splice import Splice, indent
from .calls import all_calls, enclosing_function
from .edits import Edits
from .known import GIVEN, Known

MOST = 4  # copies of a function that a person would write out
Values = tuple[tuple[str, object], ...]


def write_out_flags(facts: Facts) -> str | None:
    """The text with one flagged function written out; None where there is none."""
    for f, calls in _called_often(facts):
        kinds = _kinds(facts, f, calls)
        if 1 < len(kinds) <= MOST:
            return _written_out(facts, f, kinds)
    return None


def _called_often(facts: Facts) -> list[tuple[ast.FunctionDef, list[ast.Call]]]:
    """Functions with a backward() that are called in several places, none of them in itself."""
    found = []
    for call in training_backwards(facts):
        f = enclosing_function(facts, call)
        if f is not None:
            calls = all_calls(facts, f)
            if len(calls) > 1 and not any(f in facts.scopes.ancestors(c) for c in calls):
                found.append((f, calls))
    return found


def _kinds(facts: Facts, f: ast.FunctionDef, calls: list[ast.Call]) -> dict[Values, list[ast.Call]]:
    """The calls by what they give the function's flags."""
    flags = [(p, values) for p in _parameters(facts, f) if (values := _values(facts, f, p, calls)) is not None]
    kinds: dict[Values, list[ast.Call]] = {}
    for i, call in enumerate(calls):
        kinds.setdefault(tuple((p, values[i]) for p, values in flags), []).append(call)
    return kinds


def _parameters(facts: Facts, f: ast.FunctionDef) -> list[str]:
    """Those that the function never binds anew."""
    scope = facts.scopes.by_node[f]
    own = {n for inner in walk(f, ast.Nonlocal) for n in inner.names}
    return [a.arg for a in (*f.args.args, *f.args.kwonlyargs) if a.arg not in scope.stores and a.arg not in own]


def _values(facts: Facts, f: ast.FunctionDef, name: str, calls: list[ast.Call]) -> list[object] | None:
    """What each call gives a flag; None for a parameter that is no flag."""
    values = [_value(facts, f, name, call) for call in calls]
    if any(v is ... for v in values) or len({(type(v), v) for v in values}) < 2:
        return None
    return None if GIVEN in values and any(v is not GIVEN and v is not None for v in values) else values


def _value(facts: Facts, f: ast.FunctionDef, name: str, call: ast.Call) -> object:
    """The constant that a call gives, GIVEN for an optimizer, `...` for what is not known."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return ...
    positional = [a.arg for a in f.args.args][1 if facts.scopes.scope_of(f).is_class else 0 :]
    passed = dict(zip(positional, call.args, strict=False)) | {k.arg or "": k.value for k in call.keywords}
    value = passed.get(name) or default_of(f, name)
    if isinstance(value, ast.Constant) and isinstance(value.value, bool | str | None):
        return value.value
    if isinstance(value, ast.Name) and is_optimizer(facts, value, value.id):
        return GIVEN
    return ...


def _written_out(facts: Facts, f: ast.FunctionDef, kinds: dict[Values, list[ast.Call]]) -> str:
    edits, copies = Edits(facts), list[str]()
    taken = {*facts.scopes.scope_of(f).stores}
    for flags, calls in kinds.items():
        lines = _copy(facts, f, dict(flags))
        name = _name(f.name, any(".backward(" in line for line in lines), taken)
        lines[0] = lines[0].replace(f.name, name, 1)
        copies += (["", ""] if copies else []) + lines
        for call in calls:
            _, stop = facts.text.span(call.func)
            edits.replace(stop - len(f.name), stop, name)
    first = facts.text.line_of(facts.text.span(f)[0])
    splice = Splice(facts.text)
    copies += indent(splice.ending(f), facts.indentation)
    edits.replace_lines(first, splice.with_inner_comments(f), indent(copies, facts.text.margin(f)))
    return edits.done()


def _name(function: str, trains: bool, taken: set[str]) -> str:
    name = f"{function}_{'train' if trains else 'eval'}"
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _copy(facts: Facts, f: ast.FunctionDef, flags: dict[str, object]) -> list[str]:
    known = Known(facts, facts.scopes.by_node[f], flags)
    head = Known(facts, known.scope, {}).head(f)
    _add_answers(known, f)
    return [*head, *indent(known.lines(f.body) or ["pass"], facts.indentation)]


def _add_answers(known: Known, f: ast.FunctionDef) -> None:
    """`training = optimizer is not None` is known too."""
    for s in f.body:
        target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
        if isinstance(target, ast.Name) and len(known.scope.stores.get(target.id, ())) == 1:
            assert isinstance(s, ast.Assign)
            if (answer := known.answer(s.value)) is not None:
                known.values[target.id] = answer
