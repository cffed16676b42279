"""T2: what is moved where another tensor is on a card goes where that is: the script says that it may be elsewhere."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_same

SCRIPT = """\
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Picker:
    def picked(self, out, y):
        return torch.from_numpy(np.arange(len(y), dtype="float32"))

    def pair(self, out, y):
        return torch.ones(1), torch.from_numpy(np.ones(len(y), dtype="float32"))


class Loss(nn.Module):
    def __init__(self, picker):
        super().__init__()
        self.picker = picker

    def forward(self, out, y):
GIVEN
        return ((out[:, 0] - y) * weight).pow(2).mean()


cuda = torch.cuda.is_available()
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 3), torch.randn(16)), 4)
net = nn.Linear(3, 1)
loss_fn = Loss(Picker())
if cuda:
    net.cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(2):
    for x, y in loader:
        if cuda:
            x, y = x.cuda(), y.cuda()
        loss = loss_fn(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""
PICKED = "weight = self.picker.picked(out, y)"
MOVED = ["if out.is_cuda:", "    weight = weight.cuda()"]


def script(*lines):
    return SCRIPT.replace("GIVEN", "\n".join(f"        {line}" for line in lines))


@pytest.mark.parametrize(
    "lines",
    [
        [PICKED, *MOVED],
        ["one, weight = self.picker.pair(out, y)", *MOVED],
        [PICKED, "weight = weight.cuda() if out.is_cuda else weight"],
    ],
)
def test_it_goes_where_that_one_is(tmp_path, lines):
    text = check_on_card(tmp_path, script(*lines))
    assert "weight.to(out.device)" in text and "is_cuda" not in text
    check_same(script(*lines), "module")


@pytest.mark.parametrize(
    "lines",
    [
        ["weight = torch.sigmoid(y)", *MOVED],  # of the batch
        ["weight = y.sigmoid()", *MOVED],
        [PICKED, "if weight.is_cuda:", "    weight = weight.cuda()"],
        [PICKED, "weight = weight.cuda()"],
    ],
)
def test_others_are_the_runtimes(lines):
    text = migrate_text(script(*lines)).text
    assert "weight.cuda()" not in text and "weight.to(" not in text
