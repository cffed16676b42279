"""Comments at the end of a block that is taken out of its branch stay, with what comes after it."""

import ast

import pytest
from ptmigrate.migrate.codemods.base import Change, apply
from ptmigrate.migrate.codemods.branch_rewrites import body_only, first_gone
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.report import Edit

CASES = [
    ("if gone:\n    a()\n    # below\nb()\n", "a()\n# below\nb()\n"),
    ("if gone:\n    a()\n    # below\n\n    # and\n\n\n# of b\nb()\n", "a()\n# below\n\n# and\n\n\n# of b\nb()\n"),
    ("def f():\n    if gone:\n        a()\n        # below\n    return 1\n",
     "def f():\n    a()\n    # below\n    return 1\n"),
    ("def f():\n    if gone:\n        a()\n        # below\n\n\nb()\n", "def f():\n    a()\n    # below\n\n\nb()\n"),
    ("if gone:\n    a()\n    # below", "a()\n# below"),
    ("with c:\n\tif gone:\n\t\ta()\n\t\t# below\n\t# of c\n", "with c:\n\ta()\n\t# below\n\t# of c\n"),
    ("if gone:\n    for x in y:\n        a()\n        # in\n    # below\nb()\n",
     "for x in y:\n    a()\n    # in\n# below\nb()\n"),
    ("if gone:\n    if gone:\n        a()\n        # in\n    # below\nb()\n", "a()\n# in\n# below\nb()\n"),
]  # fmt: skip
SAME = [
    ("if gone:\n    a()\n# of b\nb()\n", "a()\n# of b\nb()\n"),
    ("if gone:\n    # above\n    a()  # beside\n\nb()\n", "# above\na()  # beside\n\nb()\n"),
    ("if gone:\n    a()\n\n\n\nb()\n", "a()\n\n\n\nb()\n"),
    ("if gone: a()  # beside\n# of b\nb()\n", "a()  # beside\n# of b\nb()\n"),
]


def unwrapped(text: str, rewrite=body_only) -> str:
    facts = Facts(text)
    found = [n for n in ast.walk(facts.tree) if isinstance(n, ast.If) and facts.text.get(n.test) == "gone"]
    return apply(facts, [Change(n, Edit(1, 1, "PTM101", "gone"), rewrite) for n in found])


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("before", "after"), CASES + SAME)
def test_the_block_alone(before, after, newline):
    assert unwrapped(before.replace("\n", newline)) == after.replace("\n", newline)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if gone:\n    a()\nelse:\n    b()\n    # below\nc()\n", "b()\n# below\nc()\n"),
        ("if gone:\n    a()\n    # goes\nelse:\n    b()\nc()\n", "b()\nc()\n"),
        ("if gone:\n    a()\nelif x:\n    b()\n    # below\nc()\n", "if x:\n    b()\n    # below\nc()\n"),
    ],
)
def test_the_other_branch(before, after):
    assert unwrapped(before, first_gone) == after
