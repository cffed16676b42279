"""T9: what every process would do again is done by rank 0: `print` and `torch.save` outside the lifted class.

Both stay the same call on one process.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ..facts.script import Facts
from .base import Change, Codemod

PRINT, SAVE = "rank_zero_print", "rank_zero_save"
# the words by which scripts ask whether they are the process that writes
RANK_GUARD = re.compile(r"rank|is_global_zero|master|is_main|main_process", re.IGNORECASE)


class Once(Codemod):
    code = "PTM410"
    name = "rank-zero-output"

    def plan(self, facts: Facts) -> Iterator[Change]:
        files = set()
        for holder in facts.walk(ast.With):
            if (call := self._saved_to_open_file(facts, holder)) is not None:
                files.add(call)
                says = f"`{facts.short(holder)}` became `{SAVE}`: rank 0 alone writes the file, whole or not at all"
                yield Change(holder, self.edit(facts, holder, says), _saved(call))
        for call in facts.walk(ast.Call):
            new = self._replacement(facts, call) if call not in files else None
            if new is not None:
                old = facts.text.get(call.func)
                yield Change(
                    call, self.edit(facts, call, f"`{old}` became `{new}`: rank 0 alone does it"), _renamed(new)
                )

    def _saved_to_open_file(self, facts: Facts, holder: ast.With) -> ast.Call | None:
        """The save in `with open(path, "wb") as f: torch.save(x, f)`: every rank would cut the file short."""
        item, body = holder.items[0], holder.body[0]
        opened = item.context_expr
        if not (len(holder.items) == len(holder.body) == 1 and isinstance(item.optional_vars, ast.Name)):
            return None
        if not (
            isinstance(opened, ast.Call)
            and isinstance(opened.func, ast.Name)
            and opened.func.id == "open"
            and opened.args
        ):
            return None
        call = body.value if isinstance(body, ast.Expr) else None
        if not isinstance(call, ast.Call) or facts.names.resolve(call.func) != "torch.save" or len(call.args) != 2:
            return None
        to = call.args[1]
        is_file = isinstance(to, ast.Name) and to.id == item.optional_vars.id
        return call if is_file and self._saves_once(facts, call) else None

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
            if isinstance(up, ast.If) and RANK_GUARD.search(ast.unparse(up.test)):
                return False
        return True


def renamed_in_text(facts: Facts, changes: list[Change]) -> str | None:
    """The text with its calls renamed, by their places alone; None where more than a name changes."""
    if not all(isinstance(c.node, ast.Call) for c in changes):
        return None
    text = facts.text.text
    for c in sorted(changes, key=lambda c: facts.text.span(c.node), reverse=True):
        assert isinstance(c.node, ast.Call)
        start, stop = facts.text.span(c.node.func)
        text = text[:start] + (PRINT if text[start:stop] == "print" else SAVE) + text[stop:]
    return text


def _renamed(new: str) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        return updated.with_changes(func=cst.Name(new, lpar=updated.func.lpar, rpar=updated.func.rpar))

    return rewrite


def _saved(call: ast.Call) -> Any:
    """`with open(path, "wb") as f: torch.save(x, f)` to `rank_zero_save(x, path)`."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        save = updated.body.body[0].body[0]
        path = updated.items[0].item.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        args = [save.value.args[0], path, *save.value.args[2:]]
        new = save.with_changes(value=save.value.with_changes(func=cst.Name(SAVE), args=args))
        return cst.SimpleStatementLine([new], leading_lines=updated.leading_lines)

    return rewrite
