"""One step made two: the statements are marked as libcst passes them, and divided when it leaves the function."""

from __future__ import annotations

from typing import Any

from .cutting import Cut


class Marks:
    """Which statement of the step each marker stands before, and the expressions that were given names."""

    def __init__(self) -> None:
        self.of: dict[int, int] = {}
        self.kept: list[Any] = []  # so that no other node gets the id of one of these
        self.named: list[tuple[str, Any, int]] = []

    def mark(self, place: int) -> Any:
        def rewrite(original: Any, updated: Any) -> Any:
            import libcst as cst

            marker = cst.Pass()
            self.of[id(marker)] = place
            self.kept.append(marker)
            if isinstance(updated, cst.FlattenSentinel):  # the body of a `with` that goes
                return cst.FlattenSentinel([cst.SimpleStatementLine([marker]), *updated])
            before = cst.SimpleStatementLine([marker]) if isinstance(updated, cst.BaseCompoundStatement) else marker
            return cst.FlattenSentinel([before, updated])

        return rewrite


def hoisted(marks: Marks, name: str, statement: int, instead: str | None = None) -> Any:
    """The expression goes to a statement of its own, and its name (or a call of it) stands there instead."""

    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        marks.named.append((name, updated.with_changes(lpar=[], rpar=[]) if updated.lpar else updated, statement))
        return cst.Name(name) if instead is None else cst.parse_expression(instead)

    return rewrite


def split(marks: Marks, found: Cut, count: int) -> Any:
    def rewrite(original: Any, updated: Any) -> Any:
        import libcst as cst

        statements = _by_place(marks, updated.body, found)
        before: list[Any] = statements.pop(-1, [])
        for i in range(found.at):
            if i in found.counted:
                before.append(cst.parse_statement("{} = len({})".format(*found.counted[i])))
            before += _named(marks, i)
            if i not in found.gone:
                before += statements.get(i, [])
        before += [line for i in found.ahead for line in statements.get(i, [])]
        named = _named(marks, found.at)
        if len(named) == 1 == len(found.crossing):
            before.append(cst.SimpleStatementLine([cst.Return(named[0].body[0].value)]))
        else:
            before += [*named, *_paired(found), _returned(found.crossing)]
        later = [i for i in range(found.at, count) if i not in found.ahead]
        behind = [line for i in [*found.behind, *later] for line in statements.get(i, [])]
        end = updated.with_changes(
            name=cst.Name(f"{updated.name.value}_end"),
            params=_parameters(found, updated.params),
            body=_block([_docstring(), *_unpacked(found), *behind], updated.body),
            leading_lines=[cst.EmptyLine(indent=False)],
        )
        footer: Any = [] if isinstance(updated.body, cst.IndentedBlock) else None
        first = updated.with_changes(body=_block(before, updated.body, footer), returns=None)
        return cst.FlattenSentinel([first, end])

    return rewrite


def _by_place(marks: Marks, body: Any, cut: Cut) -> dict[int, list[Any]]:
    """The lines of a function by the statement of the step that they belong to; -1 for those before the first."""
    import libcst as cst

    lines = body.body
    if isinstance(body, cst.SimpleStatementSuite):
        lines = [cst.SimpleStatementLine(body.body)]
    found: dict[int, list[Any]] = {}
    place = -1
    for line in lines:
        if isinstance(line, cst.SimpleStatementLine):
            groups = _groups(marks, line, place)
            place = groups[-1][0]
            groups = _joined(marks, cut, [(at, body) for at, body in groups if body])
            for i, (at, body) in enumerate(groups):
                found.setdefault(at, []).append(_part(line, body, not i, i == len(groups) - 1))
            continue
        found.setdefault(place, []).append(line)
    return found


def _groups(marks: Marks, line: Any, place: int) -> list[tuple[int, list[Any]]]:
    """The statements of a line, `a; b`, by their places; `place` is that of the line before."""
    groups: list[tuple[int, list[Any]]] = [(place, [])]
    for s in line.body:
        if id(s) in marks.of:
            groups.append((marks.of[id(s)], []))
        else:
            groups[-1][1].append(s)
    return groups


def _joined(marks: Marks, cut: Cut, groups: list[tuple[int, list[Any]]]) -> list[tuple[int, list[Any]]]:
    """Statements that nothing comes between stay on their line."""
    apart = {*cut.behind, *cut.ahead, *cut.counted, *(at for _, _, at in marks.named)}
    found: list[tuple[int, list[Any]]] = []
    for at, body in groups:
        if found and not {at, found[-1][0]} & apart and (at < cut.at) == (found[-1][0] < cut.at):
            found[-1] = (found[-1][0], [*found[-1][1], *body])
        else:
            found.append((at, body))
    return found


def _part(line: Any, body: list[Any], first: bool, last: bool) -> Any:
    import libcst as cst

    if first and last and len(body) == len(line.body):
        return line
    body = [*body[:-1], body[-1] if last else body[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]
    line = line if first else line.with_changes(leading_lines=[])
    return line.with_changes(body=body) if last else cst.SimpleStatementLine(body, leading_lines=line.leading_lines)


def _named(marks: Marks, place: int) -> list[Any]:
    import libcst as cst

    return [
        cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)])
        for name, value, at in marks.named
        if at == place
    ]


def _returned(crossing: list[str]) -> Any:
    import libcst as cst

    if len(crossing) == 1:
        return cst.SimpleStatementLine([cst.Return(cst.Name(crossing[0]))])
    elements = [cst.DictElement(cst.SimpleString(f'"{n}"'), cst.Name(n)) for n in crossing]
    return cst.SimpleStatementLine([cst.Return(cst.Dict(elements))])


def _parameters(found: Cut, params: Any) -> Any:
    """self, what crosses, and what a helper is given again."""
    import libcst as cst

    every = [*params.posonly_params, *params.params, *params.kwonly_params]
    passed = [p.with_changes(comma=cst.MaybeSentinel.DEFAULT, star="") for p in every if p.name.value in found.passed]
    own = found.crossing[0] if len(found.crossing) == 1 else "outputs"
    me = every[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return cst.Parameters([me, cst.Param(cst.Name(own)), *passed])


def _paired(found: Cut) -> list[Any]:
    """Views one after another, as what belongs to one sample side by side."""
    import libcst as cst

    return [
        cst.parse_statement(f"{name} = {name}.unflatten(0, ({count}, -1)).transpose(0, 1)")
        for name, count in found.views.items()
    ]


def _unpacked(found: Cut) -> list[Any]:
    import libcst as cst

    lines = []
    if len(found.crossing) > 1:
        last = sorted(found.crossing, key=lambda n: n == "outputs")  # a value of that name is taken out last
        lines = [f'{n} = outputs["{n}"]' for n in last]
    lines += [f"{name} = {name}.transpose(0, 1).flatten(0, 1)" for name in found.views]
    return [cst.parse_statement(line) for line in lines]


def _docstring() -> Any:
    import libcst as cst

    text = '"""The whole batch, put together again on dp and ddp2."""'
    return cst.SimpleStatementLine([cst.Expr(cst.SimpleString(text))])


def _block(body: list[Any], was: Any, footer: Any = None) -> Any:
    import libcst as cst

    if isinstance(was, cst.IndentedBlock):
        return was.with_changes(body=body) if footer is None else was.with_changes(body=body, footer=footer)
    return cst.IndentedBlock(body)
