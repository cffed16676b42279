"""What only a machine with CUDA has is asked of such a machine alone: `torch.cuda.synchronize()` and its like.

They wait, reset and give nothing; without CUDA they raise, in a script that otherwise runs anywhere by now.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ..facts.devices import AVAILABILITY
from ..facts.nodes import walk
from ..facts.script import Facts
from .base import Change, Codemod

NAMES = "synchronize reset_peak_memory_stats reset_max_memory_allocated reset_max_memory_cached ipc_collect init"
RAISE = {f"torch.cuda.{name}" for name in f"{NAMES} reset_accumulated_memory_stats".split()}
TELLS_OF_CUDA = re.compile(r"cuda|gpu|device|accelerator", re.IGNORECASE)


class AskForCuda(Codemod):
    code = "PTM112"
    name = "ask-for-cuda"

    def plan(self, facts: Facts) -> Iterator[Change]:
        for call in facts.walk(ast.Call):
            if not isinstance(call.func, ast.Attribute) or facts.names.resolve(call.func) not in RAISE:
                continue
            s = facts.scopes.parents.get(call)
            if isinstance(s, ast.Expr) and _stands_alone(facts, s) and not _asked(facts, s):
                says = f"`{facts.short(call)}` raises without CUDA, which is asked for first"
                yield Change(s, self.edit(facts, s, says), _under_a_question(facts.indentation))


def _stands_alone(facts: Facts, s: ast.stmt) -> bool:
    line = facts.text.text[slice(*facts.text.line_span(s.lineno, s.end_lineno or s.lineno))]
    return not facts.text.margin(s).strip() and ";" not in line


def _asked(facts: Facts, s: ast.stmt) -> bool:
    """Whether a condition around a statement tells of devices, or a `try` is ready for what is raised."""
    for up in facts.scopes.ancestors(s):
        if isinstance(up, ast.Try) and up.handlers:
            return True
        for n in walk(up.test) if isinstance(up, ast.If | ast.While) else ():
            name = n.id if isinstance(n, ast.Name) else n.attr if isinstance(n, ast.Attribute) else ""
            if TELLS_OF_CUDA.search(name) or facts.names.resolve(n) in AVAILABILITY:
                return True
    return False


def _under_a_question(unit: str) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        from ._pass import Under

        return Under(cst.Call(cst.Attribute(updated.value.func.value, cst.Name("is_available"))), updated, unit)

    return rewrite
