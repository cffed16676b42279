"""A loop over the names, or the kinds, of networks gives no batches: what it moves is a network that it makes."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Nets:
    @staticmethod
    def small(n):
        return nn.Linear(4, n)

    @staticmethod
    def big(n):
        return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, n))


def make(name):
    return getattr(Nets, name)(3)


ZOO = {"small": Nets.small, "big": Nets.big}
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,))), batch_size=8)
names = list(ZOO)
models, optimizers = [], []
for name in names:
    MAKES
    optimizers.append(torch.optim.SGD(model.parameters(), lr=0.1))
for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        for model, optimizer in zip(models, optimizers):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(epoch, loss.item())
"""
MAKES = (
    "model = getattr(Nets, name)(3).to(device); models.append(model)",
    "model = make(name).to(device); models.append(model)",
    "model = ZOO[name](3).to(device); models.append(model)",
    "model = ZOO[name](3); model = model.to(device); models.append(model)",
)


@pytest.mark.parametrize("makes", MAKES)
def test_the_names_are_no_batches(tmp_path, makes):
    text = SCRIPT.replace("MAKES", makes)
    result = migrate_text(text)
    assert result.plan == "manual" and "for name in names:" in result.text and "on_device" not in result.text
    assert not any("its batches" in edit.message for edit in result.edits)
    check_on_card(tmp_path, text)


def test_what_a_loop_gives_is_moved_with_it():
    below = "for name in given():\n    rows = name[0].to(device)\n    print(model(rows).sum().item())\n"
    text = SCRIPT.replace("MAKES", MAKES[1]).replace("print(epoch, loss.item())", "print(epoch)") + below
    assert "for name in on_device(given(), model):" in migrate_text(text).text


@pytest.mark.parametrize("makes", ["part = torch.ones(2)", "part = len(name)", "part = name.upper()", "part = [name]"])
def test_a_list_of_what_is_no_network_gives_the_module_no_parts(makes):
    kept = f"    {makes}\n    parts.append(part)\n"
    shown = "    for part in parts:\n        print(part)\n"
    text = SCRIPT.replace("MAKES", MAKES[1]).replace("models, opt", "parts = []\nmodels, opt", 1)
    text = text.replace("    optimizers.append", kept + "    optimizers.append").replace(
        "    for x, y", shown + "    for x, y"
    )
    result = migrate_text(text)
    assert 'add_module(f"models_{number}", network)' in result.text and "parts_{number}" not in result.text
