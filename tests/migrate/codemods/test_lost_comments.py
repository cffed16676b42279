# ruff: noqa: E501
"""Comments inside of a statement that is rewritten are not lost: where their line goes, they stand above it."""

import pytest
from helpers import check, check_unchanged
from ptmigrate.migrate.migrate import migrate_text

HEAD = "import torch\nfrom torch import nn\nfrom torch.autograd import Variable\n"


@pytest.mark.parametrize(
    ("select", "before", "after"),
    [
        (
            "PTM101",
            "net = (\n    nn.Linear(3, 1)  # out\n    # to the card\n    .cuda()  # the first\n    .double()  # exact\n)  # net",
            "# to the card\n# the first\nnet = (\n    nn.Linear(3, 1)  # out\n    .double()  # exact\n)  # net",
        ),
        ("PTM101", "net = nn.Linear(3, 1).cuda(\n    0,  # the first\n)", "# the first\nnet = nn.Linear(3, 1)"),
        (
            "PTM101",
            "# a\nnet = nn.Linear(\n    3,  # in\n    1,  # out\n    device='cuda',  # here\n)",
            "# a\n# here\nnet = nn.Linear(\n    3,  # in\n    1,  # out\n)",
        ),
        (
            "PTM601",
            "def f(a):\n    # the input\n    x = Variable(\n        torch.cat(a),  # all\n        requires_grad=True,  # wanted\n    )\n    return x",
            "def f(a):\n    # the input\n    # all\n    # wanted\n    x = torch.cat(a).detach().requires_grad_()\n    return x",
        ),
        (
            "PTM601",
            "x = Variable(\n    torch.ones(2)  # same\n); y = Variable(torch.ones(1)  # same\n)",
            "# same\n# same\nx = torch.ones(2); y = torch.ones(1)",
        ),
        (
            "PTM601",
            "for x in Variable(\n    torch.ones(2)  # two\n):\n    print(x)  # one",
            "# two\nfor x in torch.ones(2):\n    print(x)  # one",
        ),
        (
            "PTM601",
            "if x:\n    pass\nelif Variable(\n    torch.ones(1)  # one\n):\n    y = 1",
            "if x:\n    pass\n# one\nelif torch.ones(1):\n    y = 1",
        ),
    ],
)  # fmt: skip
def test_they_stand_above(select, before, after):
    check(HEAD + before + "\n", HEAD + after + "\n", select=select)


@pytest.mark.parametrize("comment", ["# noqa: E501", "# type: ignore[arg]", "# pylint: disable=x", "# fmt: skip"])
def test_what_tools_read_goes_with_its_line(comment):
    before = f"x = Variable(\n    torch.ones(2),  {comment}\n)\n"
    check(HEAD + before, HEAD + "x = torch.ones(2)\n", select="PTM601")


def test_a_statement_that_goes_takes_its_own():
    check(
        HEAD + "net = nn.Linear(1, 1)\nnet.cuda(\n    0  # the first\n)\n",
        HEAD + "net = nn.Linear(1, 1)\n",
        select="PTM101",
    )


@pytest.mark.parametrize(
    "text",
    [
        "x = torch.ones(\n    2,  # two\n)",
        "with (\n    open(a) as f,  # one\n    open(b) as g,  # two\n):\n    pass",
    ],
)
def test_others_keep_their_bytes(text):
    check_unchanged(HEAD + text + "\n", select="PTM101,PTM601")


LOOP = """import torch
from torch import nn
half = False
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.ones(8, 3)):
        with (
            ITEMS
        ):
            loss = net(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
CAST, OTHER = "torch.autocast('cuda', enabled=half)", "torch.autograd.set_detect_anomaly(False)"


@pytest.mark.parametrize(
    ("items", "left"),
    [
        (f"{OTHER},  # checks\n            {CAST},  # half", f"{OTHER},  # checks"),
        (f"{OTHER},  # checks\n            {CAST}  # half", f"{OTHER}  # checks"),
        (f"{CAST},  # half\n            {OTHER},  # checks", f"{OTHER},  # checks"),
    ],
)
def test_what_a_with_keeps_keeps_its_comment(items, left):
    result = migrate_text(LOOP.replace("ITEMS", items)).text
    assert f"        # half\n        with (\n            {left}\n        ):\n" in result
