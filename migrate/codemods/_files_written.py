"""Files that every process would write, one over the other: `open(path, "w")`, `np.save(path, x)`.

Rank 0 alone writes them. The others open a file that they forget. What is read again is waited for, or stays every
process's own. So does a file that no other process has, and one that a data set writes as it gives its samples.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from ..facts.in_course import function_around, in_course, of_samples
from ..facts.loops import last_part
from ..facts.nodes import walk
from ..facts.own_files import is_own
from ..facts.read_again import is_given, read_again
from ..facts.script import Facts, once_a_file
from ..facts.spelled import spelled
from ..facts.written_files import NAMES, written_by
from ._loaded_again import comes_alike
from ._opened_within import statement_of

NOWHERE = ("os.devnull", "sys.stdout", "sys.stderr")


class FileWritten(NamedTuple):
    """A call that writes a file for all ranks."""

    read_again: bool
    can_wait: bool  # whether the file is written when its statement is over
    is_given: bool  # whether its path is made of what its function is given
    in_any_case: bool  # rank 0's: a picture, and what is added at the end of a file, as often as there are ranks
    alone: ast.Expr | None  # the statement that opens and writes it, all at once


@once_a_file
def file_written(facts: Facts, call: ast.Call) -> FileWritten | None:
    """The file that a call writes as every process does; None for one that is no such call."""
    if last_part(call.func) not in NAMES or (written := written_by(facts, call)) is None:
        return None
    up = facts.scopes.parents.get(call)
    if not (written.opens or isinstance(up, ast.Expr)) or facts.is_fixed(call):
        return None
    path = written.path
    if "rank" in ast.unparse(path).lower() or is_own(facts, path) or of_samples(facts, call):
        return None
    if ast.unparse(path) in NOWHERE or _is_opened(facts, path) or _of_the_batch(facts, call, path):
        return None
    whole = isinstance(up, ast.withitem) if written.opens else isinstance(up, ast.Expr)
    alone = statement_of(facts, call) if written.opens and not whole else None
    return FileWritten(
        read_again(facts, call, path),
        (whole or alone is not None) and (in_course(facts, call) or comes_alike(facts, call)),
        is_given(facts, path),
        written.adds or written.shows,
        alone,
    )


def _is_opened(facts: Facts, path: ast.expr) -> bool:
    """Whether it is no path but what is open: `with open(path, "wb") as f: np.save(f, x)`."""
    home = facts.scopes.scope_of(path).lookup(path.id) if isinstance(path, ast.Name) else None
    if home is None or not isinstance(path, ast.Name):
        return False
    given = facts.devices.assigned(path.id, home) or []
    if any(isinstance(v, ast.Call) and written_by(facts, v) is not None for v in given):
        return True
    held = (i.optional_vars for up in facts.scopes.ancestors(path) if isinstance(up, ast.With) for i in up.items)
    return any(isinstance(v, ast.Name) and v.id == path.id for v in held)


def _of_the_batch(facts: Facts, call: ast.Call, path: ast.expr) -> bool:
    """Whether a step names the file by the samples that it got: every rank has others."""
    f = function_around(facts, call)
    holder = facts.classes.holder(f) if f is not None else None
    if f is None or not f.name.endswith("_step") or holder is None:
        return False
    whole = "divide_batches = False" if f.name == "training_step" else "divide_validation = False"
    if any(isinstance(s, ast.Assign) and ast.unparse(s) == whole for s in holder.body):
        return False
    batch = {a.arg for a in f.args.args[1:2]}  # its index is the same on every rank
    return bool(_names(path) & _spread(f, batch))


def _spread(f: ast.FunctionDef | ast.AsyncFunctionDef, names: set[str]) -> set[str]:
    """The names, and those that the function gives a value by them."""
    found, size = set(names), -1
    while size != len(found):
        size = len(found)
        for n in walk(f):
            if isinstance(n, (ast.Assign, ast.AugAssign, ast.For)):
                for target, value in _given(n):
                    found |= _names(target) if _names(value) & found else set()
    return found


def _given(n: ast.Assign | ast.AugAssign | ast.For) -> list[tuple[ast.expr, ast.expr]]:
    value, targets = (
        n.iter if isinstance(n, ast.For) else n.value,
        n.targets if isinstance(n, ast.Assign) else [n.target],
    )
    if isinstance(value, ast.Tuple) and isinstance(t := targets[0], ast.Tuple) and len(t.elts) == len(value.elts):
        return list(zip(t.elts, value.elts, strict=True))
    return [(t, value) for t in targets]


def _names(node: ast.AST) -> set[str]:
    """Names, and attributes of `self` as they are written."""
    found = {n.id for n in walk(node, ast.Name)} - {"self"}
    attributes = {spelled(n) for n in walk(node, ast.Attribute)}
    return found | {name for name in attributes if name.startswith("self.")}
