"""What `from utils import *` gives of a file of the project: `import torch as t` there is known here, and a device.

`from utils import t` gives no less.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from .canonical import canonical
from .devices import LIBRARIES
from .nodes import walk

if TYPE_CHECKING:
    from .other_files import OtherFile
    from .script import Facts


def imported_there(
    others: tuple[OtherFile, ...], star: ast.ImportFrom, above: frozenset[str] = frozenset()
) -> dict[str, str]:
    """The names that a file imports at its top, with their full names, by stars of its own too."""
    package, _, stem = (star.module or "").rpartition(".")
    root = package.partition(".")[0]
    found = (
        [o for o in others if o.stem == stem] if star.level or root not in LIBRARIES | sys.stdlib_module_names else []
    )
    inner = package.rpartition(".")[2]
    found = [o for o in found if star.level or not inner or o.folder in ("", inner)]
    is_star = star.names[0].name == "*"
    if len(found) != 1 or stem in above or (is_star and "__all__" in found[0].text):
        return {}
    there = found[0].facts()
    if there is None:
        return {}
    given: dict[str, str] = {}
    for s in there.tree.body:
        if isinstance(s, ast.ImportFrom) and s.names[0].name == "*":
            given.update(imported_there(others, s, above | {stem}))
        elif isinstance(s, (ast.Import, ast.ImportFrom)):
            given.update(_names(s))
        else:
            for name in _bound(s):
                given.pop(name, None)
            given.update(dict.fromkeys(_devices(there, s), f"{stem}.device"))  # by any name
            given.update(_other_names(there, s))
    return {name: full for name, full in given.items() if not name.startswith("_")}


def _devices(there: Facts, s: ast.stmt) -> set[str]:
    """The names that a statement gives a device."""
    if not (isinstance(s, ast.Assign) and there.devices.is_device(s.value)):
        return set()
    return {t.id for t in s.targets if isinstance(t, ast.Name)}


def _other_names(there: Facts, s: ast.stmt) -> dict[str, str]:
    """`Tensor = torch.FloatTensor`, and what chooses between that and the same type of a card, which becomes that."""
    target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
    if not isinstance(s, ast.Assign) or not isinstance(target, ast.Name):
        return {}
    values = [s.value.body, s.value.orelse] if isinstance(s.value, ast.IfExp) else [s.value]
    names = {(there.names.resolve(v) or "").replace("torch.cuda.", "torch.") for v in values}
    full = names.pop() if len(names) == 1 else ""
    once = len(there.scopes.module.stores.get(target.id, ())) == 1
    return {target.id: full} if once and full.startswith("torch.") and full.endswith("Tensor") else {}


def _names(s: ast.Import | ast.ImportFrom) -> dict[str, str]:
    if isinstance(s, ast.Import):
        return {
            a.asname or a.name.partition(".")[0]: canonical(a.name if a.asname else a.name.partition(".")[0])
            for a in s.names
        }
    if s.level or not s.module:
        return {}
    return {a.asname or a.name: canonical(f"{s.module}.{a.name}") for a in s.names}


def _bound(s: ast.stmt) -> set[str]:
    """What another statement at the top of a file may bind."""
    if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {s.name}
    names = {n.id for n in walk(s, ast.Name) if not isinstance(n.ctx, ast.Load)}
    inner = (n for n in walk(s) if isinstance(n, (ast.Import, ast.ImportFrom)))
    return names | {a.asname or a.name.partition(".")[0] for i in inner for a in i.names}
