"""A branch that edits took the body of: what stood in its else comes under the opposite condition."""

import ast

import pytest
from ptmigrate.migrate.codemods.base import Change, apply
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.report import Edit


def without_moves(text):
    facts = Facts(text)
    moves = [s for s in facts.walk(ast.Expr) if "cuda" in ast.unparse(s)]
    return apply(facts, [Change(s, Edit(1, 1, "PTM101", "gone"), None, (s,)) for s in moves])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if on:\n    net.cuda()\nelse:\n    go()\n", "if not on:\n    go()\n"),
        ("if not on:\n    net.cuda()\nelse:  # there\n    go()\n", "if on:  # there\n    go()\n"),
        ("if a or b:\n    net.cuda()\nelse:\n    # why\n    go()\n", "if not (a or b):\n    # why\n    go()\n"),
        ("if(on):\n    net.cuda()\nelse:\n    go()\n", "if not (on):\n    go()\n"),
        ("if on:\n    net.cuda()\nelif b or c:\n    go()\n", "if not on and (b or c):\n    go()\n"),
        ("if a:\n    f()\nelif on:\n    net.cuda()\nelse:\n    go()\n", "if a:\n    f()\nelif not on:\n    go()\n"),
    ],
)
def test_it_is_turned(before, after):
    assert without_moves(before) == after


@pytest.mark.parametrize(
    "before",
    [
        "if on:\n    pass\nelse:\n    go()\n",
        "if on:\n    f()\n    net.cuda()\nelse:\n    go()\n",
        "if on:\n    net.cuda()\nelif b:\n    go()\nelse:\n    f()\n",
        "if on:\n    net.cuda()  # moved\n    # kept\nelse:\n    go()\n",
        "if on:\n    net.cuda()\n# otherwise\nelse:\n    go()\n",
        "if on:  # a card\n    net.cuda()\nelse:\n    go()\n",
    ],
)
def test_it_is_not(before):
    text = without_moves(before)
    assert "if on:" in text and "if not" not in text and "net.cuda" not in text
