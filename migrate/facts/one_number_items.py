"""What a dataset gives as an array of one number: `return a, b, torch.from_numpy(np.array([same]))`.

A batch of it has the shape (n, 1), and stands against one number a sample, (n,), as each sample against all others.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .nodes import walk

if TYPE_CHECKING:
    from .script import Facts

ARRAYS = {
    *(f"torch.{name}" for name in ("tensor", "as_tensor", "Tensor", "FloatTensor", "LongTensor", "from_numpy")),
    *(f"numpy.{name}" for name in ("array", "asarray", "float32", "float64", "int64")),
}
SAME_SHAPE = {"float", "long", "int", "double", "half", "to", "type", "astype", "clone", "contiguous"}


def one_number_places(facts: Facts, width: int) -> set[int]:
    """The places among the `width` items of a sample that are such arrays in a dataset of the project."""
    if not width:
        return set()
    files = [facts, *(o.facts() for o in facts.others if "__getitem__" in o.text)]
    found: set[int] = set()
    for file in (f for f in files if f is not None and "__getitem__" in f.text.text):
        for f in (f for f in file.walk(ast.FunctionDef) if f.name == "__getitem__"):
            for s in walk(f, ast.Return):
                if isinstance(s.value, ast.Tuple) and len(s.value.elts) == width:
                    found |= {i for i, e in enumerate(s.value.elts) if _is_one_number(file, f, e)}
    return found


def _is_one_number(facts: Facts, f: ast.FunctionDef, e: ast.expr) -> bool:
    if isinstance(e, ast.Name):
        given = [s.value for s in walk(f, ast.Assign) if _gives(s, e.id)]
        return bool(given) and all(not _reads(v, e.id) and _is_one_number(facts, f, v) for v in given)
    if not isinstance(e, ast.Call):
        return False
    if isinstance(e.func, ast.Attribute) and e.func.attr in SAME_SHAPE and facts.names.resolve(e.func) is None:
        return _is_one_number(facts, f, e.func.value)
    if facts.names.resolve(e.func) not in ARRAYS or not e.args:
        return False
    of = e.args[0]
    if isinstance(of, ast.List):
        return len(of.elts) == 1 and not isinstance(of.elts[0], (ast.List, ast.Tuple, ast.Starred))
    return _is_one_number(facts, f, of)


def _gives(s: ast.Assign, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for t in s.targets for n in walk(t))


def _reads(e: ast.expr, name: str) -> bool:
    return any(n.id == name for n in walk(e, ast.Name))
