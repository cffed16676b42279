"""Losses and criteria that dictionaries, lists and objects hold, and losses of which nothing shows what they are."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

SCRIPT = """
import argparse
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--reduction", default="KIND")
args = parser.parse_args()


MADE


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(27, 4), torch.randn(27, 1)), batch_size=8)
model = NETWORK
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for epoch in range(2):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        STEP
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total)
"""
ERROR = "F.mse_loss(out, y, reduction='KIND')"
NETWORK = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x, y):
        out = self.fc(x)
        return {'a': ERROR, 'b': ERROR}"""
FUNCTION = "def errors(out, y):\n    return GIVEN"
DATACLASS = "@dataclass\nclass Losses:\n    total: torch.Tensor\n    n: int = 0\n\n\n" + FUNCTION
NAMEDTUPLE = "Losses = namedtuple('Losses', 'n total')\n\n\n" + FUNCTION
CALLABLE = "class Errors:\n    def __call__(self, out, y):\n        return GIVEN\n\n\nerrors = Errors()"
CRITERIA = "{'a': nn.MSELoss(reduction='KIND'), 'b': nn.L1Loss(reduction='KIND')}"
HELD = {
    "added up of a dictionary": (NETWORK, "", "loss = sum(one for one in model(x, y).values())"),
    "added up of a name": (NETWORK, "", "losses = model(x, y)\nloss = sum(one for one in losses.values())"),
    "in a loop": (NETWORK, "", "loss = 0\nfor name, one in model(x, y).items():\n    loss = loss + one"),
    "dict()": (FUNCTION, f"dict(total={ERROR}, n=1)", "loss = errors(model(x), y)['total']"),
    "a dataclass": (DATACLASS, f"Losses({ERROR}, n=1)", "loss = errors(model(x), y).total"),
    "a dataclass by name": (DATACLASS, f"Losses(total={ERROR})", "made = errors(model(x), y)\nloss = made.total"),
    "a namedtuple": (NAMEDTUPLE, f"Losses(1, {ERROR})", "loss = errors(model(x), y).total"),
    "a namespace": (FUNCTION, f"SimpleNamespace(total={ERROR})", "made = errors(model(x), y)\nloss = made.total"),
    "a callable object": (CALLABLE, ERROR, "loss = errors(model(x), y)"),
    "a callable object's first": (CALLABLE, f"{ERROR}, 1", "loss, n = errors(model(x), y)"),
    "criteria of a dictionary": (
        f"criteria = {CRITERIA}",
        "",
        "out = model(x)\nloss = 0\nfor name, each in criteria.items():\n    loss = loss + each(out, y)",
    ),
    "criteria of a list, weighed": (
        "criteria = [nn.MSELoss(reduction='KIND'), nn.L1Loss(reduction='KIND')]",
        "",
        "out = model(x)\nloss = sum(w * each(out, y) for w, each in zip((1, 2), criteria))",
    ),
    "criteria of a module": (f"criteria = nn.ModuleDict({CRITERIA})", "", "loss = criteria['a'](model(x), y)"),
    "a function by its name": ("error = getattr(F, 'mse_loss')", "", "loss = error(model(x), y, reduction='KIND')"),
    "added to an entry": ("", "", "out = model(x)\nlosses = {'a': 0}\nlosses['a'] += ERROR\nloss = losses['a']"),
}
UNSHOWN = {
    "an option": ("error = nn.MSELoss(reduction=args.reduction)", "loss = error(model(x), y)"),
    "what is spread": ("asked = {'reduction': 'KIND'}\nerror = nn.MSELoss(**asked)", "loss = error(model(x), y)"),
    "spread over the call": ("asked = dict(reduction='KIND')", "loss = F.mse_loss(model(x), y, **asked)"),
    "set afterwards": ("error = nn.MSELoss()\nerror.reduction = 'KIND'", "loss = error(model(x), y)"),
    "of an inner function": (
        "def make(kind):\n    def error(out, y):\n        return F.mse_loss(out, y, reduction=kind)\n\n"
        "    return error\n\n\nerror = make('KIND')",
        "loss = error(model(x), y)",
    ),
}


def script(made, given, step, kind):
    text = SCRIPT.replace("MADE", made).replace("GIVEN", given).replace("STEP", step.replace("\n", "\n        "))
    text = text.replace("NETWORK", "Net()" if "class Net" in made else "nn.Linear(4, 1)")
    return text.replace("ERROR", ERROR).replace("KIND", kind)


def taken(text):
    return [n for n in migrate_text(text).attention if "nothing shows whether" in n.message]


@pytest.mark.parametrize("way", HELD)
@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_what_is_held_is_followed(kind, way):
    text = script(*HELD[way], kind)
    assert ('loss_reduction = "sum"' in check_same(text, "module")) is (kind == "sum")
    assert not taken(text)


@pytest.mark.parametrize("way", UNSHOWN)
@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_what_does_not_show_is_told_and_takes_whole_batches(kind, way):
    made, step = UNSHOWN[way]
    text = script(made, "", step, kind)
    assert "divide_batches = False" in check_same(text, "module")
    (note,) = taken(text)
    assert note.code == "PTM703" and "where it is one, `divide_batches = True` says so" in note.message


@pytest.mark.parametrize(
    "step",
    [
        "loss = F.mse_loss(model(x), y)",
        "loss = (model(x) - y).pow(2).mean()",
        "loss = F.mse_loss(model(x), y, **{'reduction': 'mean'})",
        "loss = nn.MSELoss(**{})(model(x), y)",
    ],
)
def test_a_mean_that_shows_needs_no_word(step):
    text = script("", "", step, "mean")
    check_same(text, "module")
    assert bool(taken(text)) is ("'reduction'" in step)


def test_whole_batches_need_no_word():
    made, step = UNSHOWN["an option"]
    text = script(made, "", step + "\nloss = loss + model(x).softmax(0).sum()", "mean")
    assert "divide_batches = False" in check_same(text, "module")
    assert not taken(text)
