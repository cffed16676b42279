"""Loops that only count, and what is made of counts: no batches, and nothing that the runtime places."""

import pytest

from tests.migrate.running import check_project_on_card

SHARED = """\
import torch


class Rows:
    def __init__(self):
        self.rows = torch.linspace(0, 1, 24).reshape(6, 4)

    def num_rows(self):
        return 6


def filled(size):
    return torch.ones(size)


def counted(n):
    return range(n)


trange = range
"""
SCRIPT = """\
import torch
from torch.utils.data import DataLoader
from shared import Rows, filled, trange

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)])
        self.width = 4

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def inference(self, g):
        x = g.rows.to(self.layers[0].weight.device)
        for i, layer in enumerate(self.layers):
            y = filled((g.num_rows(), self.width))
            for start in trange(0, g.num_rows(), 2):
                y[start : start + 2] = layer(x[start : start + 2]).cpu()
            x = y.to(device)
        return x


torch.manual_seed(0)
net = Net().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in DataLoader(torch.linspace(0, 1, 16).reshape(4, 4), batch_size=2):
        optimizer.zero_grad()
        net(x.to(device)).pow(2).mean().backward()
        optimizer.step()
    with torch.no_grad():
        print(net.inference(Rows()).sum().item())
"""


@pytest.mark.parametrize("loop", ["trange(0, g.num_rows(), 2)", "range(0, g.num_rows(), 2)"])
def test_what_is_made_of_counts_stays_moved(tmp_path, loop):
    text = SCRIPT.replace("trange(0, g.num_rows(), 2)", loop)
    after = check_project_on_card(tmp_path, main=text, shared=SHARED)["main"]
    assert "enumerate(self.layers)" in after and f"in {loop}:" in after and "y.to(" in after


COMPUTED = """\
import torch
from torch.utils.data import DataLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.last = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.last(self.fc(x))

    def table(self, n):
        y = torch.zeros(n, 4)
        for i in range(n):
            y[i] = i
        return y


def score(net, rows, scale):
    total = 0.0
    for start in range(0, 6, 2):
        part = rows[start : start + 2].to(device)
        total += net(part * scale).sum().item()
    return total


torch.manual_seed(0)
net = Net().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(2):
    for x in DataLoader(torch.linspace(0, 1, 16).reshape(4, 4), batch_size=2):
        optimizer.zero_grad()
        net(x.to(device)).pow(2).mean().backward()
        optimizer.step()
    with torch.no_grad():
        rows = net.table(6)
        print(score(net, rows, torch.ones(1, device=device)))
"""


def test_what_a_method_of_the_network_makes_stays_moved(tmp_path):
    check_project_on_card(tmp_path, main=COMPUTED)
