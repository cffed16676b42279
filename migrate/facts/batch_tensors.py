"""Names of a step that are one tensor, and no tuple of several, as it uses them: of such a one `out[0]` is a sample.

What a network gives may be either. A name that is given a value twice, or is asked for its type, shows nothing.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .batch_operations import JOINS
from .nodes import walk
from .spelled import spelled
from .tensor_methods import FUNCTIONS, METHODS

if TYPE_CHECKING:
    from .script import Facts

MOVES = {"to", "cpu", "cuda", "float", "half", "double", "type"}  # what else than a tensor may have them
OF_TENSORS = METHODS - MOVES - JOINS
OF_LISTS = {"cat", "stack", "hstack", "vstack", "concat", "block_diag", "einsum"}
ARITHMETIC = (ast.Sub, ast.Div, ast.Pow, ast.MatMult)
ASKS = ("isinstance", "type", "hasattr", "len")


def tensors_of(body: list[ast.stmt], resolve: Callable[[ast.expr], str | None], losses: set[str]) -> set[str]:
    """`losses`: the source of what torch's criteria are called by."""
    nodes = [n for s in _sure(body) for n in walk(s)]
    found = {e.id for n in nodes for e in _used(n, resolve, losses) if isinstance(e, ast.Name)}
    if not found:
        return found
    stored: Counter[str] = Counter()
    for s in body:
        for n in walk(s):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                stored[n.id] += 1
            elif isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ASKS and n.args:
                stored[getattr(n.args[0], "id", "")] += 2
            elif isinstance(n, ast.Assign):
                own = {t.id for t in n.targets if isinstance(t, ast.Name)}
                stored.update(x.id for x in walk(n.value, ast.Name) if x.id in own)
    return {name for name in found if stored[name] < 2}


def losses_of(facts: Facts) -> set[str]:
    """What torch's own criteria are called by: `criterion`, `self.criterion`."""
    found: dict[str, bool] = {}
    for s in facts.walk(ast.Assign):
        name = spelled(s.targets[0]) if isinstance(s.targets[0], (ast.Name, ast.Attribute)) else ""
        made = (facts.names.resolve(s.value.func) or "") if isinstance(s.value, ast.Call) else ""
        found[name] = found.get(name, True) and made.startswith("torch.nn.") and made.endswith("Loss")
    return {name for name, only in found.items() if only and name}


def _sure(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run in any case."""
    for s in body:
        if isinstance(s, ast.With):
            yield from _sure(s.body)
        elif isinstance(s, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)):
            yield s


def _is_function(call: ast.Call, resolve: Callable[[ast.expr], str | None], of: set[str]) -> bool:
    full = resolve(call.func) or ""
    if full.endswith("attention_forward") or any(k.arg == "return_indices" for k in call.keywords):
        return False  # these give several
    return full.startswith("torch.nn.functional.") or (full.startswith("torch.") and full[6:] in of)


def _used(n: ast.AST, resolve: Callable[[ast.expr], str | None], losses: set[str]) -> list[ast.expr]:
    """What a node takes for a tensor."""
    if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call):
        made = getattr(n.value.func, "attr", "") in OF_TENSORS or _is_function(n.value, resolve, FUNCTIONS)
        return n.targets if made else []
    if isinstance(n, ast.BinOp):
        return [n.left, n.right] if isinstance(n.op, ARITHMETIC) else []
    if not isinstance(n, ast.Call):
        return []
    if _is_function(n, resolve, FUNCTIONS - OF_LISTS):
        return n.args[:1]
    if losses and isinstance(n.func, (ast.Name, ast.Attribute)) and spelled(n.func) in losses:
        return n.args[:1]
    return [n.func.value] if isinstance(n.func, ast.Attribute) and n.func.attr in OF_TENSORS else []
