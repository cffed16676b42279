"""What statements may read before they have written it."""

import ast

import pytest
from ptmigrate.migrate.lift.reads import exposed

CASES = {
    "an if of the same test": ("if a.c:\n    x = 1\nfor p in r:\n    if a.c:\n        f(x)\n", False),
    "and of more": ("if a.c and b > 2:\n    x = 1\nelse:\n    y = 2\nif a.c and b > 2:\n    f(x)\n", False),
    "another test": ("if a.c:\n    x = 1\nif a.d:\n    f(x)\n", True),
    "its other branch": ("if a.c:\n    x = 1\nif a.c:\n    pass\nelse:\n    f(x)\n", True),
    "the test's option is set": ("if a.c:\n    x = 1\na.c = 2\nif a.c:\n    f(x)\n", True),
    "the test's name is set": ("if a.c:\n    x = 1\na = 2\nif a.c:\n    f(x)\n", True),
    "the first branch sets it": ("if a.c:\n    x = 1\n    a.c = 2\nif a.c:\n    f(x)\n", True),
    "the loop between sets it": ("if a.c:\n    x = 1\nfor p in r:\n    if a.c:\n        f(x)\n    a.c = p\n", True),
    "a test that may change its mind": ("if g():\n    x = 1\nif g():\n    f(x)\n", True),
    "under a condition in it": ("if a.c:\n    if b:\n        x = 1\nif a.c:\n    f(x)\n", True),
    "in a loop that may be empty": ("for i in r:\n    if a.c:\n        x = 1\nif a.c:\n    f(x)\n", True),
}


@pytest.mark.parametrize(("text", "may"), CASES.values(), ids=CASES.keys())
def test_a_name_written_under_a_condition(text, may):
    assert ("x" in exposed(ast.parse(text).body)) is may
