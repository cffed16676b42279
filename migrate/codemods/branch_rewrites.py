"""Small rewrites of `if` and `with` to what is in them, each given a node as it was and as its parts have become."""

from __future__ import annotations

from typing import Any


def first_gone(original: Any, updated: Any) -> Any:
    """`if c: a` `elif d: b` to `if d: b`; `else:` to what is in it."""
    import libcst as cst

    if isinstance(updated.orelse, cst.If):
        lines = [*updated.leading_lines, *updated.orelse.leading_lines]
        return updated.orelse.with_changes(leading_lines=lines)
    return else_only(original, updated)


def take_elif(taken: bool) -> Any:
    """`elif c: a` `else: b` to `else: a` where c is known to hold, else to `else: b`, or to nothing."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        if taken:
            return cst.Else(updated.body, leading_lines=updated.leading_lines)
        return updated.orelse if updated.orelse is not None else cst.RemoveFromParent()

    return rewrite


def else_only(original: Any, updated: Any) -> Any:
    """`if c: a` `else: b` to b, with the comments that stood above; nothing is left where b went too."""
    return _spread(updated, updated.orelse.body) if updated.orelse is not None else None


def body_only(original: Any, updated: Any) -> Any:
    """`if c: a` to a, with the comments that stood above."""
    return _spread(updated, updated.body)


def without_item(place: int) -> Any:
    """`with a, b:` to `with a:`; the last one that is left ends as the last one ended."""

    import libcst as cst

    def rewrite(original: Any, updated: Any) -> Any:
        items = [*updated.items[:place], *updated.items[place + 1 :]]
        last = updated.items[-1]
        if items[-1] is last:
            return updated.with_changes(items=items)
        own: Any = getattr(items[-1].comma, "whitespace_after", None)
        end: Any = getattr(updated.rpar, "whitespace_before", None)  # where the comment behind the last one stands
        if all(isinstance(w, cst.ParenthesizedWhitespace) for w in (own, end)) and own.first_line.comment is not None:
            end = end.with_changes(first_line=own.first_line)
            updated = updated.with_changes(rpar=updated.rpar.with_changes(whitespace_before=end))
        items[-1] = items[-1].with_changes(comma=last.comma)
        return updated.with_changes(items=items)

    return rewrite


def _spread(updated: Any, suite: Any) -> Any:
    import libcst as cst

    from ._gaps import end_of

    body = list(suite.body)
    if isinstance(suite, cst.SimpleStatementSuite):
        body = [cst.SimpleStatementLine(body, trailing_whitespace=suite.trailing_whitespace)]
    body[0] = body[0].with_changes(leading_lines=[*updated.leading_lines, *body[0].leading_lines])
    return cst.FlattenSentinel([*body, *end_of(suite)])
