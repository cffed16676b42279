"""What a step leaves in an attribute of the class whose loop is lifted is a process's own, and is told of."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader
class Run:
    def __init__(self):
        torch.manual_seed(0)
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.loader = DataLoader([torch.ones(3) * i for i in range(8)], batch_size=4)
        self.last = self.seen = self.other = None
    def step(self, x):
        loss = self.net(x).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        {left}
    def fit(self):
        for epoch in range(2):
            for x in self.loader:
                self.step(x)
            print(epoch, {read})
Run().fit()
"""
SAYS = "holds the process's part of the last batch"


def told(left, read):
    notes = migrate_text(SCRIPT.format(left=left, read=read)).attention
    return [n.message.partition(" holds")[0] for n in notes if SAYS in n.message]


@pytest.mark.parametrize(
    ("left", "read", "names"),
    [
        ("self.last = loss.item()", "self.last", ["`self.last`"]),
        ("self.last = self.seen = loss.detach()", "float(self.last)", ["`self.last`"]),
        ("self.last, self.seen = loss.item(), x", "self.last, self.seen.sum()", ["`self.last`", "`self.seen`"]),
    ],
)
def test_it_is_told(left, read, names):
    assert told(left, read) == names


@pytest.mark.parametrize(
    ("left", "read"),
    [
        ("self.last = loss.item()", "self.other"),  # nothing reads it
        ("self.seen = x", "self.seen.shape[1]"),
        ("self.last = 3", "self.last"),
        ("self.last = len(self.loader)", "self.last"),
        ("last = loss.item()", "0"),
    ],
)
def test_what_is_no_share_is_not(left, read):
    assert told(left, read) == []


def test_on_one_process_it_is_the_same():
    check_same(SCRIPT.format(left="self.last = loss.item()", read="self.last"), "module")
