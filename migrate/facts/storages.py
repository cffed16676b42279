"""What a `map_location` function is given: a storage, which has `.cuda()`, and `.to` by keyword alone.

Source: https://docs.pytorch.org/docs/stable/generated/torch.load.html and torch.UntypedStorage.to
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .arguments import argument_at

if TYPE_CHECKING:
    from .script import Facts


def is_storage(facts: Facts, e: ast.expr) -> bool:
    """The `storage` of `torch.load(path, map_location=lambda storage, location: storage.cuda(0))`."""
    if not isinstance(e, ast.Name):
        return False
    home = facts.scopes.scope_of(e).lookup(e.id)
    f = home.node if home is not None else None
    if not isinstance(f, (ast.Lambda, ast.FunctionDef)) or next(iter(_parameters(f)), None) != e.id:
        return False
    for call in facts.calls_of("load"):
        where = argument_at(call, "map_location", 1)
        if where is f or (isinstance(f, ast.FunctionDef) and isinstance(where, ast.Name) and where.id == f.name):
            return True
    return False


def _parameters(f: ast.Lambda | ast.FunctionDef) -> list[str]:
    return [a.arg for a in (*f.args.posonlyargs, *f.args.args)]
