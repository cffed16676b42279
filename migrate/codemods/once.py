"""T9: what every process would do again is done by rank 0: `print` and `torch.save` outside the lifted class.

Both stay the same call on one process.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..facts.script import Facts
from .base import Change, Codemod

PRINT, SAVE = "rank_zero_print", "rank_zero_save"


class Once(Codemod):
    code = "PTM410"
    name = "rank-zero-output"

    def plan(self, facts: Facts) -> Iterator[Change]:
        for call in facts.walk(ast.Call):
            new = self._replacement(facts, call)
            if new is not None:
                old = facts.text.get(call.func)
                yield Change(call, self.edit(facts, call, f"`{old}` became `{new}`: rank 0 alone does it"), _renamed(new))

    def _replacement(self, facts: Facts, call: ast.Call) -> str | None:
        if isinstance(call.func, ast.Name) and call.func.id == "print":
            if facts.scopes.scope_of(call.func).lookup("print") is not None:
                return None
            where = next((k.value for k in call.keywords if k.arg == "file"), None)
            return PRINT if where is None or ast.unparse(where) in ("sys.stdout", "sys.stderr") else None
        if facts.names.resolve(call.func) == "torch.save" and isinstance(facts.scopes.parents.get(call), ast.Expr):
            return SAVE if self._saves_once(facts, call) else None
        return None

    def _saves_once(self, facts: Facts, call: ast.Call) -> bool:
        """Not where a rank guard of the script, or of the lift, stands around it already."""
        for up in facts.scopes.ancestors(call):
            if isinstance(up, ast.If) and any(
                isinstance(n, ast.Attribute) and n.attr == "is_global_zero" for n in ast.walk(up.test)
            ):
                return False
        return True


def _renamed(new: str) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        return updated.with_changes(func=cst.Name(new, lpar=updated.func.lpar, rpar=updated.func.rpar))

    return rewrite
