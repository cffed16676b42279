"""Evaluations of functions that a decorator switches the gradients off for, and of those that another one wraps."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
train_loader = DataLoader(torch.randn(12, 3), batch_size=4)
test_loader = DataLoader(torch.randn(8, 3), batch_size=4)


def wrapped(f):
    return lambda *args: f(*args)


{decorator}
def test(model, loader):
    model.eval()
    total = 0.0
    for x in loader:
        total += model(x).sum().item()
    model.train()
    return total


for epoch in range(2):
    for x in train_loader:
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    total = test(net, test_loader)
    print(epoch, total)
"""
TOLD = "the evaluation stays as it is written, and every process runs all of it"


@pytest.mark.parametrize("decorator", ["@torch.no_grad()", "@torch.no_grad", "@torch.inference_mode()"])
def test_without_gradients_it_is_lifted(decorator):
    text = check_same(TEXT.format(decorator=decorator), "module")
    assert "def validation_step" in text and decorator not in text and "all_reduce(self.total)" in text


def test_what_is_wrapped_stays_and_is_told_of():
    text = TEXT.format(decorator="@wrapped")
    assert "def validation_step" not in check_same(text, "module")
    assert [n.line for n in migrate_text(text).attention if TOLD in n.message] == [21]


def test_nothing_is_told_where_nothing_is_evaluated():
    text = TEXT.format(decorator="@wrapped").replace("    total = test(net, test_loader)\n", "    total = 1\n")
    assert not any(TOLD in n.message for n in migrate_text(text).attention)
