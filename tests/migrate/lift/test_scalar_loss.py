"""What is differentiated is one number: a mean over the first dimension that it is made of is one over the samples."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

TEXT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(10, 4)), batch_size=4)
scaler = torch.amp.GradScaler("cpu", enabled=False)


def log_prob(x):
    return -net(x).pow(2).sum(1)


for epoch in range(2):
    for (x,) in loader:
        LOSS
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())
"""


def script(loss):
    return TEXT.replace("LOSS", loss.replace("\n", "\n        "))


@pytest.mark.parametrize(
    "loss",
    [
        "loss = -log_prob(x).mean(0)",
        "loss = -torch.mean(log_prob(x), dim=0)",
        "nll = -log_prob(x).mean(dim=0)\nloss = nll / 2 + 0.1 * net(x).mean()",
        "loss = net(x).mean()\nloss -= log_prob(x).mean(0)",
        "loss = net(x).pow(2).mean((0, 1))",
        "kept = net(x).mean(1).mean(0)\nkept = kept.detach()\nloss = -log_prob(x).mean(0)",
    ],
)
def test_it_is_divided(loss):
    result = check_same(script(loss), "module")
    assert "divide_batches" not in result
    assert not [n for n in migrate_text(script(loss)).attention if n.code == "PTM703"]


def test_a_scaled_one():
    text = script("loss = -log_prob(x).mean(0)").replace("loss.backward()", "scaler.scale(loss).backward()")
    assert "divide_batches" not in migrate_text(text).text


@pytest.mark.parametrize(
    "loss",
    [
        "loss = net(x).mean(0).pow(2).sum()",
        "middle = net(x).mean(0)\nloss = middle.norm()",
        "loss = net(x).mean(0)\nloss = loss.norm()",
        "loss = (net(x) - net(x).mean(0)).pow(2).mean()",
        "loss = log_prob(x).mean(0).exp()",
        "loss = net(x).sum(1).max(0)[0]",
        "loss = net(x).mean(0, keepdim=True).norm()",
    ],
)
def test_another_is_not(loss):
    assert "divide_batches = False" in check_same(script(loss), "module")
