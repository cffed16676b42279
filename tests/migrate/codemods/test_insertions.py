"""Definitions and imports that edits need: where they come, and that nothing else moves."""

import ast

import pytest
from ptmigrate.migrate.codemods.base import apply
from ptmigrate.migrate.codemods.every import plan_all
from ptmigrate.migrate.facts.script import Facts

FUTURE = "from __future__ import annotations\n"
HEAD = "from torch.utils.data import DataLoader\n"
LOADER = "loader = DataLoader(data, collate_fn=lambda b: b)\n"
NAMED = "loader = DataLoader(data, collate_fn=_collate_fn)\n"
NEW = "\n\ndef _collate_fn(b):\n    return b\n"


def migrated(source: str) -> str:
    facts = Facts(source)
    return apply(facts, plan_all(facts, lambda code: code in ("PTM201", "PTM202")))


@pytest.mark.parametrize(
    ("source", "result"),
    [
        (HEAD + LOADER, HEAD + NEW + "\n\n" + NAMED),
        (HEAD + "\n" + LOADER, HEAD + NEW[1:] + "\n" + NAMED),
        (HEAD + "\n\n\n# ours\n" + LOADER, HEAD + NEW + "\n\n\n# ours\n" + NAMED),
        (HEAD + "def f():\n    a()\n    # end of f\n\n# ours\n" + LOADER + "b()\n",
         HEAD + "def f():\n    a()\n    # end of f\n" + NEW[1:] + "\n# ours\n" + NAMED + "b()\n"),
        (HEAD + "a(); " + LOADER + "b()", HEAD + NEW + "\n\na(); " + NAMED + "b()"),
        (HEAD + "\n\n@d\ndef f():\n    a()\n    " + LOADER, HEAD + NEW + "\n\n@d\ndef f():\n    a()\n    " + NAMED),
        (HEAD + "\n\nif a:\n    b()\n    " + LOADER + "c()\n", HEAD + f"{NEW}\n\nif a:\n    b()\n    {NAMED}c()\n"),
        (HEAD + "a()\x0c\nb()\n" + LOADER, HEAD + "a()\x0c\nb()\n" + NEW + "\n\n" + NAMED),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_definition_stands_above_its_statement_and_the_comments_over_it(source, result, newline):
    new = migrated(source.replace("\n", newline))
    assert new == result.replace("\n", newline)
    ast.parse(new)


@pytest.mark.parametrize(
    ("top", "added"),
    [
        ("import torch\n" + HEAD, "import functools\nimport torch\n" + HEAD),
        ('"""Doc."""\n# c\n\n' + HEAD, '"""Doc."""\n# c\n\nimport functools\n' + HEAD),
        (FUTURE + HEAD, FUTURE + "import functools\n" + HEAD),
        ("#!/usr/bin/env python\n" + HEAD, "#!/usr/bin/env python\nimport functools\n" + HEAD),
        ('"""Doc."""\ntry:\n    ' + HEAD + "except ImportError:\n    pass\n",
         '"""Doc."""\nimport functools\ntry:\n    ' + HEAD + "except ImportError:\n    pass\n"),
        ("from __future__ import annotations\ntry:\n    " + HEAD + "except ImportError:\n    pass\n",
         "from __future__ import annotations\nimport functools\ntry:\n    " + HEAD + "except ImportError:\n    pass\n"),
        ("import functools\n" + HEAD, "import functools\n" + HEAD),
    ],
)  # fmt: skip
def test_an_import_comes_first_but_for_docstrings_and_the_future(top, added):
    source = top + "\n\ndef f(n):\n    return DataLoader(data, collate_fn=lambda b: b[n])\n"
    new = migrated(source)
    assert new.startswith(added)
    assert "functools.partial(_collate_fn, n=n)" in new
    assert ast.get_docstring(ast.parse(new)) == ast.get_docstring(ast.parse(source))
    compile(new, "new", "exec")


@pytest.mark.parametrize("source", [HEAD, HEAD + "a = lambda b: b\n", HEAD + "def f():\n    return lambda b: b\n"])
def test_nothing_is_added_where_nothing_needs_it(source):
    assert migrated(source) == source
