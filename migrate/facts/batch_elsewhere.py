"""What a step calls of the project's other files, followed there: a loss of `losses.py` may mix samples as one here."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import is_static
from .back_from_cpu import itself
from .batch_choices import as_if
from .batch_functions import constants, is_loss_class, makers
from .batch_values import REDUCED, Flow, Value, replace
from .handed_back import handed_back
from .other_files import OtherFile, There, defined_there, found_there

if TYPE_CHECKING:
    from .batch_calls import BatchCall
    from .mixing import Mixing
    from .script import Facts

HERE = OtherFile("", "")  # the file itself


def followed_there(of: BatchCall) -> Value | None:
    """What a call gives that another file has the function for, or the loss; None where none shows it."""
    run, call = of.run, of.call
    if not run.facts.others:
        return None
    made = makers(run, call.func)
    if not made and (there := _method_there(of)) is not None:
        return _through_network(of, there) if there.holder in there.facts.classes.modules else _run_there(of, there)
    first = itself(made[0]) if made else call
    there = defined_there(run.facts, first.func) if isinstance(first, ast.Call) else None
    if there is None or (there.holder is not None) != bool(made):
        return None
    if there.holder is not None and not is_loss_class(there.facts, there.holder):
        return _through_network(of, there) if run.mixing.networks is not None else None
    return _run_there(of, there)


def _method_there(of: BatchCall) -> There | None:
    """The method of an object, or with networks of a network, that a class of another file has: `flow.log_prob(x)`."""
    func = of.call.func
    made = makers(of.run, func.value) if isinstance(func, ast.Attribute) else []
    first = itself(made[0]) if len(made) == 1 else None
    file, there, c = (found_there(of.facts, first.func) if isinstance(first, ast.Call) else None) or (None, None, None)
    if file is None or there is None or not isinstance(c, ast.ClassDef) or not isinstance(func, ast.Attribute):
        return None
    f = there.classes.method(c, func.attr)
    followed = c not in there.classes.modules or of.run.mixing.networks is not None
    return There(file, there, f, c) if f is not None and followed else None


def _through_network(of: BatchCall, there: There) -> Value | None:
    """What comes of a network of another file that mixes the samples; None of any other: what it gives is its own."""
    flow, networks = _followed(of, there, there.facts.following), there.facts.following.networks
    assert there.holder is not None and networks is not None
    mixes = networks.mixing(there.holder, flow.mixes)
    if not mixes:
        return None
    of.run.flow.mixes.append(of.call)
    of.run.flow.there[of.call] = place_of(there, flow.within.get(mixes[0], mixes[0]))
    return REDUCED


def made_by_functions(of: BatchCall) -> Value | None:
    """`criterion(out, y)` of `criterion = build(args)`, `net, criterion = build()`: all that the functions may give."""
    run, call = of.run, of.call
    found = []
    for home, e, file, f in handed_back(run.facts, call.func):
        if f is not None:
            found.append(_run_there(of, There(file or HERE, home, f, None)))
        elif isinstance(e, ast.Subscript) and (functions := _functions_there(home, e)):
            found += [_run_there(of, There(file or HERE, home, g, None)) for g in functions]
        elif home is run.facts:
            found.append(as_if(run, call, ast.Call(e, call.args, call.keywords)))
        elif isinstance(e, ast.Call) and file is not None and (there := _object_there(home, e, file)) is not None:
            if there.holder is not None and is_loss_class(there.facts, there.holder):
                found.append(_run_there(of, there))
            elif run.mixing.networks is not None and (mixed := _through_network(of, there)) is not None:
                found.append(mixed)
        elif file is not None:
            found += [_run_there(of, There(file, home, g, None)) for g in _functions_there(home, e)]
    return run.joined(found) if found else None


def _functions_there(home: Facts, e: ast.expr) -> list[ast.FunctionDef]:
    """The functions of a file that it hands back by name, by `partial(hard, margin=1)`, or out of a table."""
    given = [e]
    if isinstance(e, ast.Call) and home.names.resolve(e.func) == "functools.partial":
        given = e.args[:1]
    elif isinstance(e, ast.Subscript) and isinstance(e.value, ast.Name):
        tables = home.devices.assigned(e.value.id, home.scopes.module) or []
        given = [v for t in tables if isinstance(t, ast.Dict) for v in t.values]
    names = {v.id for v in given if isinstance(v, ast.Name)}
    return [f for f in home.tree.body if isinstance(f, ast.FunctionDef) and f.name in names]


def _object_there(home: Facts, made: ast.Call, file: OtherFile) -> There | None:
    """What an object of another file runs when it is called."""
    name = made.func.id if isinstance(made.func, ast.Name) else ""
    own = [c for c in home.walk(ast.ClassDef) if c.name == name]
    if len(own) != 1:
        there = defined_there(home, made.func)
        return there if there is not None and there.holder is not None else None
    f = home.classes.method(own[0], "forward" if own[0] in home.classes.modules else "__call__")
    return There(file, home, f, own[0]) if f is not None else None


def _followed(of: BatchCall, there: There, mixing: Mixing) -> Flow:
    run, call, f = of.run, of.call, there.f
    names = [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
    names = names[1:] if there.holder is not None and not is_static(f) else names
    given = {**of.given_to(names), **{k: v for k, v in of.keywords.items() if k}}
    if f.args.vararg is not None:
        given[f.args.vararg.arg] = run.held(of.args[len(names) :])
    inside = mixing.flow(f, given, there.holder, constants(call, f, names))
    if inside.decided and call not in run.flow.decided:
        run.flow.decided[call] = call
        run.flow.there[call] = place_of(there, next(iter(inside.decided.values())))
    return inside


def _run_there(of: BatchCall, there: There) -> Value:
    run, call = of.run, of.call
    inside = _followed(of, there, there.facts.mixing)
    found = run.joined(inside.returned) if inside.returned else REDUCED
    if inside.mixes:
        run.flow.mixes.append(call)
        run.flow.there[call] = place_of(there, inside.mixes[0])
    elif bent := [n for n in found.all_bent() if n in there.facts.scopes.parents]:
        run.flow.there[call] = place_of(there, bent[0])  # others came with what it was given
    found = found.bent_by(call)
    return replace(found, sorts=found.sorts and call, met=found.met and call)


def place_of(there: There, node: ast.AST) -> str:
    """`torch.mm(z, z.t())` in pairs() of losses.py"""
    ups = [up.name for up in there.facts.scopes.ancestors(node) if isinstance(up, (ast.FunctionDef, ast.ClassDef))]
    where = f" of {there.file.stem}.py" if there.file is not HERE else ""
    return f"`{there.facts.short(node)}` in {'.'.join(reversed(ups))}(){where}"
