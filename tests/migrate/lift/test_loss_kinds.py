"""Whether a loss is a sum or a mean over its batch, wherever the script keeps what computes it."""

import re
import subprocess
import sys

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs = torch.randn(17, 4)
ys = torch.randn(17, 1)
"""
CLASS = (
    HEAD
    + """
class Squares(nn.Module):
    def forward(self, a, b):
        e = (a - b) ** 2
        return e.KIND()

class Learner:
    def __init__(self, given=None):
        self.loader = DataLoader(TensorDataset(xs, ys), batch_size=8)
        self.model = nn.Linear(4, 1)
        self.criterion = MADE
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01)

    def error(self, a, b):
        return ((a - b) ** 2).KIND()

    def fit(self):
        for epoch in range(2):
            losses = []
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = CALL
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            print(epoch, sum(losses) / len(losses))
        print(self.model.weight.tolist())

Learner(GIVEN).fit()
"""
)
WAYS = {
    "of torch": ("nn.MSELoss(reduction='KIND')", "self.criterion(self.model(x), y)", ""),
    "of torch, placed": ("nn.MSELoss(reduction='KIND').double().float()", "self.criterion(self.model(x), y)", ""),
    "given to the constructor": ("given", "self.criterion(self.model(x), y)", "nn.MSELoss(reduction='KIND')"),
    "by its keyword": ("given", "self.criterion(self.model(x), y)", "given=nn.MSELoss(reduction='KIND')"),
    "of the script's own": ("Squares()", "self.criterion(self.model(x), y)", ""),
    "a method": ("None", "self.error(self.model(x), y)", ""),
}


def learner(way, kind):
    made, call, given = WAYS[way]
    return CLASS.replace("MADE", made).replace("CALL", call).replace("GIVEN", given).replace("KIND", kind)


@pytest.mark.parametrize("way", WAYS)
def test_a_sum(way):
    result = check_same(learner(way, "sum"), "module")
    assert 'loss_reduction = "sum"' in result and "batch_mean" not in result


@pytest.mark.parametrize("way", WAYS)
def test_a_mean(way):
    result = check_same(learner(way, "mean"), "module")
    assert "loss_reduction" not in result and "batch_sum" not in result


STEP = (
    HEAD
    + """
model = nn.Linear(4, 1)
criterion = nn.MSELoss(reduction='KIND')
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for epoch in range(2):
    total = 0.0
    for i, (x, y) in enumerate(DataLoader(TensorDataset(xs, ys), batch_size=8)):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        MORE
        loss.backward()
        optimizer.step()
        COUNT
        print(i, loss.item())
    print(epoch, total, loss.item())
print(model.weight.tolist())
"""
)
PENALTIES = [
    "loss = loss + 0.1 * sum(p.pow(2).sum() for p in model.parameters())",
    "loss += 0.1 * sum(p.abs().sum() for p in model.parameters())",
    "for p in model.parameters():\n            loss = loss + 0.1 * p.abs().sum()",
    "l2 = 0.0\n        for p in model.parameters():\n            l2 = l2 + p.norm()\n        loss = loss + 0.1 * l2",
    "loss = loss + 0.1 * model.weight.norm()",
]
WHOLE = "every process computes every training batch whole"


def step(kind, more="pass", count="total += loss.item()"):
    return STEP.replace("KIND", kind).replace("MORE", more).replace("COUNT", count)


@pytest.mark.parametrize("more", PENALTIES)
def test_every_process_would_add_a_penalty_to_its_sum(more):
    check_same(step("sum", more), "module")
    assert any(n.message.startswith(WHOLE) for n in migrate_text(step("sum", more)).attention)


@pytest.mark.parametrize("more", PENALTIES)
def test_a_penalty_on_a_mean_is_weighed_with_it(more):
    check_same(step("mean", more), "module")
    assert not any(n.message.startswith(WHOLE) for n in migrate_text(step("mean", more)).attention)


@pytest.mark.parametrize("more", ["loss = loss * 2", "loss = loss + criterion(model(x * 2), y)", "loss = 0.5 * loss"])
def test_what_is_no_penalty(more):
    assert 'loss_reduction = "sum"' in check_same(step("sum", more), "module")


@pytest.mark.parametrize(
    ("kind", "count", "whole"),
    [
        ("sum", "total += loss.item() * x.size(0)", True),
        ("sum", "n = len(x)\n        total += loss.item() * n", True),
        ("mean", "total += loss.item() * x.size(0)", False),
        ("sum", "total += loss.item() * 2", False),
        ("sum", "total += loss.item()", False),
    ],
)
def test_a_sum_times_a_size_is_no_sum_of_shares(kind, count, whole):
    text = step(kind, count=count)
    check_same(text, "module")
    assert any("multiplies two sums" in n.message for n in migrate_text(text).attention) is whole


BY_TWO = {
    "an empty share": step("sum"),
    "sum times size": step("sum", count="total += loss.item() * x.size(0)"),
    "a penalty": step("sum", PENALTIES[0]),
    "given": learner("given to the constructor", "sum"),
    "own": learner("of the script's own", "sum"),
}
PTRUN = ["-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", "2", "--global-batch"]


@pytest.mark.slow
@pytest.mark.parametrize("text", BY_TWO.values(), ids=BY_TWO)
def test_two_processes_print_what_one_does(text, tmp_path):
    """17 samples in batches of 8: of the last one a process has nothing."""
    (tmp_path / "before.py").write_text(text)
    (tmp_path / "after.py").write_text(migrate_text(text).text)
    one, two = (
        subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        for command in (["before.py"], [*PTRUN, "after.py"])
    )
    assert two.returncode == 0, two.stderr
    numbers = [[float(n) for n in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", p.stdout)] for p in (one, two)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-4, abs=1e-6)
