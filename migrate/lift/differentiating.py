"""Whether an evaluation asks for gradients, for an attack or for the forces of an energy: a Trainer's has none."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from ..facts.arguments import given_to
from ..facts.nodes import children, walk
from ..facts.other_files import defined_there
from ..facts.own_methods import own_methods
from ..facts.script import Facts
from .nodes import is_call_of, local_function

GRADIENTS = ("torch.autograd.grad", "torch.autograd.backward")
ENABLES = "torch.enable_grad"
OF_TORCH = ("train", "eval", "step", "zero_grad")  # methods of networks and optimizers
CALLED = ("forward", "__call__")


def differentiates(facts: Facts, body: Iterable[ast.AST]) -> ast.AST | None:
    """The statement that asks for gradients, itself or in what it calls, where nothing switches them on."""
    return _asking(facts, body, GRADIENTS, _calls, lambda there, f: any(map(there.names.resolve, _switches(there, f))))


def adds_gradients(facts: Facts, body: Iterable[ast.AST], around: Container[ast.AST] = ()) -> ast.AST | None:
    """The statement that calls a backward(), itself or in what it calls: all parameters on its way get gradients.

    `around`: what holds the training itself, which none of its calls is.
    """
    passes = lambda there, f: f in around or _clears(there, f)  # noqa: E731
    return _asking(facts, body, GRADIENTS[1:], lambda there, f: walk(f, ast.Call), passes)


def _clears(facts: Facts, f: ast.FunctionDef) -> bool:
    """Whether a function sets the gradients of what it is given to zero below its last backward()."""
    last = max((c.lineno for c in walk(f, ast.Call) if is_call_of(c, "backward")), default=0)
    zeros = (c.func.value for c in walk(f, ast.Call) if is_call_of(c, "zero_grad") and c.lineno > last)  # type: ignore[attr-defined]
    return last > 0 and any(isinstance(o, ast.Name) and o.id in facts.scopes.by_node[f].params for o in zeros)


def _asking(
    facts: Facts,
    body: Iterable[ast.AST],
    names: Sequence[str],
    calls: Callable[[Facts, ast.AST], Iterable[ast.Call]],
    passes: Callable[[Facts, ast.FunctionDef], bool],
) -> ast.AST | None:
    """The statement among whose `calls`, or those of what it calls, one is a backward() or goes by one of the names."""
    for s in body:
        ahead: list[tuple[Facts, ast.AST]] = [(facts, s)]
        seen: set[ast.AST] = set()
        while ahead:
            where, node = ahead.pop()
            for call in calls(where, node):
                full = where.names.resolve(call.func)
                if full in names or (full is None and is_call_of(call, "backward")):
                    return s
                for there, f in _called(where, call):
                    if f not in seen and not passes(there, f):
                        seen.add(f)
                        ahead.append((there, f))
    return None


def _calls(facts: Facts, node: ast.AST) -> Iterator[ast.Call]:
    """The calls below a node, but for those below `with torch.enable_grad():`."""
    if isinstance(node, ast.With) and any(_enables(facts, i.context_expr) for i in node.items):
        return
    if isinstance(node, ast.Call):
        yield node
    for child in children(node):
        yield from _calls(facts, child)


def _switches(facts: Facts, f: ast.FunctionDef) -> list[ast.expr]:
    return [d.func if isinstance(d, ast.Call) else d for d in f.decorator_list if _enables(facts, d)]


def _enables(facts: Facts, e: ast.expr) -> bool:
    return facts.names.resolve(e.func if isinstance(e, ast.Call) else e) == ENABLES


def _called(facts: Facts, call: ast.Call) -> Iterator[tuple[Facts, ast.FunctionDef]]:
    """The functions of the project that a call may run: by name, a method of that name, what an object runs."""
    f = local_function(facts, call.func) if isinstance(call.func, ast.Name) else None
    if f is not None:
        yield facts, f
        return
    there = defined_there(facts, call.func)
    if there is not None and isinstance(there.f, ast.FunctionDef):
        yield there.facts, there.f
        return
    if isinstance(call.func, ast.Attribute) and not _is_of_torch(facts, call, call.func):
        yield from ((facts, f) for f in facts.walk(ast.FunctionDef) if _is_method(facts, f, call.func.attr))
        yield from _methods_there(facts, call.func.attr)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    for made in _made(facts, name):
        own = next((c for c in facts.walk(ast.ClassDef) if c.name == getattr(made.func, "id", "")), None)
        if own is not None:
            found = (facts.classes.methods(own).get(n) for n in CALLED)
            yield from ((facts, f) for f in found if isinstance(f, ast.FunctionDef))
        elif (there := defined_there(facts, made.func)) is not None and isinstance(there.f, ast.FunctionDef):
            yield there.facts, there.f


def _is_of_torch(facts: Facts, call: ast.Call, func: ast.Attribute) -> bool:
    """`optimizer.step()`; no `inner.step(energy, y)` of a class of the script's own, or of what takes more."""
    return func.attr in OF_TORCH and len(given_to(call)) < 2 and not own_methods(facts, func)


def _methods_there(facts: Facts, name: str) -> Iterator[tuple[Facts, ast.FunctionDef]]:
    """Those of another file that may ask for gradients: `self.attack.perturb(x, y)`."""
    for other in facts.others:
        asks = f"def {name}(" in other.text and any(word in other.text for word in (".backward(", "autograd"))
        there = other.facts() if asks else None
        if there is not None:
            there.others = facts.others
            yield from ((there, f) for f in there.walk(ast.FunctionDef) if _is_method(there, f, name))


def _is_method(facts: Facts, f: ast.FunctionDef, name: str) -> bool:
    return f.name == name and facts.classes.holder(f) is not None


def _made(facts: Facts, name: str) -> Iterator[ast.Call]:
    """The calls in what this name is given anywhere: `net = Net().to(device)`, `self.net = Net()`."""
    for s in facts.walk(ast.Assign):
        if any(name in (getattr(n, "id", ""), getattr(n, "attr", "")) for t in s.targets for n in walk(t)):
            yield from walk(s.value, ast.Call)
