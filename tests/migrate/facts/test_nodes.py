import ast
import sys

import pytest
from ptmigrate.migrate.facts.annotated import as_assignments
from ptmigrate.migrate.facts.nodes import Nodes, walk

ALL = """
match x:
    case None | True: pass
    case {"a": 1, **rest}: pass
    case [1, *others] if y: pass
    case C(a, b=2) as c: pass
    case -1: pass
try:
    async def f(a, /, b: int = 1, *c, d, e=2, **g) -> str:
        async with a as b, c: yield b
        async for i in x: await i
        return [*a, {**b}, (c := 1), f"{x!r:>{y}}", x[1:2, ...], lambda z=1: z]
except (A, B) as error:
    raise E from error
else:
    del a.b
finally:
    global h
    assert a, b
"""


def test_every_node_once_with_its_parent():
    tree = ast.parse(ALL)
    nodes = Nodes(tree)
    skipped = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.alias)
    expected = {n for n in ast.walk(tree) if not isinstance(n, skipped)}
    found = [n for group in nodes.by_type.values() for n in group]
    assert expected <= set(found)
    assert len(found) == len(set(found))
    for node in expected - {tree}:
        assert node in list(ast.iter_child_nodes(nodes.parents[node]))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
def test_newer_syntax():
    Nodes(ast.parse("type A[T] = list[T]\ndef f[T: int](a: T): pass\nclass C[T](B[T]): pass"))


def test_calls_by_name():
    nodes = Nodes(ast.parse("loss.backward()\nf(1)\nx[0](2)\ng()()"))
    assert sorted(nodes.calls) == ["backward", "f", "g"]


def test_a_walk_gives_all_nodes_or_those_of_one_type_with_the_node_itself():
    tree = as_assignments(ast.parse("a = 1\nb: int = a\nc += f(a)"))
    assert list(walk(tree.body[2].value, ast.Call)) == [tree.body[2].value]
    assert list(walk(tree, ast.Assign)) == tree.body[:2]  # the annotated one is one, too
    assert [n for n in walk(tree) if isinstance(n, ast.Name)] == list(walk(tree, ast.Name))
