"""Which expressions only ask: they may be left out without anything else noticing."""

from __future__ import annotations

import ast
import re

from .names import Names
from .nodes import walk

ASKS = re.compile(r"(is_|get_|has)")
BUILTINS = {"isinstance", "hasattr", "getattr", "len", "int", "bool", "str", "min", "max"}


def only_asks(names: Names, node: ast.AST) -> bool:
    """No call in it but of torch's own questions and builtins without effect."""
    for n in walk(node):
        if isinstance(n, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            return False
        if isinstance(n, ast.Call):
            if isinstance(n.func, ast.Name) and n.func.id in BUILTINS:
                continue
            full = names.resolve(n.func) or ""
            last = n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "")
            if not full.startswith(("torch.distributed.", "torch.cuda.", "torch.device", "os.environ", "os.getenv")):
                if not ASKS.match(last):
                    return False
            elif full.startswith("torch.distributed.") and not ASKS.match(last):
                return False
    return True
