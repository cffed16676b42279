"""Conditions on what a step gives values of its batch: each rank answers them by its own share."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_numbers import script
from tests.migrate.running import check_same

KEEPER = """\
class Keeper:
    value, every = 0.0, 2

    def take(self, value):
        self.value = value


keeper, kept, limits = Keeper(), [], {"low": 0.1}
"""
SHOWN = "print(f'{loss.item():.6f}')"
OF_A_SHARE = {
    "an object": f"keeper.take(b.max().item())\nif keeper.value > 0.3:\n    {SHOWN}",
    "a number of an object": f"keeper.take(b.max().item())\nm = keeper.value * 2\nif m > 0.6:\n    {SHOWN}",
    "an attribute": f"keeper.value = b.max().item()\nif keeper.value > 0.3:\n    {SHOWN}",
    "a list": f"kept.append(b.max().item())\nif kept[-1] > 0.3:\n    {SHOWN}",
    "a dictionary": f"limits['low'] = b.max().item()\nif limits['low'] > 0.3:\n    {SHOWN}",
}
OF_ALL = {
    "another attribute": f"keeper.value = b.max().item()\nif i % keeper.every == 0:\n    {SHOWN}",
    "an object that is given the number of the step": f"kept.append(i)\nif kept[-1] % 2 == 0:\n    {SHOWN}",
    "a package": f"torch.relu(b)\nif torch.is_grad_enabled():\n    {SHOWN}",
    "a setting": f"if i % keeper.every == 0:\n    {SHOWN}",
}


def migrated(body):
    return check_same(script(body).replace("n, every", f"{KEEPER}n, every"), "module")


@pytest.mark.parametrize("body", OF_A_SHARE.values(), ids=OF_A_SHARE.keys())
def test_what_a_share_decides_brings_nothing_together(body):
    assert "batch_mean(loss" not in migrated(body)
    told = migrate_text(script(body).replace("n, every", f"{KEEPER}n, every")).attention
    assert any("shows what the process sees" in n.message or "whole" in n.message for n in told)


@pytest.mark.parametrize("body", OF_ALL.values(), ids=OF_ALL.keys())
def test_what_all_decide_alike_shows_the_whole_batch(body):
    assert "batch_mean(loss.item())" in migrated(body)


OF_A_CLASS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(24, 6)


class Trainer:
    def __init__(self):
        self.loader = DataLoader(TensorDataset(x, x.sum(1)), batch_size=8)
        self.net = nn.Linear(6, 1)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.every, self.worst = 2, 0.0

    def note(self, value):
        self.worst = value

    def train(self):
        for epoch in range(2):
            for i, (a, b) in enumerate(self.loader):
                loss = (self.net(a).squeeze(1) - b).pow(2).mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.note(b.max().item())
                if ASKED:
                    print(f"{loss.item():.6f}")


Trainer().train()
"""


@pytest.mark.parametrize(("asked", "alike"), [("i % self.every == 0", True), ("self.worst > 0.3", False)])
def test_what_a_method_sets_of_its_object(asked, alike):
    result = check_same(OF_A_CLASS.replace("ASKED", asked), "module")
    assert ("batch_mean(loss.item())" in result) is alike
