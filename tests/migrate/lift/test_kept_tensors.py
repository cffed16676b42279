"""Tensors that the script makes for its networks, and functions or lines that stay in it give them."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
torch.manual_seed(0)
loader = DataLoader(torch.randn(8, 4), batch_size=4)
net = nn.Linear(4, 4).to(device)
fixed = torch.ones(2, 4).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def show(epoch):
    with torch.no_grad():
        print('%d %.5f' % (epoch, SHOWN.sum().item()))

for epoch in range(2):
    for x in loader:
        x = x.to(device)
        loss = (net(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    show(epoch)
AFTER
"""
THERE = "fixed.to(next(net.parameters()).device)"


def test_parentheses_around_it_stay():
    made = TEXT.replace("torch.ones(2, 4).to", "(torch.ones(2, 4) / 2).to").replace("AFTER", "")
    result = check_same(made.replace("SHOWN", "net(fixed)"), "module")
    assert "fixed = (torch.ones(2, 4) / 2)\n" in result and f"net({THERE})" in result


@pytest.mark.parametrize(
    ("shown", "result"),
    [
        ("net(fixed)", f"net({THERE})"),
        ("net(input=fixed)", f"net(input={THERE})"),
        ("(net(fixed) + net(fixed))", f"(net({THERE}) + net({THERE}))"),
    ],
)
@pytest.mark.parametrize("after", ["", "print('%.5f' % net(fixed).mean().item())"])
def test_they_go_where_the_network_is(shown, result, after):
    text = check_same(TEXT.replace("SHOWN", shown).replace("AFTER", after), "module")
    assert (
        "fixed = torch.ones(2, 4)\n" in text and result in text and text.count(THERE) == (shown + after).count("fixed")
    )
    assert "device = torch.device" not in text


def test_nothing_is_told_of_them_but_the_edit():
    text = (
        TEXT.replace("SHOWN", "net(fixed)").replace("AFTER", "").replace("ones(2, 4).to(device)", "ones(2, 4).cuda()")
    )
    result = migrate_text(text)
    assert not [n for n in result.attention if n.code == "PTM104"]
    assert [e.line for e in result.edits if e.code == "PTM104"] == [10]


@pytest.mark.parametrize(
    ("shown", "after"),
    [
        ("net(fixed * 2)", ""),
        ("torch.relu(fixed)", ""),
        ("net(fixed)", "print(fixed.sum())"),
        ("net(fixed)", "fixed = fixed + 1"),
        ("net(*[fixed])", ""),
    ],
)
def test_those_that_anything_else_reads_keep_their_place(shown, after):
    text = check_same(TEXT.replace("SHOWN", shown).replace("AFTER", after), "module")
    assert "fixed = torch.ones(2, 4).to(device)" in text and THERE not in text
