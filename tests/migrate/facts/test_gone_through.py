"""What a name of a loop is an element of, behind bars, copies and names for them."""

import ast

import pytest
from ptmigrate.migrate.facts.gone_through import drawn_from
from ptmigrate.migrate.facts.script import Facts


def drawn(text):
    """What the i of the one loop is drawn from."""
    facts = Facts("import torch\n" + text)
    (loop,) = facts.walk(ast.For)
    store = next(n for n in ast.walk(loop.target) if isinstance(n, ast.Name) and n.id == "i")
    found = drawn_from(facts, loop, store)
    return None if found is None else ast.unparse(found)


@pytest.mark.parametrize(
    "text",
    [
        "for i, x in enumerate(loader): pass",
        "for i, (x, y) in tqdm(enumerate(loader), total=3): pass",
        "bar = tqdm(enumerate(loader))\nfor i, x in bar: pass",
        "counted = enumerate(loader, 1)\nfor i, x in list(counted): pass",
        "for (i, x), y in zip(enumerate(loader), other): pass",
    ],
)
def test_a_number(text):
    assert drawn(text) is None


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("for i in loader: pass", "loader"),
        ("for x, i in tqdm(loader): pass", "loader"),
        ("for n, (x, i) in enumerate(loader): pass", "loader"),
        ("bar = tqdm(loader, desc='x')\nfor x, i in bar: pass", "loader"),
        ("for i, x in zip(range(9), loader): pass", "range(9)"),
        ("for x, i in zip(range(9), tqdm(loader)): pass", "loader"),
        ("for i, x in zip(*parts): pass", "zip(*parts)"),
        ("for i in enumerate(loader): pass", "enumerate(loader)"),  # a pair
        ("rows = tqdm(a)\nrows = tqdm(b)\nfor i in rows: pass", "rows"),  # either
        ("rows = tqdm(rows)\nfor i in rows: pass", "rows"),
    ],
)
def test_what_it_is_drawn_from(text, over):
    assert drawn(text) == over
