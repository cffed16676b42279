"""Indexes that a loader gives, of data that another file loads: the step moves what they take, from where it is."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_project_on_card

LOADED = """\
import torch


def load():
    return {"x": torch.linspace(0, 1, 128).reshape(32, 4), "y": torch.arange(32) % 3}
"""
SCRIPT = """\
import torch
from torch.utils.data import DataLoader
from loaded import load

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
{made}
model = torch.nn.Linear(4, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for i in DataLoader(range(32), batch_size=4):
        x, y = {taken}
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
"""


@pytest.mark.parametrize(
    ("made", "taken"),
    [
        ("g = load()", 'g["x"][i].to(device), g["y"][i].to(device)'),
        ('xs, ys = load()["x"], load()["y"]', "xs[i].to(device), ys[i].to(device)"),
        ("xs, ys = torch.ones(32, 4), torch.ones(32).long()", "xs[i].to(device), ys[i].to(device)"),
    ],
)
def test_they_are_brought_there(tmp_path, made, taken):
    after = check_project_on_card(tmp_path, main=SCRIPT.format(made=made, taken=taken), loaded=LOADED)["main"]
    assert after.count("[i.cpu()].to(self.device)") == 2
    assert not migrate_text(after).attention


@pytest.mark.parametrize(
    ("made", "taken"),
    [
        ("g = load()\nxs, ys = g['x'].to(device), g['y'].to(device)", "xs[i.to(device)], ys[i.to(device)]"),
        ("xs = torch.ones(32, 4)\nys = torch.randint(0, 3, (32,))", "xs[i].to(device), ys[i].to(device)"),  # buffers
    ],
)
def test_those_of_data_that_is_placed_stay(tmp_path, made, taken):
    after = check_project_on_card(tmp_path, main=SCRIPT.format(made=made, taken=taken), loaded=LOADED)["main"]
    assert ".cpu()" not in after
