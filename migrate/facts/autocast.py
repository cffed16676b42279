"""What opens automatic mixed precision, by any of its names."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .script import Facts

AUTOCAST = {"torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast", "torch.autocast"}


def is_autocast(facts: Facts, node: ast.expr) -> bool:
    """`torch.autocast("cuda")`, called."""
    return isinstance(node, ast.Call) and facts.names.resolve(node.func) in AUTOCAST
