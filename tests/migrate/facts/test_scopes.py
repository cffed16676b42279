"""What a comprehension goes through first is read outside of it, where its own targets are not in reach."""

import ast

import pytest
from ptmigrate.migrate.facts.scopes import Scope, Scopes
from ptmigrate.migrate.lift.nodes import names_of


@pytest.mark.parametrize(
    ("source", "outer"),
    [
        ("[x for x in x]", 1),
        ("{x: y for x, y in x.items()}", 1),
        ("[x for y in x for x in y]", 1),
        ("[x for y in z for x in x]", 0),
        ("[x for x in [x for x in x]]", 1),
        ("[x for x in range(3)]", 0),
        ("[y for y in z if x]", 1),
        ("[(lambda: x) for x in z]", 0),
        ("[(lambda y: x + y) for y in z]", 1),
        ("[(lambda y=x: y) for x in z]", 0),
        ("[(lambda x: [x for y in z]) for y in z]", 0),
    ],
)
def test_reads_from_outside_of_a_comprehension(source, outer):
    tree = ast.parse(f"x = 1\n{source}")
    scopes = Scopes(tree)
    assert len(list(scopes.reads("x", scopes.module))) == outer
    assert sum(n.id == "x" for n in names_of(tree.body[1])) == outer


def test_a_parameter_of_a_lambda_in_a_comprehension_is_the_lambdas():
    tree = ast.parse("[(lambda x: x + x)(x) for x in z]")
    scopes = Scopes(tree)
    (inner,) = (s for node, s in scopes.by_node.items() if isinstance(node, ast.Lambda))
    assert len(list(scopes.reads("x", inner))) == 2


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("[x for x in x]", None),
        ("[y for x in z for y in x]", 0),
        ("[y for y in z for x in x]", None),
        ("[y for x in z for y in z if x]", 0),
    ],
)
def test_the_for_that_binds_the_last_x(source, target):
    tree = ast.parse(source)
    whole = tree.body[0].value
    last = max((n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "x"), key=lambda n: n.col_offset)
    found = Scopes(tree).generator_of(last)
    assert found is (None if target is None else whole.generators[target])


def test_the_block_of_a_statement():
    tree = ast.parse(
        "try:\n    a\n    b\nexcept E:\n    c\nelse:\n    d\nfinally:\n    e\nmatch x:\n    case 1:\n        f\ng\n"
    )
    scopes = Scopes(tree)
    blocks = {ast.unparse(s): scopes.block_of(s) for s in ast.walk(tree) if isinstance(s, ast.Expr)}
    shown = {name: [ast.unparse(s)[:1] for s in block] for name, block in blocks.items()}
    assert shown == {"a": ["a", "b"], "b": ["a", "b"], **{n: [n] for n in "cdef"}, "g": ["t", "m", "g"]}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("x\ndef f():\n    x\n    def g(): x\nlambda: x", [1, 5, 3, 4]),
        ("def f(x):\n    x\n    def g(): x\nx", [4]),
        ("def f():\n    x = 1\n    lambda: x\nx", [4]),
        ("def f():\n    global x\n    x = 1\n    x\nx", [5, 4]),
        ("class A:\n    x = 1\n    x\n    def f(self): x", [3, 4]),
        ("def f():\n    class A:\n        x = 1\n        def g(self, x): x\n        def h(self): x", [5]),
        ("y", []),
    ],
)
def test_reads_of_a_name_of_the_module(source, lines):
    scopes = Scopes(ast.parse(source))
    assert [n.lineno for n in scopes.reads("x", scopes.module)] == lines


def test_a_question_about_one_name_does_not_go_through_all_functions(monkeypatch):
    scopes = Scopes(ast.parse("".join(f"def f{i}(x): return x + f{i - 1}\n" for i in range(300))))
    asked, binds = [], Scope.binds
    monkeypatch.setattr(Scope, "binds", lambda scope, name: asked.append(name) or binds(scope, name))
    assert all(len(list(scopes.reads(f"f{i}", scopes.module))) == 1 for i in range(299))
    assert len(asked) == 299
