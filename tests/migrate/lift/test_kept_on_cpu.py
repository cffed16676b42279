"""A flag that keeps on the CPU what else goes to the card is the Trainer's, too."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SOURCE = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--cpu", action="store_true")
args = parser.parse_args()
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=8)
net = nn.Linear(4, 1)
if args.cpu:
    KEPT
else:
    net = net.cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("kept", "chooses"), [("net = net.cpu()", True), ("net.cpu()", True), ("print('slow')", False)]
)
def test_it_chooses_the_accelerator(kept, chooses):
    """With `--cpu` the network went to the card, and met batches on the CPU."""
    text = migrate_text(SOURCE.replace("KEPT", kept)).text
    assert ('accelerator="cpu" if args.cpu else "auto"' in text) is chooses
