"""The pass: what it rewrites, and that it builds nothing anew where nothing is planned."""

import ast

import libcst as cst
import pytest
from ptmigrate.migrate.codemods._pass import Pass, rewritten
from ptmigrate.migrate.codemods._positions import positions_of
from ptmigrate.migrate.codemods.base import Change, NotFound
from ptmigrate.migrate.codemods.rewrites import take_argument
from ptmigrate.migrate.report import Edit

TEXT = "def f(x):\n    a = g(x)  # one\n    return [h(i, j=k(a)) for i in x]\n\n\ny = f(1)\n"
K = ("Call", 3, 19, 3, 23)


def change(rewrite):
    return [Change(ast.Pass(), Edit(3, 1, "PTM000", "k", True), rewrite)]


def test_what_has_nothing_planned_in_it_is_the_very_same():
    module = cst.parse_module(TEXT)
    new = Pass({K: change(lambda _, updated: updated.args[0].value)}, positions_of(module), ()).over(module)
    assert new.code == TEXT.replace("k(a)", "a")
    assert new.body[1] is module.body[1]
    assert new.body[0].body.body[0] is module.body[0].body.body[0]


def test_nothing_planned_is_no_new_module():
    module = cst.parse_module(TEXT)
    assert Pass({}, positions_of(module), ()).over(module) is module


def test_inner_ones_go_first():
    seen = []

    def note(original, updated):
        seen.append((original.func.value, cst.Module([]).code_for_node(updated)))
        return updated.with_changes(func=cst.Name(original.func.value * 2))

    wanted = {K: change(note), ("Call", 3, 12, 3, 24): change(note)}
    assert "[hh(i, j=kk(a)) for i in x]" in rewritten(TEXT, wanted)
    assert seen == [("k", "k(a)"), ("h", "h(i, j=kk(a))")]


def test_several_in_the_place_of_one_expression_are_refused():
    with pytest.raises(TypeError):
        rewritten(TEXT, {K: change(lambda _, updated: cst.FlattenSentinel([updated, updated]))})


def test_what_is_not_there_is_told():
    with pytest.raises(NotFound):
        rewritten(TEXT, {("Call", 3, 20, 3, 23): change(None)})


@pytest.mark.parametrize(
    ("line", "became"),
    [("f(g(a + b).x)", "f((a + b).x)"), ("-g(a + b)", "-(a + b)"), ("g(a * b) + c", "(a * b) + c"),
     ("g(a if b else c)[0]", "(a if b else c)[0]"), ("not g(a or b)", "not (a or b)"), ("not g(a < b)", "not (a < b)"),
     ("[i for i in g(a or b)]", "[i for i in (a or b)]"),
     ("(g(a + b)).x", "(a + b).x"), ("x = g(a\n+ b)", "x = (a\n+ b)"), ("f(x, g(a or b))", "f(x, a or b)"),
     ("g(a, b)(c)", "a(c)"), ("c < g(a < b)", "c < (a < b)"), ("c and g(a or b)", "c and (a or b)")],
)  # fmt: skip
def test_an_argument_in_the_place_of_its_call_is_held_together(line, became):
    tree = ast.parse(line)
    call = next(n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "g")
    place = (call.lineno, call.col_offset, call.end_lineno, call.end_col_offset)
    assert rewritten(line, {("Call", *place): change(take_argument(0))}) == became
