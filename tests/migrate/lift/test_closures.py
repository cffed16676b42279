# ruff: noqa: E501
"""A step that a function makes of a network and its optimizer: it is lifted as a function of them and the batch."""

import textwrap

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.shape.closures import give_with_the_batch

from tests.migrate.running import check_on_card, check_same

HEAD = '''\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_step(model, loss_fn, optimizer):
    """Builds a step."""

    def step(x, y):
        # one batch
        loss = loss_fn(nn.functional.relu(model(x)), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def make_look(model, loss_fn):
    def look(x, y):
        return loss_fn(model(x), y).item()

    return look


'''
MAIN = """\
torch.manual_seed(0)
device = 'cuda' if torch.cuda.is_available() else 'cpu'
data = TensorDataset(torch.randn(32, 3), torch.randn(32, 1))
loader, rest = DataLoader(data, 8, shuffle=True), DataLoader(data, 8)
net = nn.Linear(3, 1).to(device)
criterion = nn.MSELoss()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
train_step = make_step(net, criterion, sgd)
look = make_look(net, loss_fn=criterion)
for epoch in range(3):
    net.train()
    losses = []
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        losses.append(train_step(x, y))
    net.eval()
    with torch.no_grad():
        seen = [look(x.to(device), y.to(device)) for x, y in rest]
    print(epoch, sum(losses) / len(losses), sum(seen))
"""
SCRIPT = HEAD + MAIN
INSIDE = HEAD + "def main():\n" + textwrap.indent(MAIN, "    ") + "\n\nmain()\n"
SAME = {
    "at the top": SCRIPT,
    "in a function": INSIDE,
    "a name of a batch is an outer one too": SCRIPT.replace("step(x, y):", "step(x, y, model=None):").replace(
        "model=None", "model").replace("train_step(x, y)", "train_step(x, y, net)"),
    "named arguments": SCRIPT.replace("train_step(x, y)", "train_step(x=x, y=y)"),
    "brackets in a comment": SCRIPT.replace("def step(x, y):", "def step(x, y):  # one step (both ways)"),
    "as black breaks a call": SCRIPT.replace("losses.append(train_step(x, y))", "losses.append(train_step(\n            x,\n            y,\n        ))"),
    "a type": SCRIPT.replace("def step(x, y):", "def step(x, y: torch.Tensor,) -> float:  # (one)"),
    "a default that is a number": SCRIPT.replace("optimizer):", "optimizer, scale=0.5):").replace("), y)\n        loss.b", "), y) * scale\n        loss.b"),
}  # fmt: skip


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_it_is_lifted_and_runs_the_same(text):
    result = check_same(text, "module")
    assert "backward" not in result and "make_step" not in result and "self.model" not in result
    assert "# one batch" in result


def test_on_a_card(tmp_path):
    assert ".to(device)" not in check_on_card(tmp_path, INSIDE)


UNCHANGED = {
    "the network is another one later": SCRIPT.replace("look = make", "net = nn.Linear(3, 1)\nlook = make"),
    "it is handed on": SCRIPT.replace("for epoch", "print(callable(train_step))\nfor epoch"),
    "made twice": SCRIPT.replace("look = make", "other = make_step(net, criterion, sgd)\nlook = make"),
    "more is done where it is made": SCRIPT.replace("    return step", "    print('made')\n    return step"),
    "it keeps a count": SCRIPT.replace("        # one batch", "        nonlocal loss_fn\n        # one batch"),
    "it gives a name another value": SCRIPT.replace("        # one batch", "        model = nn.Linear(3, 1)"),
    "made of what is made there": SCRIPT.replace("make_step(net, criterion", "make_step(net, nn.MSELoss()"),
    "a function of it calls the step": SCRIPT.replace("for epoch", "def again():\n    train_step(1, 2)\n\n\nfor epoch"),
    "a dictionary gives the batch": SCRIPT.replace("train_step(x, y)", "train_step(**dict(x=x, y=y))"),
    "decorated": SCRIPT.replace("    def step", "    @torch.no_grad()\n    def step"),
    "nothing trains": SCRIPT.replace("        loss.backward()\n", ""),
    "an attribute": SCRIPT.replace("train_step = make", "net.go = make").replace("(train_step(", "(net.go("),
    "of an attribute, which others may set": SCRIPT.replace("sgd = ", "class Of: pass\nof = Of()\nof.sgd = ").replace(
        ", sgd)", ", of.sgd)"),
    "made in the first epoch": SCRIPT.replace("train_step = make_step(net, criterion, sgd)\n", "").replace(
        "    net.train()\n", "    if epoch == 0:\n        print('made')\n        train_step = make_step(net, criterion, sgd)\n    net.train()\n"),
    "a default of another time": SCRIPT.replace("def make_step", "W = 1.0\n\n\ndef make_step").replace(
        "optimizer):", "optimizer, w=W):").replace("x)), y)", "x)), y) * w").replace("train_step = make", "W = 5.0\ntrain_step = make"),
    "another function sets it": SCRIPT.replace("train_step = make", "def again():\n    global net\n    net = None\n\n\ntrain_step = make"),
    "called above": SCRIPT.replace("for epoch in range(3):\n", "for epoch in range(3):\n    epoch and train_step(x, y)\n").replace(
        "train_step = make_step(net, criterion, sgd)\n", "").replace("    net.train()\n", "    train_step = make_step(net, criterion, sgd)\n"),
}  # fmt: skip


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_others_stay(text):
    compile(text, "script.py", "exec")
    without_look = text.replace("look = make_look(net, loss_fn=criterion)", "look = make_look(net, nn.MSELoss())")
    assert give_with_the_batch(Facts(without_look)) is None
