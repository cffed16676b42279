"""Code that moves in leaves the lines alone that begin inside of a string: they are its value."""

import ast
import textwrap

import pytest
from ptmigrate.migrate.lift import splice
from ptmigrate.migrate.lift.splice import indent

DOCSTRINGS = [
    'def f():\n    """One line."""\n    return 1\n',
    'def f():\n    """Two\n    lines."""\n\n    return 1\n',
    'def f():\n    """\n    Three.\n\n    """\n    def g():\n        """ Of\n        g.\n        """\n',
    '"""\nat the margin\n"""\na = 1\n',
]
OTHERS = [
    'a = """\n b"""\nc = """\n d\n"""\n',
    'a = """ \n"""\nb = 1\n"""\n c\n"""\n',
    "def f():\n    '''Two\n    lines.'''\n",
    'def f():\n    """With "quotes"\n    and \\n."""\n',
    '# """\na = 1\n# """\n"""\n b\n"""\n',
    "a = 'b\\\n c'\n",
    'a = f"""\n {b}\n"""\n',
    '"""\n a\n""".strip()\n',
]


@pytest.mark.parametrize("text", DOCSTRINGS + OTHERS)
def test_strings_stay_what_they_are(text):
    moved = "\n".join(["if 1:", *indent(text.splitlines(), "    ")])
    strings, after = ([n.value for n in ast.walk(ast.parse(t)) if isinstance(n, ast.Constant)] for t in (text, moved))
    assert sorted(map(str, after)) == sorted(map(str, [*strings, 1]))


@pytest.mark.parametrize(("text", "tokenized"), [*((t, False) for t in DOCSTRINGS), *((t, True) for t in OTHERS)])
def test_docstrings_are_told_apart_without_tokens(text, tokenized, monkeypatch):
    asked = []
    generate = splice.tokenize.generate_tokens
    monkeypatch.setattr(splice.tokenize, "generate_tokens", lambda read: asked.append(read) or generate(read))
    indent(textwrap.dedent(text).splitlines(), "  ")
    assert bool(asked) == tokenized
