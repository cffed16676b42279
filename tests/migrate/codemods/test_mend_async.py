import pytest
from helpers import migrated
from ptmigrate.migrate.codemods.mend_async import mend


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.cuda(async=True)\n", "x.cuda(non_blocking=True)\n"),
        ("x = x.cuda(0, async = True)\r\ny=1\r\n", "x = x.cuda(0, non_blocking = True)\r\ny=1\r\n"),
        ("a.to(d, async=f(b.cuda(async=True)))", "a.to(d, non_blocking=f(b.cuda(non_blocking=True)))"),
        ("dist.all_reduce(x, async=True)", "dist.all_reduce(x, async_op=True)"),
        (
            "ü = 'async=1'\nx.cuda(  # async=2\n    async=True)",
            "ü = 'async=1'\nx.cuda(  # async=2\n    non_blocking=True)",
        ),
    ],
)
def test_mended(before, after):
    text, edits = mend(before)
    assert text == after
    assert edits and all(e.code == "PTM603" for e in edits)
    assert mend(text) == (text, [])


@pytest.mark.parametrize(
    "source",
    [
        "async def f():\n    pass\n",
        "x = 'async=True'",
        "print 'async=', x",
        "x.cuda(async=True",
        "f(async=True)",
        "async = 3",
        "x.cuda(non_blocking=True)",
        "x.cuda(async=True)\nprint 'python 2'",
    ],
)
def test_left(source):
    assert mend(source) == (source, [])


def test_in_the_pipeline():
    result = migrated("import torch\nfor x in loader:\n    x = x.cuda(async=True)\n    f(x)\n")
    assert result.text == "import torch\nfor x in loader:\n    f(x)\n"
    assert [e.code for e in sorted(result.edits)] == ["PTM101", "PTM603"]
