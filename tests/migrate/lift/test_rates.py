"""A learning rate that is read after the step: the Trainer's own order of a step is the same there, or is not taken."""

import pytest

from tests.migrate.running import check_same

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
xs = torch.randn(12, 4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(xs, (xs.sum(1) > 0).long()), batch_size=4)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)


def get_lr(optimizer):
    for group in optimizer.param_groups:
        return group['lr']


def halved(optimizer):
    for group in optimizer.param_groups:
        group['lr'] = group['lr'] / 2
        return group['lr']


for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        AFTER
    EPOCH
"""
RATE = "print('rate', optimizer.param_groups[0]['lr'])"
SCHEDULE = "scheduler.step()"
SAME = {
    "of a group": (RATE, SCHEDULE),
    "of its state": ("print('rate', optimizer.state_dict()['param_groups'][0]['lr'])", SCHEDULE),
    "of a function": ("print('rate', get_lr(optimizer))", SCHEDULE),
    "before the schedule's step": (f"{RATE}\n        {SCHEDULE}", "pass"),
}
KEPT = {
    "after the schedule's step": (f"{SCHEDULE}\n        {RATE}", "pass"),
    "a function that changes it": ("print('rate', halved(optimizer))", SCHEDULE),
    "the state of the weights": ("print('rate', len(optimizer.state_dict()['state']))", SCHEDULE),
    "the groups' weights": ("print('rate', optimizer.param_groups[0]['params'][0].sum().item())", SCHEDULE),
    "set by hand": ("optimizer.param_groups[0]['lr'] *= 0.9", SCHEDULE),
}


@pytest.mark.parametrize("after, epoch", SAME.values(), ids=SAME.keys())
def test_a_rate_is_read_in_the_step(after, epoch):
    check_same(HEAD.replace("AFTER", after).replace("EPOCH", epoch), "module")


@pytest.mark.parametrize("after, epoch", KEPT.values(), ids=KEPT.keys())
def test_the_step_keeps_its_order(after, epoch):
    check_same(HEAD.replace("AFTER", after).replace("EPOCH", epoch), "manual")


OWN = """class Own(torch.optim.SGD):
    def step(self):
        super().step()
        self.param_groups[0]['lr'] /= 2


optimizer = Own("""


def test_an_optimizer_of_another_kind_may_change_its_rates():
    text = HEAD.replace("optimizer = torch.optim.SGD(", OWN).replace("AFTER", RATE).replace("EPOCH", "pass")
    check_same(text, "manual")
