"""Networks that a step works with through what holds them go to the Trainer's device with the others."""

import pytest

from tests.migrate.running import check_on_card, check_same

SCRIPT = """
import functools
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)).to(device)
teacher.eval()
student = nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
train = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,))), batch_size=8, shuffle=True)
HOLDS
for epoch in range(2):
    for x, y in train:
        x, y = x.to(device), y.to(device)
        with torch.no_grad():
            target = TARGET
        out = student(x)
        loss = F.cross_entropy(out, y) + F.mse_loss(out, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, f"{loss.item():.6f}")
z = torch.ones(2, 4).to(device)
print(f"{student(z).sum().item():.6f} {teacher(z).sum().item():.6f}")
"""
PLAIN = "class Soft:\n    def __init__(self, net):\n        self.net = net\n    def __call__(self, x):\n        return self.net(x).softmax(1)\n"  # noqa: E501
PARTS = "class Soft(nn.Module):\n    def __init__(self, net):\n        super().__init__()\n        self.nets = [net]\n    def forward(self, x):\n        return self.nets[0](x)\n"  # noqa: E501
HELD = {
    "an object": (f"{PLAIN}soft = Soft(teacher)", "soft(x)"),
    "an object of an object": (f"{PLAIN}soft = Soft(teacher)\nsofter = Soft(soft)", "softer(x)"),
    "a module that registers nothing": (f"{PARTS}soft = Soft(teacher)", "soft(x)"),
    "a partial": ("predict = functools.partial(teacher)", "predict(x)"),
    "its method": ("forward = teacher.forward", "forward(x)"),
    "a part of it": ("first = teacher[0]", "first(x)[:, :2]"),
    "an attribute": ("class State:\n    pass\nstate = State()\nstate.teacher = teacher", "state.teacher(x)"),
}


def held(name):
    holds, target = HELD[name]
    text = SCRIPT.replace("HOLDS", holds).replace("TARGET", target)
    return text.replace(" {teacher(z).sum().item():.6f}", "")  # which alone would say that it goes along


@pytest.mark.parametrize("name", HELD)
def test_they_are_the_modules(tmp_path, name):
    assert "self.teacher = teacher" in check_on_card(tmp_path, held(name))
    check_same(held(name), "module")


def test_a_registered_part_comes_once():
    registers = PARTS.replace("self.nets = [net]", "self.net = net").replace("self.nets[0]", "self.net")
    text = SCRIPT.replace("HOLDS", f"{registers}soft = Soft(teacher)").replace("TARGET", "soft(x)")
    text = text.replace(" {teacher(z).sum().item():.6f}", "")
    assert "self.teacher" not in check_same(text, "module")


def test_what_no_step_reads_stays():
    text = SCRIPT.replace("HOLDS", f"{PLAIN}soft = Soft(teacher)").replace("TARGET", "student(x)")
    text = text.replace(" {teacher(z).sum().item():.6f}", "")
    assert "self.teacher" not in check_same(text, "module")


BELOW = "other = OTHER\nfor p in other.parameters():\n    p.requires_grad_(False)\n"


@pytest.mark.parametrize("other", ["nn.Linear(4, 2).to(device)", "copy.deepcopy(teacher).to(device)"])
def test_one_that_comes_in_below_the_loop_goes_where_it_was_moved_to(tmp_path, other):
    text = "import copy" + SCRIPT.replace("HOLDS", BELOW.replace("OTHER", other)).replace("TARGET", "teacher(x)")
    text += 'print(f"{other(z).sum().item():.6f}")\n'
    assert "self.other = other" in check_on_card(tmp_path, text)


def test_one_that_was_never_moved_stays(tmp_path):
    text = SCRIPT.replace("HOLDS", BELOW.replace("OTHER", "nn.Linear(4, 2)")).replace("TARGET", "teacher(x)")
    text += 'print(f"{other(z.cpu()).sum().item():.6f}")\n'
    assert "self.other" not in check_on_card(tmp_path, text)
