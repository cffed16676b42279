"""Parts of batches that index what stays on the CPU: an array of numpy, a tensor that gets what was brought there, and
one of which the step moves what it takes.

`memory[i] = loss.detach().cpu()`, `features[i].to(device)`
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..facts.arrays import on_host
from ..facts.gone_through import drawn_from
from ..facts.placed import MAKES_TENSORS
from ..facts.script import Facts
from ..facts.tensor_methods import root

Asks = Callable[[Facts, ast.expr], bool]
ALIKE = {"pin_memory", "contiguous", "float", "long"}  # what comes between a tensor and its move
DEPTH = 4  # of names for parts of a batch


def indexes_there(facts: Facts, is_left: Asks, brought: Asks) -> Iterator[tuple[ast.expr, str]]:
    """Each such index, and what it is one of."""
    of_batches = [(s, left) for s in facts.walk(ast.Subscript) if (left := _left(facts, s, is_left))]
    there = {_key(facts, s.value) for s, _ in of_batches if _gets(facts, s, brought)} - {None}
    for s, left in of_batches:
        if _is_dictionary(facts, s.value):
            continue  # its keys may be names of files
        if _key(facts, s.value) in there or on_host(facts, s.value) or is_moved_after(facts, s):
            yield from ((index, facts.short(s.value)) for index in left)


def _left(facts: Facts, s: ast.Subscript, is_left: Asks) -> list[ast.expr]:
    parts = s.slice.elts if isinstance(s.slice, ast.Tuple) else [s.slice]
    parts = [p for p in parts if isinstance(p, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))]
    hot = bool(parts) and facts.loops.hot(s) is not None
    return [p for p in parts if is_left(facts, p) and is_of_loader(facts, p)] if hot else []


def is_collated(facts: Facts) -> bool:
    """Whether torch puts the batches together: their parts are tensors then, or texts."""
    return "DataLoader" in facts.text.text and "collate_fn" not in facts.text.text


def is_of_loader(facts: Facts, node: ast.expr, depth: int = 0) -> bool:
    """Whether a loader gives it, whose batches are tensors: not the rows of a list that a loop goes through beside."""
    name = root(node)
    scope = facts.scopes.scope_of(name).lookup(name.id) if name is not None else None
    if name is None or scope is None or depth > DEPTH:
        return False
    found = []
    for store in facts.placed.reaching(name, scope):
        up = facts.scopes.parents.get(store)
        while isinstance(up, (ast.Tuple, ast.List)):
            up = facts.scopes.parents.get(up)
        if isinstance(up, ast.For):
            drawn = drawn_from(facts, up, store)
            found.append(drawn is not None and facts.loops.is_loader(drawn))
        else:
            found.append(isinstance(up, ast.Assign) and is_of_loader(facts, up.value, depth + 1))
    return bool(found) and all(found)


def _is_dictionary(facts: Facts, held: ast.expr) -> bool:
    """What a statement makes one: `found = {}`, `files, found = [], defaultdict(list)`."""
    if isinstance(held, ast.Attribute):
        return any(_makes_dictionary(v) for v in facts.devices.attribute_values.get(held.attr, ()))
    scope = facts.scopes.scope_of(held).lookup(held.id) if isinstance(held, ast.Name) else None
    values = facts.devices.unpacked(held.id, scope) if scope is not None and isinstance(held, ast.Name) else None
    return any(map(_makes_dictionary, values or ()))


def _makes_dictionary(e: ast.expr) -> bool:
    last = getattr(e.func, "attr", getattr(e.func, "id", "")) if isinstance(e, ast.Call) else ""
    return isinstance(e, (ast.Dict, ast.DictComp)) or last in ("dict", "defaultdict", "OrderedDict", "Counter")


def _gets(facts: Facts, s: ast.Subscript, brought: Asks) -> bool:
    """`memory[i] = loss.cpu()`, `memory[i] += loss.cpu()`"""
    up = facts.scopes.parents.get(s)
    return isinstance(up, (ast.Assign, ast.AugAssign)) and up.value is not s and brought(facts, up.value)


def is_moved_after(facts: Facts, s: ast.Subscript) -> bool:
    """`features[i].to(device)` of what the script has from elsewhere, or in a tuple: what else it makes is a buffer."""
    node: ast.expr = s
    call = _called_on(facts, s)
    while call is not None and isinstance(call.func, ast.Attribute) and call.func.attr in ALIKE:
        node, call = call, _called_on(facts, call)
    if isinstance(s.value, ast.Call) or call is None or facts.devices.moved(call) is not node:
        return False  # what is made there is made where the index is: torch.eye(3)[i]
    return not _is_buffered(facts, s.value) and not facts.placed.by_runtime(s)


def _called_on(facts: Facts, node: ast.expr) -> ast.Call | None:
    """The call of a method on a tensor."""
    up = facts.scopes.parents.get(node)
    call = facts.scopes.parents.get(up) if isinstance(up, ast.Attribute) else None
    return call if isinstance(call, ast.Call) and call.func is up else None


def _is_buffered(facts: Facts, held: ast.expr) -> bool:
    """Whether the Module takes a tensor along: one that a name is given by itself, as a function of torch makes it."""
    scope = facts.scopes.scope_of(held).lookup(held.id) if isinstance(held, ast.Name) else None
    given = facts.devices.assigned(held.id, scope) if scope is not None and isinstance(held, ast.Name) else None
    made = [facts.names.resolve(v.func) if isinstance(v, ast.Call) else None for v in given or ()]
    return bool(made) and all(m in MAKES_TENSORS for m in made)


def _key(facts: Facts, held: ast.expr) -> tuple[object, str] | None:
    """What tells `memory`, or `self.memory`, from others of that name."""
    if isinstance(held, ast.Name):
        return facts.scopes.scope_of(held).lookup(held.id), held.id
    return (None, ast.unparse(held)) if isinstance(held, ast.Attribute) else None
