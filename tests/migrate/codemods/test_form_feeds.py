"""A form feed before a statement is where columns are counted from: edits are the same with it, and it stays."""

import ast

import pytest
from ptmigrate.migrate.codemods.base import apply
from ptmigrate.migrate.codemods.every import plan_all
from ptmigrate.migrate.facts.script import Facts

HEAD = "import torch\nfrom torch.utils.data import DataLoader\nmodel = Net()\n"


def migrated(source: str) -> str:
    facts = Facts(source)
    return apply(facts, plan_all(facts, lambda code: True))


@pytest.mark.parametrize(
    "source",
    [
        "~def f(x):\n    x = x.cuda()\n    return x\n",
        "~# ours\n~def f(x):\n    return x.cuda()\n",
        "def f(x):\n    y()\n~    x = x.cuda()\n    return x\n",
        "def f(x):\n~    y()\n~    return x.cuda(), [\n        x.cpu().cuda()]\n~z()\n",
        "~class N(torch.nn.Module):\n~    @d\n    def f(self, x):\n        return x.cuda()\n",
        "~@d\n@e\ndef f(x):\n    return x.cuda()\n",
        "if a:\n    b()\n~    model.cuda()\n~else:\n    c()\n" + "~z()\n",
        "a()\n~model.cuda(); b()\n",
        "a()\n  ~model.cuda()\nb()\n",
        "~loader = DataLoader(data, collate_fn=lambda b: b)\n",
        "a()\n~\n~b(lambda: 1)\n~loader = DataLoader(data, collate_fn=lambda b: b)\n",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_edits_are_the_same_and_the_form_feed_stays(source, newline):
    with_feeds = (HEAD + source.replace("~", "\f")).replace("\n", newline)
    without = (HEAD + source.replace("  ~", "").replace("~", "")).replace("\n", newline)
    result = migrated(with_feeds)
    assert result.replace("  \f", "").replace("\f", "") == migrated(without) != without
    assert result.count("\f") == with_feeds.count("\f")
    ast.parse(result)
    assert migrated(result) == result


def test_at_the_end_of_a_file_that_has_no_last_newline():
    assert migrated(HEAD + "a()\n\fmodel.cuda()") == HEAD + "a()\n\f"


@pytest.mark.parametrize("source", ["~a()\n", "def f():\n~    a()\n~\n~# c\n~b()\n", "a('''\n~b''')\n"])
def test_without_work_every_byte_stays(source):
    source = HEAD + source.replace("~", "\f")
    assert migrated(source) == source
