"""A layer that forward() makes when it is first called is placed by the script, and batch norm needs whole batches."""

import pytest

from tests.migrate.running import check_on_card, check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.late = None

    def forward(self, x):
        h = self.layer(x)
        if self.late is None:
            self.late = LATE(h.size(1)).to(h.device)
        return self.late(h)


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x in DataLoader(torch.randn(16, 4), batch_size=8):
        x = x.to(device)
        loss = (model(x) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, f"{loss.item():.5f}")
"""


@pytest.mark.parametrize(("late", "whole"), [("nn.BatchNorm1d", True), ("nn.LayerNorm", False)])
def test_it_keeps_its_move(tmp_path, late, whole):
    text = TEXT.replace("LATE", late)
    result = check_on_card(tmp_path, text)
    assert f"self.late = {late}(h.size(1)).to(h.device)" in result
    assert ("divide_batches = False" in check_same(text, "module")) is whole


def test_one_of_the_constructor_does_not():
    text = TEXT.replace("            self.late = LATE(h.size(1)).to(h.device)\n", "            raise ValueError\n")
    text = text.replace("self.late = None\n", "self.late = nn.BatchNorm1d(3).to(device)\n")
    text = text.replace("is None", "is False")
    result = check_same(text.replace("class Net", 'device = "cpu"\n\n\nclass Net', 1), "module")
    assert "self.late = nn.BatchNorm1d(3)\n" in result and "divide_batches" not in result
