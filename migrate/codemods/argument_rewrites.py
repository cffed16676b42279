"""Small rewrites of what calls are given, each given a node as it was and as its parts have become."""

from __future__ import annotations

from typing import Any


def keep_arguments(places: list[int]) -> Any:
    return _arguments(lambda i: i in places)


class DropArgument:
    """The call without the argument at a place of the text; of several in one call the last goes first."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __call__(self, original: Any, updated: Any) -> Any:
        return _arguments(lambda i: i != self.place)(original, updated)


def _arguments(stays: Any) -> Any:
    """The call with some of its arguments, of which none behind these has gone yet."""

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
    """The arguments with the last one ended as the last one was before."""
    if args and before and args[-1] is not before[-1]:
        args[-1] = ended_as(args[-1], before[-1], "whitespace_after_arg")
    return args


def ended_as(last: Any, before: Any, after: str) -> Any:
    """An argument or parameter in the place of the last one; a comment behind it stays. `after`: its field there."""
    import libcst as cst

    own = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else cst.SimpleWhitespace("")
    if isinstance(before.comma, cst.Comma):
        ending = _with_comment(own, before.comma.whitespace_after)
        return last.with_changes(comma=before.comma.with_changes(whitespace_after=ending))
    return last.with_changes(comma=cst.MaybeSentinel.DEFAULT, **{after: _with_comment(own, getattr(before, after))})


def _with_comment(own: Any, other: Any) -> Any:
    """The `other` whitespace, with the comment that stood in an argument's `own`."""
    import libcst as cst

    if not isinstance(own, cst.ParenthesizedWhitespace) or own.first_line.comment is None:
        return other
    if isinstance(other, cst.ParenthesizedWhitespace):
        return other.with_changes(first_line=own.first_line)
    return own


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
        new = cst.Arg(expression, keyword=cst.Name(name), equal=_equal())
        at = len(args) - 1 if args and args[-1].star == "**" else len(args)
        args.insert(at, new)
        if at < len(args) - 1:
            args[at] = new.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
        elif at:
            before = args[at - 1]
            if isinstance(before.comma, cst.Comma):  # a comma after the last one stays after the last one
                ended = before.comma.whitespace_after
                args[at] = new.with_changes(comma=before.comma.with_changes(whitespace_after=_plain(ended)))
            else:
                ended = before.whitespace_after_arg
                args[at] = new.with_changes(whitespace_after_arg=_plain(ended))
                before = before.with_changes(whitespace_after_arg=cst.SimpleWhitespace(""))
            args[at - 1] = before.with_changes(
                comma=cst.Comma(whitespace_after=_with_comment(ended, _gap(args, at, updated)))
            )
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


def change_call(parameters: tuple[str, ...], drop: set[str], values: dict[str, str]) -> Any:
    """The call without some arguments and with others given anew, by keyword or place.

    `parameters` are the names by place; what follows a dropped positional argument is given by keyword.
    """

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        args, left, missing = [], dict(values), False
        given = {a.keyword.value for a in updated.args if a.keyword is not None} | set(parameters[: _places(updated)])
        for i, a in enumerate(updated.args):
            name = a.keyword.value if a.keyword is not None else (parameters[i] if i < len(parameters) else None)
            if a.star or name is None:
                args.append(a)
                continue
            if name in drop:
                missing = missing or a.keyword is None
                new = next((n for n in left if n not in given), None)
                if a.keyword is not None and new is not None:
                    args.append(a.with_changes(keyword=cst.Name(new), value=cst.parse_expression(left.pop(new))))
                continue
            if name in left:
                a = a.with_changes(value=cst.parse_expression(left.pop(name)))
            if missing and a.keyword is None:
                a = a.with_changes(keyword=cst.Name(name), equal=_equal())
            args.append(a)
        call = updated.with_changes(args=_last_without_comma(args, updated.args))
        for name, value in left.items():
            call = set_keyword(name, value)(original, call)
        return call

    return rewrite


def _places(call: Any) -> int:
    return sum(a.keyword is None and not a.star for a in call.args)


def change_dict(drop: set[str], values: dict[str, str]) -> Any:
    """A dictionary display without some keys; the value of the first dropped one is replaced by what is new."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        kept, left = [], dict(values)
        for element in updated.elements:
            key: Any = element.key if isinstance(element, cst.DictElement) else None
            name = key.evaluated_value if isinstance(key, cst.SimpleString) else None
            if name not in drop:
                kept.append(element)
            elif left:
                new, value = left.popitem()
                quote = key.value[0]
                kept.append(
                    element.with_changes(
                        key=cst.SimpleString(f"{quote}{new}{quote}"), value=cst.parse_expression(value)
                    )
                )
        if kept and kept[-1] is not updated.elements[-1] and len(kept) < len(updated.elements):
            kept[-1] = kept[-1].with_changes(comma=updated.elements[-1].comma)
        return updated.with_changes(elements=kept)

    return rewrite


def _equal() -> Any:
    import libcst as cst

    return cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def change_method(name: str, argument: str) -> Any:
    """`x.cuda(0)` to `x.name(argument)`."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        func = updated.func.with_changes(attr=cst.Name(name))
        return updated.with_changes(func=func, args=[cst.Arg(cst.parse_expression(argument))])

    return rewrite


def to_argument(device: Any, by_name: bool) -> Any:
    """What `.to` is given; a storage takes it by its name alone."""
    import libcst as cst

    if not by_name:
        return cst.Arg(device)
    return cst.Arg(device, keyword=cst.Name("device"), equal=_equal())


def change_argument(place: int, new: str) -> Any:
    """The call with another value for the argument at a place of the text."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        args = list(updated.args)
        args[place] = args[place].with_changes(value=cst.parse_expression(new))
        return updated.with_changes(args=args)

    return rewrite
