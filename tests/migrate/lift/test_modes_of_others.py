"""`optimizer.train()` and `data.eval()` switch no network; an evaluation above the loop leaves the network's mode."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import FUNCTIONS
from tests.migrate.running import check_project_on_card, check_same

CLASSES = """
class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.noisy = False

    def train(self):
        self.noisy = True

    def eval(self):
        self.noisy = False

    def __len__(self):
        return len(xs)

    def __getitem__(self, i):
        return xs[i] + self.noisy, ys[i]


class ScheduleFree(torch.optim.SGD):
    factor = 1.0

    def train(self):
        self.factor = 1.0

    def eval(self):
        self.factor = 0.0

    def step(self, closure=None):
        if self.factor:
            return super().step(closure)


data = Data()
"""
SCRIPT = (
    FUNCTIONS.replace("train_loader = DataLoader(TensorDataset(xs, ys)", f"{CLASSES}train_loader = DataLoader(data")
    .replace("torch.optim.SGD(model", "ScheduleFree(model")
    .replace("class ScheduleFree(model", "class ScheduleFree(torch.optim.SGD")
)
SWITCHES = {
    "a data set": ("data.train()", "data.eval()"),
    "an optimizer": ("optimizer.train()", "optimizer.eval()"),
    "both": ("data.train()\n    optimizer.train()", "optimizer.eval()\n    data.eval()"),
}


@pytest.mark.parametrize(("train", "evaluate"), SWITCHES.values(), ids=SWITCHES)
def test_what_is_no_network_is_switched_by_the_script(train, evaluate):
    text = SCRIPT.replace("model.train()", f"model.train()\n    {train}").replace(
        "model.eval()", f"model.eval()\n    {evaluate}"
    )
    result = check_same(text, "module")
    for line in (*train.split(), *evaluate.split()):
        assert line.replace("optimizer", "optimizers()") in result


def test_an_evaluation_above_the_loop_leaves_its_mode():
    result = check_same(FUNCTIONS.replace("for epoch in range(1", "test()\nfor epoch in range(1"), "module")
    assert "self.model.train()" in result


@pytest.mark.parametrize(
    "above",
    [
        "if args.epochs > 9:\n    test()\n    raise SystemExit\n",
        "if args.epochs > 9:\n    print(1)\n    if args.lr:\n        test()\n    exit()\n",
    ],
)
def test_one_that_ends_the_run_does_not(above):
    result = check_same(FUNCTIONS.replace("for epoch in range(1", f"{above}for epoch in range(1"), "module")
    assert "self.model.train()" not in result


def test_one_below_the_loop_does_not():
    result = check_same(FUNCTIONS + "test()\n", "module")
    assert "self.model.train()" not in result


NETWORK = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), LAYER, nn.Linear(8, 4))

    def forward(self, x):
        return self.net(x)
"""
IN_TRAINING_MODE = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from network import Net

torch.manual_seed(0)
xs, ys = torch.randn(16, 4), torch.randint(0, 4, (16,))
train_loader, test_loader = DataLoader(TensorDataset(xs, ys), 4), DataLoader(TensorDataset(xs * 3, ys), 4)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in train_loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = 0
    OFF
    with torch.no_grad():
        for x, y in test_loader:
            right += (model(x).argmax(1) == y).sum().item()
    print(epoch, right)
"""


@pytest.mark.parametrize(
    ("layer", "off", "whole"),
    [
        ("nn.BatchNorm1d(8)", "pass", True),
        ("nn.Dropout(0.5)", "pass", True),
        ("nn.ReLU()", "pass", False),
        ("nn.BatchNorm1d(8)", "model.eval()", False),
    ],
)
def test_an_evaluation_in_training_mode_of_a_network_of_another_file(tmp_path, layer, off, whole):
    """Divided, it left running statistics that one process does not have."""
    texts = {"network": NETWORK.replace("LAYER", layer), "main": IN_TRAINING_MODE.replace("OFF", off)}
    assert ("divide_validation = False" in check_project_on_card(tmp_path, **texts)["main"]) is whole


@pytest.mark.parametrize(("library", "whole"), [("torchvision.models", True), ("torchvision.ops", False)])
def test_of_a_network_of_a_library(library, whole):
    imports = f"from {library} import Net" if "ops" in library else f"import {library} as models"
    text = IN_TRAINING_MODE.replace("from network import Net", imports).replace("OFF", "pass")
    assert ("divide_validation = False" in migrate_text(text.replace("= Net()", "= models.Net()")).text) is whole
