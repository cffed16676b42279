"""A parameter to which a pass over the data gives another value becomes a name of its own, made from the parameter.

`def train(lr): lr = lr * 0.5` is `def train(lr_given): lr = lr_given; lr = lr * 0.5`: the lift then knows what the call
gives, in every epoch, and what becomes of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.nodes import walk
from ...facts.script import Facts
from ..reads import exposed
from .calls import all_calls
from .edits import Edits


def name_given(facts: Facts) -> str | None:
    """The text with such parameters renamed, in the signature and in the calls; None where there are none."""
    edits = Edits(facts)
    for f in dict.fromkeys(_passes(facts)):
        scope = facts.scopes.by_node[f]
        names = [name for name in scope.params if name in scope.stores and name in exposed(f.body)]
        for name in names:
            _rename(facts, edits, f, name)
    return edits.done() if edits.spans else None


def give_names_back(facts: Facts, edits: Edits, original: Facts) -> None:
    """Take the names away again, in a lifted text, from functions that the lift has left as they are."""
    own = {a.arg for a in original.walk(ast.arg)}
    for f in facts.walk(ast.FunctionDef) if "_given" in facts.text.text else ():
        scope = facts.scopes.by_node[f]
        for s in f.body:
            target, value = (s.targets[0], s.value) if isinstance(s, ast.Assign) else (None, None)
            if not isinstance(target, ast.Name) or not isinstance(value, ast.Name) or value.id in own:
                continue
            arg, made = scope.params.get(value.id), value.id.rstrip("_") == f"{target.id}_given"
            calls = all_calls(facts, f)
            named = [k for c in calls for k in c.keywords if k.arg == value.id]
            known = len(named) == sum(k.arg == value.id for c in facts.walk(ast.Call) for k in c.keywords)
            if made and arg is not None and calls and known and [*facts.scopes.reads(value.id, scope)] == [value]:
                edits.replace_lines(s.lineno, s.lineno, [])
                for at in (facts.text.span(n)[0] for n in (arg, *named)):
                    edits.replace(at, at + len(value.id), target.id)


def _passes(facts: Facts) -> Iterator[ast.FunctionDef]:
    """Functions that go over data and that a loop over epochs calls: the training and the evaluation."""
    own = {f.name for f in facts.tree.body if isinstance(f, ast.FunctionDef)}
    calls = [(c.func.id, c) for c in facts.walk(ast.Call) if isinstance(c.func, ast.Name) and c.func.id in own]
    above = [(name, {*facts.scopes.ancestors(c)}) for name, c in calls]
    training = {up for c in facts.calls_of("backward") for up in facts.scopes.ancestors(c)} if calls else set()
    for loop in facts.walk(ast.For) if calls else ():
        called = {name for name, ups in above if loop in ups}
        functions = [f for f in facts.tree.body if isinstance(f, ast.FunctionDef) and f.name in called]
        if functions and not training.isdisjoint((loop, *functions)):
            yield from (f for f in functions if any(inner in facts.loops.hot_loops for inner in walk(f, ast.For)))


def _rename(facts: Facts, edits: Edits, f: ast.FunctionDef, name: str) -> None:
    calls = all_calls(facts, f)
    first = f.body[1] if ast.get_docstring(f, clean=False) is not None and len(f.body) > 1 else f.body[0]
    arg = facts.scopes.by_node[f].params[name]
    unknown = any(isinstance(a, ast.Starred) for c in calls for a in c.args)
    unknown = unknown or any(k.arg is None for c in calls for k in c.keywords)
    if not calls or unknown or arg in (f.args.vararg, f.args.kwarg) or facts.text.margin(first).strip():
        return
    given = f"{name}_given"
    taken = (
        {n.id for n in facts.walk(ast.Name)} | {a.arg for a in facts.walk(ast.arg)} | {new for _, _, new in edits.spans}
    )
    while given in taken:
        given += "_"
    start, _ = facts.text.span(arg)
    edits.replace(start, start + len(name), given)
    line = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))])
    edits.replace_lines(line, line - 1, [f"{facts.text.margin(first)}{name} = {given}"])
    for call in calls:
        for k in call.keywords:
            if k.arg == name:
                at, _ = facts.text.span(k)
                edits.replace(at, at + len(name), given)
