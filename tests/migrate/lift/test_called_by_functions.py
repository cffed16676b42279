"""Comprehensions and loops that evaluate by a function, which moves what it is given: their batches are placed."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_project_on_card

HELPERS = """\
import torch
from torch import nn

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')


def call(net, parts):
    return net(*parts)


def loss_of(net, batch):
    parts = [batch[k].to(device) for k in ("a", "b")]
    return nn.functional.cross_entropy(call(net, parts), batch["y"].to(device))


def sizes(batch):
    return len(batch["y"])
"""
MAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
X, Y = torch.randn(16, 4), torch.randint(0, 3, (16,))


class Data(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        return {"a": X[i], "b": X[i, :2], "y": Y[i]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 3), nn.Linear(2, 3)

    def forward(self, a, b):
        return self.one(a) + self.two(b)


net = Net().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader, held_out = DataLoader(Data(), batch_size=4), DataLoader(Data(), batch_size=8)
for epoch in range(2):
    for batch in loader:
        loss = loss_of(net, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        FOUND
    print(loss.item(), found)
"""
FOUND = [
    "found = sum(loss_of(net, b).item() for b in held_out)",
    "found = [loss_of(net, b).item() for b in held_out]",
    "found = {i: loss_of(net, b).item() for i, b in enumerate(held_out)}",
    "raw = net\n        found = max(loss_of(raw, batch=b).item() for b in held_out)",
]


@pytest.mark.parametrize("found", FOUND)
def test_of_the_same_file(tmp_path, found):
    assert "on_device(" in check_on_card(tmp_path, HELPERS + MAIN.replace("FOUND", found))


@pytest.mark.parametrize("found", FOUND)
def test_of_another_file(tmp_path, found):
    text = "from helpers import *\n" + MAIN.replace("FOUND", found)
    check_project_on_card(tmp_path, main=text, helpers=HELPERS)


def test_another_network_than_the_trained_one_says_where(tmp_path):
    text = HELPERS + MAIN.replace("FOUND", "found = 0") + "best = Net().to(device)\n"
    text += "print(sum(loss_of(best, b).item() for b in held_out))\n"
    assert "on_device(held_out, best)" in check_on_card(tmp_path, text)


@pytest.mark.parametrize("found", ["[sizes(b) for b in held_out]", "[len(b) for b in held_out]"])
def test_what_no_network_is_given_stays_as_it_is(found):
    assert "on_device" not in migrate_text(HELPERS + MAIN.replace("FOUND", f"found = {found}")).text
