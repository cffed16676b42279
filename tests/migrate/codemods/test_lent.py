"""What a class has from a subclass and moves beside a tensor that it is given was made on the CPU: it stays moved."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.running import check_on_card

CLASS = """\
import torch


class Solver:
    weights: torch.Tensor

    def __init__(self, y0):
        {where}
        {moved}

    def step(self, y):
        return (y * self.weights).sum(1)
"""
TRAINS = """

class Even(Solver):
    weights = torch.ones(2) / 2
    parts = [torch.ones(2), torch.ones(2)]


device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
torch.manual_seed(0)
net = torch.nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8))
for epoch in range(2):
    for x, y in torch.utils.data.DataLoader(data, batch_size=4):
        x, y = x.to(device), y.to(device)
        out = net(x)
        loss = (Even(out).step(out) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""
LENT = [
    ("device = y0.device", "self.weights = self.weights.to(device)"),
    ("device = y0.device", "self.weights = self.weights.to(device=device, dtype=y0.dtype)"),
    ("self.device = y0.device", "self.weights = self.weights.to(self.device)"),
    ("device = y0.device", "self.weights = sum(p.to(device) for p in self.parts)"),
]


def result(text):
    return migrate_text(text, Options(select=("PTM101", "PTM102", "PTM104")), is_script=False).text


@pytest.mark.parametrize("where, moved", LENT)
def test_it_stays_moved(tmp_path, where, moved):
    text = CLASS.format(where=where, moved=moved)
    assert "y0.device" in result(text).split("def step")[0].split("device = y0.device")[-1]
    check_on_card(tmp_path, text + TRAINS)


@pytest.mark.parametrize(
    "where, moved",
    [
        ("device = torch.device('cuda')", "self.net = self.net.to(device)"),
        ("device = y0.device\n        self.net = y0", "self.net = self.net.to(device)"),
        ("device = torch.device('cuda')", "y0 = y0.to(device)"),
    ],
)
def test_what_else_is_moved_is_placed_as_before(where, moved):
    assert ".to(" not in result(CLASS.format(where=where, moved=moved))


def test_what_a_module_moves_is_placed_as_before():
    text = CLASS.format(where="super().__init__()\n        device = y0.device", moved=LENT[0][1])
    assert ".to(" not in result(text.replace("Solver", "Solver(torch.nn.Module)"))
