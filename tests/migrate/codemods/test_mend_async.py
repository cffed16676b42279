# ruff: noqa: E501
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
        (
            "def to(x, async=True):\n    if async:\n        x = x.cuda(async=async)\n    return x\n\n\ny = to(b, async=False)\n",
            "def to(x, non_blocking=True):\n    if non_blocking:\n        x = x.cuda(non_blocking=non_blocking)\n"
            "    return x\n\n\ny = to(b, non_blocking=False)\n",
        ),
        (
            "class A:\n\tdef cuda(self, async=False):\n\t\treturn self.t.cuda(async=async)\n\tdef f(self): return self.cuda(0, async=1)",
            "class A:\n\tdef cuda(self, non_blocking=False):\n\t\treturn self.t.cuda(non_blocking=non_blocking)\n"
            "\tdef f(self): return self.cuda(0, non_blocking=1)",
        ),
        (
            "def to(x, *, dev=f(1), async): return x.cuda(dev, async)\nasync def g():\n    pass\n",
            "def to(x, *, dev=f(1), non_blocking): return x.cuda(dev, non_blocking)\nasync def g():\n    pass\n",
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
        "def to(x, async=True):\n    return other(x, async=async)\n",  # what it calls is not seen
        "def to(x, async=True, non_blocking=True):\n    return x.cuda(async=async)\n",
        "def to(x, async=True):\n    return x.cuda(async=async)\ny = args.async\n",
        "def f(x):\n    return to(x, async)\n",
    ],
)
def test_left(source):
    assert mend(source) == (source, [])


def test_in_the_pipeline():
    result = migrated("import torch\nfor x in loader:\n    x = x.cuda(async=True)\n    f(x)\n")
    assert result.text == "import torch\nfor x in loader:\n    f(x)\n"
    assert [e.code for e in sorted(result.edits)] == ["PTM101", "PTM603"]
