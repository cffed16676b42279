"""Small rewrites that codemods share: each is given a node as it was and as its parts have become."""

from __future__ import annotations

from typing import Any


def _with_parentheses(updated: Any, part: Any) -> Any:
    """A part in the place of the whole, inside the parentheses that stood around the whole."""
    if not updated.lpar:
        return part
    return part.with_changes(lpar=[*updated.lpar, *part.lpar], rpar=[*part.rpar, *updated.rpar])


def unwrap(original: Any, updated: Any) -> Any:
    """`x.to(device)` to `x`."""
    return _with_parentheses(updated, updated.func.value)


def take_branch(field: str) -> Any:
    """`a if c else b` to one of its branches."""

    def rewrite(original: Any, updated: Any) -> Any:
        return _with_parentheses(updated, getattr(updated, field))

    return rewrite


def take_iterable(original: Any, updated: Any) -> Any:
    """`[f(t) for t in batch]` to `batch`."""
    return _with_parentheses(updated, updated.for_in.iter)


def take_argument(place: int) -> Any:
    """`f(x)` to `x`."""

    def rewrite(original: Any, updated: Any) -> Any:
        return _with_parentheses(updated, updated.args[place].value)

    return rewrite


def keep_arguments(places: list[int]) -> Any:
    return _arguments(lambda i: i in places)


def drop_arguments(*places: int) -> Any:
    return _arguments(lambda i: i not in places)


def _arguments(stays: Any) -> Any:
    """The call with some of its arguments; places are those of the original, so that several changes add up."""

    def rewrite(original: Any, updated: Any) -> Any:
        dropped = {id(a) for i, a in enumerate(original.args) if not stays(i)}
        by_keyword = {a.keyword.value for a in original.args if id(a) in dropped and a.keyword is not None}
        positional = [i for i, a in enumerate(original.args) if id(a) in dropped and a.keyword is None]
        args = [
            a
            for i, a in enumerate(updated.args)
            if not (a.keyword is not None and a.keyword.value in by_keyword) and i not in positional
        ]
        return updated.with_changes(args=_last_without_comma(args, updated.args))

    return rewrite


def _last_without_comma(args: list[Any], before: Any) -> list[Any]:
    import libcst as cst

    if args and before and args[-1] is not before[-1]:
        args[-1] = args[-1].with_changes(comma=before[-1].comma)
        if isinstance(before[-1].comma, cst.MaybeSentinel):
            args[-1] = args[-1].with_changes(whitespace_after_arg=before[-1].whitespace_after_arg)
    return args


def rename_function(new: str) -> Any:
    """The call of another function: `new` may be dotted."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        func = cst.parse_expression(new)
        return updated.with_changes(func=func.with_changes(lpar=updated.func.lpar, rpar=updated.func.rpar))

    return rewrite


def source(new: str) -> Any:
    """Another expression in the place of this one."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        return _with_parentheses(updated, cst.parse_expression(new))

    return rewrite


def set_keyword(name: str, value: str) -> Any:
    """The call with `name=value`, in place of the keyword of that name or behind the last argument."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        expression = cst.parse_expression(value)
        args = list(updated.args)
        for i, a in enumerate(args):
            if a.keyword is not None and a.keyword.value == name:
                args[i] = a.with_changes(value=expression)
                return updated.with_changes(args=args)
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        new = cst.Arg(expression, keyword=cst.Name(name), equal=equal)
        at = len(args) - 1 if args and args[-1].star == "**" else len(args)
        args.insert(at, new)
        if at < len(args) - 1:
            args[at] = new.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
        elif at:
            before = args[at - 1]
            if not isinstance(before.comma, cst.MaybeSentinel):  # a comma after the last one stays after the last one
                args[at] = new.with_changes(comma=before.comma)
            elif not isinstance(before.whitespace_after_arg, cst.SimpleWhitespace):
                args[at] = new.with_changes(whitespace_after_arg=before.whitespace_after_arg)
                before = before.with_changes(whitespace_after_arg=cst.SimpleWhitespace(""))
            between = cst.Comma(whitespace_after=_gap(args, at, updated))
            args[at - 1] = before.with_changes(comma=between)
        return updated.with_changes(args=args)

    return rewrite


def _gap(args: list[Any], at: int, call: Any) -> Any:
    """How this call separates its arguments: on lines of their own, or by a space."""
    import libcst as cst

    if at >= 2:
        comma = args[at - 2].comma
        if isinstance(comma, cst.Comma):
            return _plain(comma.whitespace_after)
    ws = call.whitespace_before_args
    return _plain(ws) if at == 1 and isinstance(ws, cst.ParenthesizedWhitespace) else cst.SimpleWhitespace(" ")


def _plain(whitespace: Any) -> Any:
    """Whitespace without the comments in it."""
    import libcst as cst

    if isinstance(whitespace, cst.ParenthesizedWhitespace):
        line = whitespace.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
        return whitespace.with_changes(first_line=line, empty_lines=[])
    return whitespace
