"""Steps that make their batches themselves, in a script that names no device: it runs on the CPU, and its result does.

The Trainer places the model and a loader's batches; what `get_batch()` and `next(it)` give stays where it was made.
"""

from __future__ import annotations

import ast
import re

from ..facts.nodes import walk
from ..facts.placed import MAKES_TENSORS
from ..facts.script import Facts
from .chunks import Chunk
from .nodes import local_function
from .own_device import OwnDevice

DEVICES = re.compile(r"device|cuda|gpu|mps|xpu|accelerat|\.to\(", re.IGNORECASE)
FROM_OTHERS = {"torch." + n for n in "tensor as_tensor from_numpy Tensor FloatTensor LongTensor".split()}
JOINS = {"torch.stack", "torch.cat"}


def names_no_device(facts: Facts) -> bool:
    """Whether the text says nothing of devices: it runs on the CPU wherever it is started."""
    return DEVICES.search(facts.text.text) is None


def made_in_step(facts: Facts, chunks: list[Chunk], placed: OwnDevice) -> ast.Call | None:
    """The first call of a training step that gives it a batch, which nothing moves to the model."""
    steps = (s for chunk in chunks if chunk.hook == "training_step" for s in chunk.statements)
    for call in (c for s in steps for c in walk(s) if isinstance(c, ast.Call)):
        if call in placed.calls or isinstance(facts.scopes.parents.get(call), ast.Expr):
            continue
        if facts.names.resolve(call.func) in FROM_OTHERS or _draws(facts, call, 0):
            return call
    return None


def _draws(facts: Facts, call: ast.Call, depth: int) -> bool:
    """`next(it)`, or a function of the script that makes tensors."""
    if not isinstance(call.func, ast.Name) or depth > 3:
        return False
    if call.func.id == "next":
        return facts.scopes.scope_of(call.func).lookup("next") is None
    f = local_function(facts, call.func)
    inside = [c for c in walk(f) if isinstance(c, ast.Call)] if f is not None else []
    makes = MAKES_TENSORS | JOINS
    return any(facts.names.resolve(c.func) in makes or _draws(facts, c, depth + 1) for c in inside)
