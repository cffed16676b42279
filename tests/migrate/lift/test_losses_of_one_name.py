"""A batch by one name may be one tensor: what is added up of it and its outputs is a sum, and a mean is a mean."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """\
import torch

net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2):
        optimizer.zero_grad()
        loss = LOSS
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("loss", ["((net(x) - x) ** 2).sum()", "(net(x) - x).abs().sum()", "torch.sum(x * net(x))"])
def test_a_sum(loss):
    result = migrate_text(SCRIPT.replace("LOSS", loss))
    assert 'loss_reduction = "sum"' in result.text and not result.attention


@pytest.mark.parametrize("loss", ["((net(x) - x) ** 2).mean()", "(net(x) - x).abs().mean()", "torch.mean(x * net(x))"])
def test_a_mean(loss):
    result = migrate_text(SCRIPT.replace("LOSS", loss))
    assert "loss_reduction" not in result.text and not result.attention
