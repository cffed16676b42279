"""`net.zero_grad()` is the Trainer's own where the network holds all that the optimizer trains."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

class Both(nn.Module):
    def __init__(self, first, last):
        super().__init__()
        self.first, self.last = first, last

    def forward(self, x):
        return self.last(self.first(x))

    def groups(self):
        return [{'params': self.first.parameters()}, {'params': self.last.parameters(), 'lr': 0.01}]

def groups_of(net, rate):
    return [{'params': p, 'lr': rate} for p in net.parameters()]

torch.manual_seed(0)
first, last = nn.Linear(3, 3), nn.Linear(3, 1)
model = Both(first, last)
scale = torch.ones(1, requires_grad=True)
ABOVE
optimizer = torch.optim.SGD(MADE, lr=0.05)

def train(net, optimizer):
    for x in DataLoader(torch.ones(8, 3), batch_size=2):
        loss = (net(x) * scale).pow(2).mean()
        ZEROED.zero_grad()
        loss.backward()
        optimizer.step()

for epoch in range(2):
    train(model, optimizer)
print([p.sum().item() for p in model.parameters()])
"""
ALL = "model.parameters()"


def script(above, made, zeroed):
    return TEXT.replace("ABOVE", above).replace("MADE", made).replace("ZEROED", zeroed)


@pytest.mark.parametrize(
    ("above", "made", "zeroed"),
    [
        ("", "[*first.parameters(), *last.parameters()]", "last"),
        ("", "list(first.parameters()) + list(last.parameters())", "first"),
        ("", "[{'params': first.parameters()}, {'params': last.parameters(), 'lr': 0.01}]", "first"),
        ("weights = list(first.parameters()) + list(last.parameters())", "weights", "first"),
        ("", ALL, "last"),
        ("head = model.last", ALL, "head"),
        ("", "last.parameters()", "first"),
        ("head = model.last\nbody = model.first", "head.parameters()", "body"),
        ("", "[{'params': model.parameters()}, {'params': [scale]}]", "net"),
        ("head = model.last", "model.groups()", "head"),
        ("", "groups_of(model, 0.01)", "last"),
        ("weights = model.groups()", "weights", "first"),
        ("weights = list(first.parameters())\nweights += list(last.parameters())", "weights", "first"),
        ("weights = []\nfor net in (first, last):\n    weights.extend(net.parameters())", "weights", "last"),
        ("weights = [*first.parameters()]\nweights.append(scale)", "weights", "first"),
        ("other = torch.optim.SGD(first.parameters(), lr=0.05)", ALL, "other"),
    ],
)
def test_what_leaves_gradients_stays_in_the_step(above, made, zeroed):
    assert f"{zeroed}.zero_grad()" in check_same(script(above, made, zeroed), "manual").replace("self.model", "net")


@pytest.mark.parametrize(
    ("above", "made", "zeroed"),
    [
        ("", ALL, "net"),
        ("same = Both(first=first, last=last)", "[*first.parameters(), *last.parameters()]", "same"),
        ("weights = []\nweights.extend(first.parameters())\nweights += last.parameters()", "weights", "net"),
        ("", ALL, "model"),
        ("", ALL, "optimizer"),
        ("whole = model", "whole.parameters()", "model"),
        ("whole = model.train()", ALL, "whole"),
        ("weights = [p for p in model.parameters() if p.requires_grad]", "weights", "net"),
        ("weights = [{'params': model.parameters()}]", "weights", "net"),
        ("", "filter(lambda p: p.requires_grad, model.parameters())", "net"),
        ("", "[{'params': model.first.parameters()}, {'params': model.last.parameters(), 'lr': 0.01}]", "net"),
        ("", "[*first.parameters(), *last.parameters()]", "model"),
        ("head = model.last", "head.parameters()", "net"),
        ("", "model.groups()", "net"),
        ("", "groups_of(model, 0.01)", "model"),
        ("", "[p for m in (first, last) for p in m.parameters()]", "net"),
    ],
)
def test_what_leaves_none_is_the_trainers(above, made, zeroed):
    assert "zero_grad" not in check_same(script(above, made, zeroed), "module")
