"""The first batch is drawn above the loop, by a generator that moves what it draws: it goes where the Module is."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_same

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


def batches():
    while True:
        for x, y in DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 2)), batch_size=8):
            x = x.to(device, non_blocking=True)
            y = y.to(device, non_blocking=True)
            yield x, y


model = nn.Linear(4, 2)
model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
drawn = batches()
x, y = next(drawn)
for i in range(12):
    loss = nn.functional.mse_loss(model(x), y)
    x, y = next(drawn)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if i % 5 == 0:
        print(i, loss.item())
"""
PLACED = "self.{0} = self.{0}.to(self.device)"


def test_the_first_goes_where_the_module_is(tmp_path):
    result = check_on_card(tmp_path, SCRIPT)
    assert PLACED.format("x") in result and PLACED.format("y") in result
    check_same(SCRIPT, "module")


@pytest.mark.parametrize(
    "text",
    [
        SCRIPT.replace("    x, y = next(drawn)\n", "    x, y = x + 1, y\n"),  # no batch is drawn any more
        SCRIPT.replace("mse_loss(model(x), y)", "mse_loss(model(x[:4]), y[:4])"),  # it may be any sequence
        SCRIPT.replace("mse_loss(model(x), y)", "mse_loss(model(torch.as_tensor(x)), torch.as_tensor(y))"),
        SCRIPT.replace("drawn)\nfor", "drawn)\nx, y = [1], [2]\nfor"),
    ],
)
def test_what_may_be_something_else_stays(text):
    result = migrate_text(text).text
    assert "class LinearModule" in result and PLACED.format("x") not in result
