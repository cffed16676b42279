"""libcst does not read the lines of a block that only moves, and gives what it would give when it read them."""

import ast

import pytest
from ptmigrate.migrate.codemods import _together
from ptmigrate.migrate.codemods._kept_lines import KeptLines
from ptmigrate.migrate.codemods.base import Change, apply
from ptmigrate.migrate.codemods.branch_rewrites import body_only, first_gone
from ptmigrate.migrate.codemods.rewrites import source
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.report import Edit

READ = "spare_words_of_what_moves"
NOT_READ = [
    f"if gone:\n    # above\n    a({READ})  # beside\n    # below\nb()\n",
    f"def f():\n\tif gone:\n\t\ta('ß', {READ})  # ß\n\treturn 1\n",
    f"if gone:\n    for x in xs:\n        a({READ})\n        while {READ[:5]}:\n            a({READ})\n    b()\nc()",
    f"if gone:\n    a('''one line''', {READ})\nelse:\n    b()\n",
    f"if gone:\n    if gone:\n        a({READ})\n        b(change)\n    a({READ})\n",
    f"if gone:\n    b(change); b(change)\n    a({READ})",
    f"try:\n    if gone:\n        with a:\n            raise a({READ})\nexcept E:\n    a(1)\n",
    f"if gone:\n    @a\n    def f(x):\n        return {READ}, x\n\n    b()\n",
]
READ_ALL_THE_SAME = [
    f"if gone:\n    a(1,\n      {READ})\nb()\n",  # libcst moves the second line with the first
    f"if gone:\n    a('''one\n    and two''', {READ})\nb()\n",
    f"if gone:\n    a(); b({READ})\n",
    f"if gone: a({READ})\nb()\n",
    f"if gone:\n    a({READ}, change)\n",
    f"if gone:\n    \f\n    a({READ})\n",
]


def unwrapped(source_text: str) -> str:
    facts = Facts(source_text)
    edit = Edit(1, 1, "PTM101", "gone")
    found = [n for n in ast.walk(facts.tree) if isinstance(n, ast.If) and facts.text.get(n.test) == "gone"]
    names = [n for n in ast.walk(facts.tree) if isinstance(n, ast.Name) and n.id == "change"]
    return apply(
        facts,
        [*(Change(n, edit, source("a_longer_name")) for n in names), *(Change(n, edit, body_only) for n in found)],
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("text", NOT_READ + READ_ALL_THE_SAME)
def test_the_same_as_when_they_are_read(text, newline, monkeypatch):
    text = text.replace("\n", newline)
    result = unwrapped(text)
    assert READ in result
    assert "gone" not in result
    assert "_kept" not in result
    monkeypatch.setattr(KeptLines, "edits", lambda *of: [])
    assert result == unwrapped(text)


@pytest.mark.parametrize(("text", "read"), [*((s, False) for s in NOT_READ), *((s, True) for s in READ_ALL_THE_SAME)])
def test_what_is_read(text, read, monkeypatch):
    texts = []
    rewritten = _together.rewritten
    monkeypatch.setattr(_together, "rewritten", lambda text, wanted: texts.append(text) or rewritten(text, wanted))
    unwrapped(text)
    assert (READ in texts[0]) == read


def test_a_name_that_the_text_has():
    text = f"_kept0_ = _between = 1\nif gone:\n    print(_kept0_, {READ})\n"
    assert unwrapped(text) == f"_kept0_ = _between = 1\nprint(_kept0_, {READ})\n"


def test_what_looks_into_the_block_reads_it(monkeypatch):
    texts = []
    rewritten = _together.rewritten
    monkeypatch.setattr(_together, "rewritten", lambda text, wanted: texts.append(text) or rewritten(text, wanted))
    facts = Facts(f"if gone:\n    a({READ})\n")
    change = Change(facts.tree.body[0], Edit(1, 1, "PTM101", "gone"), lambda original, updated: updated.body.body[0])
    assert apply(facts, [change]) == f"a({READ})\n"
    assert READ in texts[0]


def test_the_other_branch():
    facts = Facts(f"if gone:\n    a(1, 2, 3, 4, 5, 6)\nelse:\n    a({READ})  # and\nb()\n")
    change = Change(facts.tree.body[0], Edit(1, 1, "PTM101", "gone"), first_gone)
    assert apply(facts, [change]) == f"a({READ})  # and\nb()\n"
