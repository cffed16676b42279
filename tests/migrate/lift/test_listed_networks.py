"""Networks that an object keeps in a plain list: no Trainer places them; a script of no device stays on the CPU."""

import pytest

from tests.migrate.running import check_on_card, check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(x)


class Meter:
    def __init__(self):
        self.values = []


class Training:
    def __init__(self, loader):
        self.loader = loader
        self.meters = [Meter() for _ in range(2)]
        self.optimizers = []
        MADE

    def train(self):
        for epoch in range(2):
            for x, y in self.loader:
                for i in range(2):
                    loss = nn.functional.cross_entropy(CALLED(x), y)
                    self.optimizers[i].zero_grad()
                    loss.backward()
                    self.optimizers[i].step()
            print(epoch, f"{loss.item():.5f}")


torch.manual_seed(0)
Training(DataLoader(TensorDataset(torch.randn(16, 4), torch.arange(16) % 3), batch_size=4)).train()
"""
OPTIMIZERS = "self.optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in "
LISTED = [
    f"self.models = [Net() for _ in range(2)]\n        {OPTIMIZERS}self.models]",
    f"self.models = [nn.Linear(4, 3), Net()]\n        {OPTIMIZERS}self.models]",
    "self.models = []\n        for i in range(2):\n            model = Net()\n            self.models.append(model)\n"
    "            self.optimizers.append(torch.optim.SGD(model.parameters(), lr=0.1))",
]


@pytest.mark.parametrize("made", LISTED)
def test_they_stay_on_the_cpu(made, tmp_path):
    script = TEXT.replace("MADE", made).replace("CALLED", "self.models[i]")
    check_same(script, "manual")
    assert 'accelerator="cpu"' in check_on_card(tmp_path, script)


def test_other_objects_in_a_list_say_nothing(tmp_path):
    made = "self.losses = [nn.MSELoss(), nn.L1Loss()]\n        print(len(self.losses))\n        "
    made += "self.model = Net()\n        self.optimizers = [torch.optim.SGD(self.model.parameters(), lr=0.1)] * 2"
    script = TEXT.replace("MADE", made).replace("CALLED", "self.model")
    assert 'accelerator="cpu"' not in check_on_card(tmp_path, script)


REGISTERED = [
    "self.layers = nn.ModuleList()\n        self.layers.append(nn.Linear(4, 3))\n        self.fc = self.layers[0]",
    "self.layers = []\n        self.layers.append(nn.Linear(4, 3))\n        self.fc = nn.Sequential(*self.layers)",
    "self.layers = nn.ModuleList([nn.Linear(4, 3)])\n        self.fc = self.layers[0]",
    "self.parts = [nn.Linear(4, 3)]\n        self.parts = nn.ModuleList(self.parts)\n        self.fc = self.parts[0]",
]


@pytest.mark.parametrize("layers", REGISTERED)
def test_layers_of_a_network_move_with_it(layers, tmp_path):
    made = "self.model = Net()\n        self.optimizers = [torch.optim.SGD(self.model.parameters(), lr=0.1)] * 2"
    script = TEXT.replace("MADE", made).replace("CALLED", "self.model").replace("self.fc = nn.Linear(4, 3)", layers)
    assert 'accelerator="cpu"' not in check_on_card(tmp_path, script)
