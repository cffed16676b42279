"""Evaluations that write of their samples: rank 0 alone has a file open, and would write those of its own batches."""

from __future__ import annotations

import ast

from ..facts.arguments import given_to
from ..facts.nodes import walk
from ..facts.script import Facts
from ..facts.written_files import written_by
from .nodes import local_function, walk_here
from .recipe import CannotLift, DataPass
from .shown import of_the_batch, reads_part

WRITES = ("write", "writelines", "writerow", "writerows")
DUMPS = {f"{m}.dump" for m in ("json", "pickle", "yaml", "marshal", "cPickle", "dill")}
SCREEN = ("sys.stdout", "sys.stderr", "tqdm", "bar", "pbar", "progress")


def writes_samples(facts: Facts, passing: DataPass) -> CannotLift | None:
    """The call of an evaluation's loop that writes what its samples give into a file, if there is one."""
    part = of_the_batch(passing, set(), {})
    for s in passing.body:
        for n in walk_here(s):
            if isinstance(n, ast.Call) and _writes(facts, n, part) and not is_of_first_batch(facts, n, passing):
                return CannotLift(n, f"`{facts.short(n)}` writes what its samples give")
    return None


def is_of_first_batch(facts: Facts, call: ast.Call, passing: DataPass) -> bool:
    """`if i == 0: save_image(x, path)`: rank 0 has the first batch."""
    for up in facts.scopes.ancestors(call):
        if up is passing.loop:
            return False
        match up:
            case ast.If(test=ast.Compare(left=ast.Name(id=index), ops=[ast.Eq()], comparators=[ast.Constant(value=0)])):
                if index == passing.index and passing.index_start is None:
                    return True
    return False


def _writes(facts: Facts, call: ast.Call, part: set[str], depth: int = 0) -> bool:
    """Whether a call writes into a file, or under a name, what `part` holds; or a function of the script's own does."""
    if not any(reads_part(e, part, {}) is not None for e in given_to(call)):
        return False
    if _writes_file(facts, call):
        return True
    f = local_function(facts, call.func) if isinstance(call.func, ast.Name) and depth < 3 else None
    if f is None:
        return False
    inner = [n for s in f.body for n in walk(s, ast.Call)]
    own = {n.id for s in f.body for n in walk(s, ast.Name)}  # which of them are samples does not show
    return any(_writes(facts, c, own, depth + 1) for c in inner)


def _writes_file(facts: Facts, call: ast.Call) -> bool:
    f = call.func
    if isinstance(f, ast.Name) and f.id == "print":
        return any(k.arg == "file" and ast.unparse(k.value) not in SCREEN for k in call.keywords)
    if written_by(facts, call) is not None or facts.names.resolve(f) in DUMPS:
        return True
    return isinstance(f, ast.Attribute) and f.attr in WRITES and ast.unparse(f.value) not in SCREEN
