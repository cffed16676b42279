"""T1: a statement of which nothing is left without its moves goes with them."""

import pytest
from helpers import check, check_unchanged, migrated

HEAD = "import torch\nimport torch.nn as nn\nnet, loss = nn.Linear(2, 2), nn.MSELoss()\n"
ASKED = "use = torch.cuda.is_available()\n"


@pytest.mark.parametrize(
    "line",
    [
        "net.cuda(), loss.cuda()",
        "net.to('cuda'), loss.cuda(0),",
        "[net.cuda(), loss.cuda()]",
        "[m.cuda() for m in (net, loss)]",
        "use and net.cuda()",
        "torch.cuda.is_available() and net.cuda()",
    ],
)
def test_it_goes(line):
    check(HEAD + ASKED + line + "\nprint(net, use)\n", HEAD + ASKED + "print(net, use)\n", select="PTM101")


def test_the_branch_goes_with_it():
    assert "if use" not in migrated(HEAD + ASKED + "if use:\n    net.cuda(), loss.cuda()\nprint(net)\n").text


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("net.cuda(), print(net)", "net, print(net)"),
        ("net.cuda(), f(loss).cuda()", "net, f(loss)"),
        ("f() and net.cuda()", "f() and net"),
        ("x = net.cuda(), loss.cuda()", "x = net, loss"),
        ("[m.cuda() for m in f((net, loss))]", "[m for m in f((net, loss))]"),
    ],
)
def test_what_else_it_does_stays(line, left):
    assert left in migrated(HEAD + "def f(*a):\n    print(a)\n    return a[0]\n" + line + "\n", "PTM101").text


@pytest.mark.parametrize("line", ["net, loss", "use and net", "[m for m in (net, loss)]"])
def test_what_moves_nothing_stays(line):
    check_unchanged(HEAD + ASKED + line + "\n", select="PTM101")
