"""Chains of methods over several lines, of which one goes: the comment behind what it was called on stays.

x.float()      # as numbers
.to(device)    # over there
.div(255)
"""

from __future__ import annotations

from typing import Any


def behind(call: Any, after: Any) -> Any:
    """The space `after` a method's call that goes, with the comment that ends the line of what it was called on."""
    import libcst as cst

    method = call.func if isinstance(call, cst.Call) else None
    own = method.dot.whitespace_before if isinstance(method, cst.Attribute) else None
    if not isinstance(own, cst.ParenthesizedWhitespace) or own.first_line.comment is None:
        return after
    return after.with_changes(first_line=own.first_line) if isinstance(after, cst.ParenthesizedWhitespace) else own


def dot_behind(call: Any, after: Any, dot: Any) -> Any:
    """The dot behind a method's call, of which `after` is left."""
    space = behind(call, dot.whitespace_before)
    if space is dot.whitespace_before:
        return dot
    method = getattr(after, "func", None)
    stays = getattr(getattr(method, "attr", None), "value", None) == call.func.attr.value
    return dot if stays else dot.with_changes(whitespace_before=space)
