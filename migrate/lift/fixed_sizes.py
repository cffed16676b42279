"""Networks that know the size of a batch from elsewhere than the batch: `x.view(batch_size, -1)`, of which a share has
another.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..facts.arguments import argument, given_to
from ..facts.nodes import walk
from ..facts.scopes import Scope
from ..facts.script import Facts
from ..facts.spelled import spelled
from .loaders import batch_sizes
from .nodes import local_function, names_of
from .reads import stored
from .recipe import CannotLift, DataPass

BATCH_SIZE = re.compile(r"(train_|training_)?(batch_?size|bs|bsz)", re.IGNORECASE)
# what they are given first, or as the first of a shape, counts samples where a number does
MADE = "ones zeros full empty rand randn randint randperm arange normal"
SIZED = re.compile(rf"(new_)?({MADE.replace(' ', '|')})|view|reshape|expand|repeat")
PLACES = ("cuda", "to", "double", "float", "half", "train")


def fixed_size(facts: Facts, train: DataPass) -> CannotLift | None:
    """Why the step needs whole batches: what it calls names the loader's batch size rather than asking the batch."""
    known = batch_sizes(facts, train.loader)
    for f in (*_methods(facts), *_called(facts, train)):
        for n in walk(f):
            named = _names_size(n, known) and _from_outside(facts, n, f) and not _harmless(facts, n)
            if named or is_fixed_number(facts, n, known):
                return CannotLift(n, f"`{spelled(n)}` is taken for the size of a batch")
    for n in (*_handed_sizes(facts, train, known), *_made_before(facts, train, known)):
        return CannotLift(n, f"`{spelled(n)}` is taken for the size of a batch")
    for call in _made_elsewhere(facts, train):
        if any(_names_size(a, known) for a in given_to(call)):
            return CannotLift(call, f"`{facts.short(call)}` is told the size of a batch, which another file may go by")
    return None


def _names_size(n: ast.AST, known: set[str]) -> bool:
    if not isinstance(n, (ast.Name, ast.Attribute)) or not isinstance(n.ctx, ast.Load):
        return False
    return spelled(n) in known or bool(BATCH_SIZE.fullmatch(n.attr if isinstance(n, ast.Attribute) else n.id))


def is_fixed_number(facts: Facts, n: ast.AST, known: set[str]) -> bool:
    """The 64 of `torch.randn(64, 100)`, `torch.full((64,), 1.0)` and `x.view(64, -1)`, where batches are as large."""
    if not isinstance(n, ast.Constant) or type(n.value) is not int or n.value < 2 or str(n.value) not in known:
        return False
    return _counts_samples(facts, n)


def _handed_sizes(facts: Facts, train: DataPass, known: set[str]) -> Iterator[ast.AST]:
    """The `args.batch_size` of `torch.randn(args.batch_size, 100)` in a function that the step gives its `args`."""
    own = {*stored(train.body), *(n.id for n in names_of(train.target))}
    for f in _called(facts, train):
        scope = facts.scopes.by_node[f]
        given = {p for p in scope.params if p not in scope.stores and _given_from_outside(train, f, p, own)}
        for n in walk(f):
            handed = isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in given
            if handed and _names_size(n, known) and _counts_samples(facts, n):
                yield n


def _given_from_outside(train: DataPass, f: ast.FunctionDef, param: str, own: set[str]) -> bool:
    """Whether the step gives a parameter nothing that it makes itself or gets of the loader."""
    calls = [n for s in train.body for n in walk(s, ast.Call) if _last(n.func) == f.name]
    given = [argument(c, f, param) for c in calls]
    return bool(given) and all(
        isinstance(g, (ast.Name, ast.Attribute)) and not any(n.id in own for n in names_of(g)) for g in given
    )


def _made_before(facts: Facts, train: DataPass, known: set[str]) -> Iterator[ast.AST]:
    """The `batch_size` of `real = torch.ones(batch_size, 1)` before the loop, where the step reads `real`."""
    own = stored(train.body)
    read = {n.id for s in train.body for n in walk(s, ast.Name) if n.id not in own}
    read -= _resized(train)
    for s in facts.walk(ast.Assign):
        if len(s.targets) != 1 or not isinstance(s.targets[0], ast.Name) or s.targets[0].id not in read:
            continue
        for n in walk(s.value):
            if (_names_size(n, known) and _counts_samples(facts, n)) or is_fixed_number(facts, n, known):
                yield n


def _resized(train: DataPass) -> set[str]:
    """Tensors that the step gives the size of what it has: `target.resize_(y.size()).copy_(y)`."""
    named = [n for s in train.body for n in walk(s, ast.Attribute) if n.attr in ("resize_", "resize_as_")]
    return {n.id for a in named for n in names_of(a.value)}


def _counts_samples(facts: Facts, n: ast.AST) -> bool:
    """It comes first, or first in a shape, in a call that goes by sizes."""
    at: ast.AST = n
    up = facts.scopes.parents.get(n)
    shape = isinstance(up, (ast.Tuple, ast.List))
    if isinstance(up, (ast.Tuple, ast.List)):
        if up.elts[0] is not n:
            return False
        at, up = up, facts.scopes.parents.get(up)
    if isinstance(up, ast.keyword):
        up = facts.scopes.parents.get(up) if shape else None
    if not isinstance(up, ast.Call) or not SIZED.fullmatch(_last(up.func) or ""):
        return False
    return shape or up.args[0] is at


def _methods(facts: Facts) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for c in facts.classes.modules:
        yield from (f for name, f in facts.classes.methods(c).items() if name != "__init__")


def _called(facts: Facts, train: DataPass) -> list[ast.FunctionDef]:
    """The functions of this file that the step calls, and those that these call."""
    found: list[ast.FunctionDef] = []
    pending: list[ast.AST] = list(train.body)
    while pending:
        for n in walk(pending.pop()):
            f = local_function(facts, n.func) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) else None
            if f is not None and f not in found:
                found.append(f)
                pending.append(f)
    return found


def _from_outside(facts: Facts, n: ast.AST, f: ast.AST) -> bool:
    """A global, or an attribute that only the constructor sets: neither follows the batch."""
    root: ast.AST = n
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    home: Scope | None = facts.scopes.scope_of(root).lookup(root.id)
    if home is facts.scopes.module:
        return True
    if root.id != "self" or not isinstance(n, ast.Attribute):
        return False
    stores = [a for a in facts.attributes[n.attr] if not isinstance(a.ctx, ast.Load)]
    return bool(stores) and all(_in_constructor(facts, a) for a in stores)


def _in_constructor(facts: Facts, node: ast.AST) -> bool:
    f = next((up for up in facts.scopes.ancestors(node) if isinstance(up, ast.FunctionDef)), None)
    return f is not None and f.name == "__init__"


def _harmless(facts: Facts, node: ast.AST) -> bool:
    """What a print shows and what a loader is made with do no harm."""
    for up in facts.scopes.ancestors(node):
        if isinstance(up, ast.Call):
            last = _last(up.func) or ""
            if last == "print" or last.endswith("DataLoader"):
                return True
    return False


def _made_elsewhere(facts: Facts, train: DataPass) -> Iterator[ast.Call]:
    """The calls of other files' classes that make the networks of the step: `model = LSTM(batch_size, ...)`."""
    called = {_last(n.func) for s in train.body for n in walk(s, ast.Call)}
    called |= {_last(n.value) for n in facts.attributes.get("parameters", ())}
    for s in facts.walk(ast.Assign):
        value = s.value
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in PLACES:
            value = value.func.value
        if isinstance(value, ast.Call) and any(_last(t) in called for t in s.targets if _last(t) is not None):
            full = facts.names.resolve(value.func)
            if full is not None and full.split(".")[0] not in ("torch", "torchvision", "numpy"):
                yield value


def _last(node: ast.AST) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
