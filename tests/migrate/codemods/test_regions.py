"""libcst reads the statements that change, and gives what it would give when it read the whole file."""

import ast

import pytest
from ptmigrate.migrate.codemods import _regions
from ptmigrate.migrate.codemods._regions import Region, regions_of
from ptmigrate.migrate.codemods.base import apply
from ptmigrate.migrate.codemods.every import plan_all
from ptmigrate.migrate.facts.script import Facts

HEAD = "import torch\nuse_cuda = torch.cuda.is_available()\n\nmodel = Net()\n"
SOURCES = [
    "# the model\n\n# moved\nmodel.cuda()\n\n# next\nprint(model)\n",
    "def f(x):\n    # moved\n    x = x.cuda()\n    return x\n    # end of f\n# after f\n\n\n"
    "def g(x):\n    return x.cpu().cuda()\n",
    "if a:\n    x = x.cuda()\nelif b:\n    # moved\n    model.cuda()\n    y()\nelse:\n    z = z.cuda()\n    y()\n",
    "if a:\n    y()\nelif b:\n    model.cuda()\nelse:\n    y()\n",
    "if a:\n    y()\nelse:\n    if b:\n        model.cuda()\n    else:\n        y()\n",
    "if use_cuda:\n    # moved\n    model.cuda()\n# then\ny()\n",
    "for x in y:\n    if a: x = x.cuda()\n    z(x)\n",
    "a = 1; model.cuda(); b = 2\nc = 3\n",
    "try:\n    model.cuda()\n    y()\nexcept E:\n    x = x.cuda()\nelse:\n    y()\nfinally:\n    x = x.cuda(); y()\n",
    "match a:\n    case 1:\n        x = x.cuda()\n    case _:\n        y()\n",
    "@d(torch.randn(2).cuda())\nclass C(torch.nn.Module):\n    @e\n    def f(self):\n        '''s\n# no comment\n'''\n"
    "        return self.x.cuda()\n",
    "with a as b, \\\n     c:\n\n    # moved\n    model.cuda()\n\n    y()\n  # odd\n\nz = z.cuda()  \\\n\n\ny()\n",
    "if a:\n  if b:\n       x = x.cuda()\n       y()\nx = x.cuda()",
    "if a:\n\tif b:\n\t\tx = x.cuda()\n\t\ty()\n",
    "y()\n# moved\n\nmodel.cuda()",
    "y()\nmodel.cuda()\n\n# the end\n\n",
    "async def f():\n    async with a:\n        x = await y.cuda()\n        async for z in x:\n"
    "            z = z.cuda()\n            y()\n",
    "@d\ndef f(  # of a\n    x=y.cuda(),\n    # and no more\n):  # head\n\n    # body\n    '''s'''\n    y()\n\n\ny()\n",
    "for a in x.cuda():\n\n    # body\n    a = a.cuda()\n    y()\nelse:\n    y()\n",
    "class C(a.cuda()):\n\ty()\n\n\twhile a.cuda() \\\n\t\t  and b:\n\t\t\tx = x.cuda()\n\t\t\ty()\n",
    "with a.cuda() as b, \\\n     c:\n    # body\n    y()\nif x.cuda(): y()\nwhile x.cuda():\n  y(); z()\n",
    "def f(a, use_cuda):\n    # body\n    y(a)\n    if use_cuda:\n        a.cuda()\n    y()\n\n\nf(1, use_cuda)\n",
    "if x.cuda():\n    y()\nelif b:\n    y()\nelse:\n    y()\n",
    "while a:\n    y()\n    # moved\n    x.cuda(); model.cuda()\n    # end\n\n    # of it\n\ny()\n",
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("source", SOURCES)
def test_the_same_as_with_the_whole_file(source, newline, monkeypatch):
    facts = Facts((HEAD + source).replace("\n", newline))
    changes = plan_all(facts, lambda code: True)
    assert changes
    result = apply(facts, changes)
    monkeypatch.setattr(_regions, "regions_of", lambda facts, places, heads: [Region(1, len(facts.text.starts), "")])
    assert result == apply(facts, changes)
    assert result != facts.text.text
    ast.parse(result)


def regions(text: str, *names: str) -> list[str]:
    facts = Facts(text)
    places = [facts.text.key(n) for n in facts.walk(ast.Name) if n.id in names]
    found = regions_of(facts, places)
    return ["".join(text.splitlines(keepends=True)[r.first - 1 : r.last]) for r in found]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a\nx\nb\n", ["x\n"]),
        ("a\n# c\nx\n\n# d\nb\n", ["# c\nx\n\n# d\n"]),
        ("x\nx\na\nx\n", ["x\nx\n", "x\n"]),
        ("def f():\n    a\n    x\n", ["    x\n"]),
        ("def f():\n    x\n", ["def f():\n    x\n"]),  # nothing may be left of its body
        ("def f():\n    if a:\n        b\n        x\n    c\nd\n", ["        x\n"]),
        ("def f():\n    if x:\n        b\n    c\nd\n", ["    if x:\n"]),
        ("if a:\n    b\nelif c:\n    x\n    d\n", ["    x\n"]),
        ("if a:\n    b\nelif c:\n    x\n", ["if a:\n    b\nelif c:\n    x\n"]),
        ("if a: x\nb\n", ["if a: x\n"]),
        ("a; x\nb\n", ["a; x\n"]),
        ("@x\ndef f():\n    a\n", ["@x\ndef f():\n"]),
        ("def f(\n    a=x,\n):\n\n    # b\n    b\n\n\nc\n", ["def f(\n    a=x,\n):\n"]),
        ("for a in x:\n    b\n    x\n    c\nelse:\n    d\n", ["for a in x:\n", "    x\n"]),
        ("for a in x:\n    x\n", ["for a in x:\n    x\n"]),
        ("while x: b\nc\n", ["while x: b\n"]),
        ("if a:\n    b\nelif x:\n    c\n", ["if a:\n    b\nelif x:\n    c\n"]),
        ("a\n", []),
    ],
)
def test_no_more_is_read_than_may_change(text, read):
    assert regions(text, "x") == read


def test_what_libcst_would_lose_elsewhere_is_kept():
    text = HEAD + "\fdef f():\n    return 1\n\n\n\fdef g(x):\n    y = x.cuda()\n    return y\n"
    facts = Facts(text)
    result = apply(facts, plan_all(facts, lambda code: True))
    assert result.count("\f") == 2
    assert "y = x\n" in result
