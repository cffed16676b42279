"""Loops over loaders that stay in the script: where they moved their batches, the runtime does."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
torch.manual_seed(0)
xs = torch.randn(16, 4)
train_loader, test_loader = DataLoader(xs, batch_size=4), DataLoader(xs, batch_size=8)
model = nn.Linear(4, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x in train_loader:
        x = x.to(device)
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
for x in test_loader:
    x = x.to(device)
    print(f'{USES.sum().item():.5f}')
"""
MOVED = ["model(x)", "model.forward(x)", "torch.relu(model.weight @ x.t())"]


@pytest.mark.parametrize("uses", MOVED)
def test_a_loop_that_moved_its_batches_gets_them_where_the_trainer_placed_the_model(uses):
    assert "for x in on_device(test_loader):\n    rank_zero_print" in check_same(TEXT.replace("USES", uses), "module")


@pytest.mark.parametrize("uses", ["x.numpy()", "(x * 2)"])
def test_one_that_did_not_keeps_them_where_they_are(uses):
    text = TEXT.replace("USES", uses).replace("    x = x.to(device)\n    print", "    print")
    assert "on_device" not in check_same(text, "module")


def test_nor_one_that_moved_something_else():
    text = TEXT.replace("USES", "x").replace("    x = x.to(device)\n    print", "    model.to(device)\n    print")
    assert "on_device" not in check_same(text, "module")
