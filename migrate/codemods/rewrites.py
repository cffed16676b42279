"""Small rewrites that codemods share: each is given a node as it was and as its parts have become."""

from __future__ import annotations

from typing import Any

from ..facts.operands import ANY, closed
from ._chains import behind


def with_parentheses(updated: Any, part: Any) -> Any:
    """A part in the place of the whole, inside the parentheses that stood around the whole.

    Over several lines it gets its own; where it stands beside operators, the pass sees to it.
    """
    if not updated.lpar:
        return _on_its_own(part)
    return part.with_changes(lpar=[*updated.lpar, *part.lpar], rpar=[*part.rpar, *updated.rpar])


def _on_its_own(part: Any) -> Any:
    """An expression that was within parentheses of others, which may have kept its lines together."""
    import libcst as cst

    if part.lpar or isinstance(part, cst.Name) or "\n" not in (text := cst.Module([]).code_for_node(part)):
        return part
    return part if closed(text, ANY) == text else part.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def unwrap(original: Any, updated: Any) -> Any:
    """`x.to(device)` to `x`; a comment behind `x` stays."""
    if updated.rpar:
        first, *others = updated.rpar
        space = behind(updated, first.whitespace_before)
        updated = updated.with_changes(rpar=[first.with_changes(whitespace_before=space), *others])
    if not updated.lpar:
        return updated.func.value  # what keeps its lines together stands around both
    return with_parentheses(updated, updated.func.value)


def take_branch(field: str) -> Any:
    """`a if c else b` to one of its branches."""

    def rewrite(original: Any, updated: Any) -> Any:
        return with_parentheses(updated, getattr(updated, field))

    return rewrite


def take_branch_bare(field: str) -> Any:
    """The same without the parentheses around the choice, which its branch does not need."""

    def rewrite(original: Any, updated: Any) -> Any:
        branch = getattr(updated, field)
        return branch.with_changes(lpar=[*updated.lpar[:-1], *branch.lpar], rpar=[*branch.rpar, *updated.rpar[1:]])

    return rewrite


def without_condition(place: int, number: int) -> Any:
    """A comprehension without a condition of one of its loops."""

    def rewrite(original: Any, updated: Any) -> Any:
        def without(loop: Any, depth: int) -> Any:
            if depth:
                return loop.with_changes(inner_for_in=without(loop.inner_for_in, depth - 1))
            return loop.with_changes(ifs=[*loop.ifs[:number], *loop.ifs[number + 1 :]])

        return updated.with_changes(for_in=without(updated.for_in, place))

    return rewrite


def whole_slice(original: Any, updated: Any) -> Any:
    """`xs[a:b:c]` to `xs[:b]`."""
    import libcst as cst

    part = updated.slice[0]
    return updated.with_changes(slice=[part.with_changes(slice=cst.Slice(lower=None, upper=part.slice.upper))])


def take_iterable(original: Any, updated: Any) -> Any:
    """`[f(t) for t in batch]` to `batch`."""
    return with_parentheses(updated, updated.for_in.iter)


def take_items(original: Any, updated: Any) -> Any:
    """`{k: f(v) for k, v in batch.items()}` to `batch`."""
    return with_parentheses(updated, updated.for_in.iter.func.value)


def take_argument(place: int) -> Any:
    """`f(x)` to `x`."""

    def rewrite(original: Any, updated: Any) -> Any:
        return with_parentheses(updated, updated.args[place].value)

    return rewrite


def take_operand(side: str, of_call: bool = False) -> Any:
    """`a * b` to a or b; `of_call`: in the place of the call that has it as its argument, `int(a / b)`."""

    def rewrite(original: Any, updated: Any) -> Any:
        return with_parentheses(updated, getattr(updated.args[0].value if of_call else updated, side))

    return rewrite


def source(new: str) -> Any:
    """Another expression in the place of this one."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        part = closed(new, ANY)
        expression: Any = cst.parse_expression(part)
        if part != new and updated.lpar:
            return expression.with_changes(lpar=updated.lpar, rpar=updated.rpar)
        return with_parentheses(updated, expression)

    return rewrite


def bare(new: str) -> Any:
    """Another expression in the place of this one and its parentheses, which it does not need."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        new_one = cst.parse_expression(new)
        return new_one.with_changes(lpar=updated.lpar[:-1], rpar=updated.rpar[1:])

    return rewrite


def statement(new: str) -> Any:
    """Another small statement in the place of this one."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        line = cst.parse_statement(new)
        assert isinstance(line, cst.SimpleStatementLine)
        return line.body[0].with_changes(semicolon=updated.semicolon)

    return rewrite


def put_together(template: str, places: list[int], asks: tuple[str, str] | None = None) -> Any:
    """Another small statement in the place of a call, made of arguments of it as they are by then.

    `asks`: the question that is asked first, and the indentation below it.
    """

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        values = [updated.value.args[i].value for i in places]
        values = [v.body if i == 0 and isinstance(v, cst.IfExp) else v for i, v in enumerate(values)]
        given = [cst.Module([]).code_for_node(v) for v in values]
        given = [f"({g})" if "\n" in g and not g.endswith((")", "]", "}")) else g for g in given]
        new = statement(template.format(*given))(original, updated)
        return under(f"{asks[0]}()", asks[1])(original, new) if asks is not None else new

    return rewrite


def under(asks: str, unit: str) -> Any:
    """A small statement under a condition, on a line of its own."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        from ._pass import Under

        return Under(cst.parse_expression(asks), updated, unit)

    return rewrite


def statement_line(new: str) -> Any:
    """A simple statement in the place of a compound one, with the comments that stood above."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        return cst.parse_statement(new).with_changes(leading_lines=updated.leading_lines)

    return rewrite


def take_value(original: Any, updated: Any) -> Any:
    """`x.module` to `x`."""
    return with_parentheses(updated, updated.value)


def move_to(device: str) -> Any:
    """`x` to `x.to(device)`."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        own = updated.with_changes(lpar=[], rpar=[])
        call = cst.Call(cst.Attribute(own, cst.Name("to")), [cst.Arg(cst.parse_expression(device))])
        return call.with_changes(lpar=updated.lpar, rpar=updated.rpar)

    return rewrite
