"""What a share of a batch is too small for, or has another gradient of: run before and after, and on two processes."""

import re

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.printed_on_two import by_originals, by_results
from tests.migrate.running import check_same

HEAD = """
import argparse
import torch
from torch import nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument('--attack', default='signed')
args = parser.parse_args()
torch.manual_seed(0)
xs = torch.randn(16, 4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(xs, (xs.sum(1) > 0).long()), batch_size=4)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
room = torch.zeros(4, 4)


def nudge(model, x, y):
    x = x.clone().requires_grad_(True)
    moved = torch.autograd.grad(F.cross_entropy(model(x), y), x)[0]
    return (x + 0.5 * moved).detach()


class Attack:
    def __init__(self, model):
        self.model = model

    def push(self, x, y):
        return nudge(self.model, x, y)

    def sign(self, x, y):
        x = x.clone().requires_grad_(True)
        moved = torch.autograd.grad(F.cross_entropy(self.model(x), y), [x])[0]
        return x.detach() + 0.5 * torch.sign(moved.detach())


attack = Attack(net)
for epoch in range(2):
    for x, y in loader:
        STEP
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        print(f'{loss.item():.6f}')
"""
ATTACK = "x = x.clone().requires_grad_(True)\n        F.cross_entropy(net(x), y).backward()\n        "
GRAD = "x = x.clone().requires_grad_(True)\n        first = F.cross_entropy(net(x), y)\n        "
SIGNS = """if args.attack == 'signed':
            delta = 0.1 * torch.ones_like(x)
            delta = delta.detach()
        elif args.attack == 'none':
            delta = torch.zeros_like(x)
        x = x + delta"""
WHOLE = {
    "the gradient itself": ATTACK + "x = (x + 0.5 * x.grad).detach()",
    "through a name": ATTACK
    + "g = x.grad.detach()\n        print(f'{g.abs().sum().item():.6f}')\n        x = x.detach()",
    "autograd.grad": GRAD + "x = (x + torch.autograd.grad(first, x)[0]).detach()",
    "in a function of a method": "x = attack.push(x, y)",
    "a tensor with room for a batch": "room.copy_(x)\n        x = room.clone() * len(x)",
    "its data": "room.data.copy_(x)\n        x = room * len(x)",
}
DIVIDED = {
    "its sign": ATTACK + "x = (x + 0.5 * x.grad.sign()).detach()",
    "the sign of a name": ATTACK + "g = x.grad.data\n        x = (x + 0.5 * torch.sign(g)).detach()",
    "its sign, in a method": "x = attack.sign(x, y)",
    "of a sum": GRAD.replace("y)", "y, reduction='sum')")
    + "x = (x + torch.autograd.grad(net(x).sum(), x)[0]).detach()",
    "a tensor that takes the size": "room.resize_(x.size()).copy_(x)\n        x = room + 1",
    "parameters": "with torch.no_grad():\n            for p in net.parameters():\n                p.copy_(p * 0.9)",
    "what an option chooses": SIGNS,
}


def plan(step):
    return "manual" if ".backward()" in step else "module"


@pytest.mark.parametrize("step", WHOLE.values(), ids=WHOLE.keys())
def test_whole_batches(step):
    assert "divide_batches = False" in check_same(HEAD.replace("STEP", step), plan(step))


@pytest.mark.parametrize("step", DIVIDED.values(), ids=DIVIDED.keys())
def test_shares(step):
    result = check_same(HEAD.replace("STEP", step), plan(step))
    assert "divide_batches" not in result and "self.delta" not in result


NORMED = {
    "a norm in the file": ("net = nn.Linear(4, 2)", "net = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2))"),
    "a network from elsewhere": ("net = nn.Linear(4, 2)", "from networks import net"),
}


@pytest.mark.parametrize("step", ["its sign", "the sign of a name", "its sign, in a method"])
@pytest.mark.parametrize("old, new", NORMED.values(), ids=NORMED.keys())
def test_a_sign_under_batch_norm_wants_even_shares(step, old, new):
    text = HEAD.replace("STEP", DIVIDED[step])
    for source, told in ((text, False), (text.replace(old, new), True)):
        result = migrate_text(source)
        assert "divide_batches" not in result.text
        assert any("its sign is one process's where" in n.message for n in result.attention) is told


@pytest.mark.slow
def test_two_processes_print_what_one_does(tmp_path):
    steps = [*WHOLE.values(), *DIVIDED.values()]
    texts = [HEAD.replace("STEP", step) for step in steps]
    for step, *printed in zip(steps, by_originals(tmp_path, texts), by_results(tmp_path, texts), strict=True):
        one, two = ([float(n) for n in re.findall(r"^\d+\.\d+$", each, re.M)] for each in printed)
        assert one and two == pytest.approx(one, abs=2e-6), step
