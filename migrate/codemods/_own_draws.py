"""T9, told of: a sampler of the project's own that goes with the branch of processes that are connected.

`if dist.is_initialized(): sampler = Repeated(data, n)`: one process that is connected drew by it, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..facts.nodes import walk
from ..facts.other_files import found_there
from ..facts.script import Facts

# what says how the samples are divided or mixed, and not which they are
USUAL = set("dataset data_source data num_replicas world_size num_processes rank shuffle seed drop_last".split())


def own_draws(facts: Facts, test: ast.expr, left: Iterable[ast.stmt]) -> Iterator[ast.Call]:
    """The calls in a branch, asked for connected processes alone, that make such a sampler by more than the usual."""
    asks = list(walk(test, ast.Call))
    if not any(facts.names.resolve(c.func) == "torch.distributed.is_initialized" for c in asks):
        return
    for call in (n for s in left for n in walk(s, ast.Call)):
        init = _constructor(facts, call.func)
        if init is None:
            continue
        names = [a.arg for a in init.args.args[1:]][: len(call.args)] + [k.arg or "" for k in call.keywords]
        if any(n not in USUAL for n in names):
            yield call


def _constructor(facts: Facts, func: ast.expr) -> ast.FunctionDef | None:
    """That of a sampler class of this file or of another one."""
    home, own = facts, None
    if isinstance(func, ast.Name):
        own = next((c for c in facts.walk(ast.ClassDef) if c.name == func.id), None)
    if own is None and facts.others:
        found = found_there(facts, func)
        home, own = (found[1], found[2]) if found is not None and isinstance(found[2], ast.ClassDef) else (facts, None)
    if own is None or not any((home.names.resolve(b) or ast.unparse(b)).endswith("Sampler") for b in own.bases):
        return None
    init = home.classes.methods(own).get("__init__")
    return init if isinstance(init, ast.FunctionDef) else None
