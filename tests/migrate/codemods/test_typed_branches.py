"""Branches that differ by a type of the GPU and one of the CPU become one, where what is made is placed."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        std = self.fc(x).exp()
        if torch.cuda.is_available():
            eps = torch.cuda.FloatTensor({there}).normal_()
        else:
            eps = torch.FloatTensor({here}).normal_()
        return eps.mul(std)


net = Net()
if torch.cuda.is_available():
    net.cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in DataLoader(torch.randn(8, 3), batch_size=4):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""
ONE = "        eps = torch.FloatTensor(std.size()).to(x.device).normal_()\n        return"


def test_they_become_one():
    text = TEXT.format(there="std.size()", here="std.size()")
    assert ONE in check_same(text, "module")
    assert "PTM104" not in {n.code for n in migrate_text(text).attention}


@pytest.mark.parametrize(("there", "here"), [("std.size()", "4, 3"), ("4, 3", "std.size()")])
def test_what_differs_by_more_stays(there, here):
    assert "        else:\n            eps = " in check_same(TEXT.format(there=there, here=here), "module")


def test_where_nothing_shows_its_place_both_stay():
    text = """import torch


def noise(n):
    if torch.cuda.is_available():
        eps = torch.cuda.FloatTensor(n).normal_()
    else:
        eps = torch.FloatTensor(n).normal_()
    return eps
"""
    result = migrate_text(text).text
    assert result == text.replace("torch.cuda.FloatTensor(n)", "torch.FloatTensor(n).cuda()")
