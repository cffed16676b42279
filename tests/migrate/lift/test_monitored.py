"""Schedules on a metric: the Trainer steps them by its log, where nothing reads the rates in between."""

import pytest

from tests.migrate.running import check_same

SCRIPT = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(26, 4)
ds = TensorDataset(x, x.sum(1, keepdim=True))
train_loader, val_loader = DataLoader(ds, batch_size=4, shuffle=True), DataLoader(ds, batch_size=5)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.4)
scheduler = {schedule}


class Saver:
    def __init__(self, opt):
        self.opt = opt

    def save(self, epoch):
        print(epoch, self.opt.param_groups[0]["lr"])


def show(epoch):
    print(epoch, optimizer.param_groups[0]["lr"])


def evaluate(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += F.mse_loss(model(x), y, reduction="sum").item()
    return total / len(loader.dataset)


saver = Saver(optimizer)
history = []
for epoch in range(8):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
{end}
print(optimizer.param_groups[0]["lr"], history)
"""
PLATEAU = "ReduceLROnPlateau(optimizer, patience=0, factor=0.5)"


def script(end: str, schedule: str = PLATEAU) -> str:
    lines = ("    " + line for line in end.splitlines())
    return SCRIPT.replace("{end}", "\n".join(lines)).replace("{schedule}", schedule)


BY_LOG = {
    "the last": ("v = evaluate(model, val_loader)\nscheduler.step(v)", '"v", self.v'),
    "rates shown before it": (
        "v = evaluate(model, val_loader)\nprint(v, optimizer.param_groups[0]['lr'])\nscheduler.step(v)",
        '"v", self.v',
    ),
    "a save of the weights after it": (
        "v = evaluate(model, val_loader)\nscheduler.step(metrics=v)\nhistory.append(v)\nprint(len(model.state_dict()))",
        '"v", self.v',
    ),
    "a value without a name": ("v = evaluate(model, val_loader)\nscheduler.step(-v)", '"monitored", -self.v'),
    "left after it": ("v = evaluate(model, val_loader)\nscheduler.step(v)\nif epoch == 4:\n    break", '"v", self.v'),
    "no evaluation": ("scheduler.step(loss.item())", '"monitored", loss.item()'),
}


@pytest.mark.parametrize("end, logged", BY_LOG.values(), ids=BY_LOG)
def test_the_trainer_steps_by_the_log(end, logged):
    new = check_same(script(end), "module")
    assert f"self.log({logged})" in new
    assert '"monitor": ' + logged.split(",")[0] in new
    assert "lr_schedulers()" not in new


STEP = "v = evaluate(model, val_loader)\nscheduler.step(v)\n"
BY_HAND = {
    "rates shown after it": STEP + "print(optimizer.param_groups[0]['lr'])",
    "rates saved after it": STEP + "history.append(optimizer.state_dict())",
    "rates read by a function": STEP + "show(epoch)",
    "rates read by an object": STEP + "saver.save(epoch)",
    "the schedule read after it": STEP + "print(scheduler.num_bad_epochs)",
    "not in every epoch": "v = evaluate(model, val_loader)\nif epoch % 2:\n    continue\nscheduler.step(v)",
    "twice": STEP + "scheduler.step(v)",
    "ahead of the evaluation": "scheduler.step(loss)\nprint(evaluate(model, val_loader))",
}


@pytest.mark.parametrize("end", BY_HAND.values(), ids=BY_HAND)
def test_steps_whose_moment_matters_stay_by_hand(end):
    assert "self.log(" not in check_same(script(end), "manual")


def test_a_step_under_a_condition_stays():
    new = check_same(script("v = evaluate(model, val_loader)\nif epoch > 2:\n    scheduler.step(v)"), "module")
    assert "self.scheduler.step(self.v)" in new and "self.log(" not in new


def test_the_number_of_an_epoch_is_no_metric():
    end = "v = evaluate(model, val_loader)\nscheduler.step(epoch)"
    assert "self.log(" not in check_same(script(end, "StepLR(optimizer, 2)"), "manual")
