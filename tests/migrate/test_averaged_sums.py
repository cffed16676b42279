"""A loss that is a sum, and whose gradients DistributedDataParallel averaged, is told of: its steps are larger now."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """import os
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

torch.distributed.init_process_group("gloo")
rank = int(os.environ["LOCAL_RANK"])
model = {wrapped}
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = DataLoader(TensorDataset(torch.randn(8, 2), torch.randn(8, 1)), 4)
for epoch in range(2):
    for x, y in loader:
        loss = F.mse_loss(model(x), y{reduction})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SUM = ', reduction="sum"'


def told(wrapped, reduction):
    result = migrate_text(SCRIPT.format(wrapped=wrapped, reduction=reduction))
    assert result.plan == "module"
    return [n.line for n in result.attention if "the mean of the ranks' sums" in n.message]


def test_a_sum_that_was_averaged():
    assert told("DDP(nn.Linear(2, 1), device_ids=[rank])", SUM) == [10]


@pytest.mark.parametrize(
    ("wrapped", "reduction"),
    [
        ("DDP(nn.Linear(2, 1), device_ids=[rank])", ""),  # a mean is that of the batch
        ("nn.DataParallel(nn.Linear(2, 1))", SUM),  # which gathers, and sums by itself
        ("nn.Linear(2, 1)", SUM),
    ],
)
def test_what_is_the_same_as_before(wrapped, reduction):
    assert told(wrapped, reduction) == []
