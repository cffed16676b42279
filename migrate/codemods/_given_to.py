"""The network that a tensor is made for: `z = torch.randn(8, 9, device=device)`, `generator(z)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.arguments import argument, given_to
from ..facts.nodes import walk
from ..facts.script import Facts

Function = ast.FunctionDef | ast.Lambda


def network_given(facts: Facts, f: Function, made: ast.Call) -> str | None:
    """What is where a network is that a function gives the tensor: a parameter of it; None where there is no such one.

    The network is one of outside of the function, whose parameters the file reads: it has some.
    """
    if any(up in facts.loops.hot_loops for up in facts.scopes.ancestors(made)):
        return None  # a step becomes a Module's own, which has a device
    for network in (n for call in _calls(facts, f, made) for n in _networks(facts, call)):
        home = facts.scopes.scope_of(network).lookup(network.id)
        outside = home is not None and home.node is not f
        if outside and any(facts.scopes.scope_of(n).lookup(n.id) is home for n in _with_parameters(facts, network.id)):
            return f"next({network.id}.parameters())"
    return None


def _networks(facts: Facts, call: ast.Call) -> Iterator[ast.Name]:
    """What is called, or what a function of the file gets beside the tensor and calls: `generate(model, z)`."""
    if isinstance(call.func, ast.Name):
        yield call.func
    f = facts.devices.function_of(call)
    called = {n.func.id for n in walk(f, ast.Call) if isinstance(n.func, ast.Name)} if f else set()
    given = (argument(call, f, name) for name in facts.scopes.by_node[f].params if name in called) if f else ()
    yield from (v for v in given if isinstance(v, ast.Name))


def _calls(facts: Facts, f: Function, made: ast.Call) -> Iterator[ast.Call]:
    """The calls of names that are given the tensor, or the name that keeps it."""
    for up in facts.scopes.ancestors(made):
        if isinstance(up, (ast.stmt, ast.Lambda)):
            break
        if isinstance(up, ast.Call) and isinstance(up.func, ast.Name) and facts.names.resolve(up.func) is None:
            yield up
    s = facts.scopes.statement_of(made)
    kept = {t.id for t in s.targets if isinstance(t, ast.Name)} if isinstance(s, ast.Assign) else set()
    for n in walk(f) if kept else ():
        if not (isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.lineno > s.lineno):
            continue
        if any(isinstance(a, ast.Name) and a.id in kept for a in given_to(n)):
            yield n


def _with_parameters(facts: Facts, name: str) -> Iterator[ast.Name]:
    """The reads of a name that are asked for parameters."""
    for call in facts.calls_of("parameters"):
        of = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(of, ast.Name) and of.id == name:
            yield of
