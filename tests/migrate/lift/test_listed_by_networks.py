"""A loop over what a network gives of each of its layers goes through no samples."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.lift.test_loss_kinds import check_same

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        outs, gates = [], []
        for layer in self.layers:
            x = layer(x)
            outs.append(torch.softmax(x, dim=-1))
            gates.append(torch.sigmoid(x))
        return x, outs, RETURNED
"""
SCRIPT = """
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(20, 4), torch.randn(20, 4)), batch_size=4)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    for x, y in loader:
        out, outs, gates = model(x)
        apart = 0.0
        for u in range(len(gates)):
            apart += torch.mean((outs[u] - gates[u]) ** 2)
        loss = nn.functional.mse_loss(out, y) - apart / len(gates)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.5f}")
"""
KINDS = [("gates", True), ("[g * 1 for g in gates]", True), ("torch.stack(gates)", False), ("tuple(gates)", False)]


@pytest.mark.parametrize(("returned", "listed"), KINDS)
def test_a_list_of_the_layers_is_as_long_on_every_rank(returned, listed):
    text = "epochs = 2\n" + NET.replace("RETURNED", returned) + SCRIPT
    result = check_same(text, "module")
    assert ("divide_batches = False" not in result) is listed


@pytest.mark.parametrize(("returned", "listed"), KINDS[1:3])
def test_one_of_a_network_of_another_file(tmp_path, returned, listed):
    (tmp_path / "model.py").write_text(NET.replace("RETURNED", returned))
    (tmp_path / "main.py").write_text(f"import torch\nfrom torch import nn\nfrom model import Net\n{SCRIPT}")
    done = {m.path.name: m for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert (b"divide_batches = False" not in done["main.py"].data) is listed


def test_what_nothing_shows_to_be_a_list_may_be_the_batch():
    text = SCRIPT.replace("model = Net()", "model = make()")
    assert (
        "divide_batches = False" in migrate_text(f"import torch\nfrom torch import nn\nfrom m import make\n{text}").text
    )
