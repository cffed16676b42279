"""Optimizers that a step makes itself, or takes one by one from a list: no optimizer of the Module, and so told."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

HEAD = """
import copy
import torch
import torch.nn.functional as F
from torch import nn

xs = torch.randn(12, 4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(xs, xs.sum(1, keepdim=True)), batch_size=4)
nets = [nn.Linear(4, 1), nn.Linear(4, 1)]
net = nets[0]
MADE
for epoch in range(2):
    for x, y in loader:
STEP
    print(epoch, loss.item())
"""
LIST = "opts = [torch.optim.SGD(n.parameters(), lr=0.1) for n in nets]"
OWN = {
    "of a list": (
        LIST,
        """
for opt in opts:
    opt.zero_grad()
loss = sum(F.mse_loss(n(x), y) for n in nets)
loss.backward()
for opt in opts:
    opt.step()""",
        "`opt` is made, or taken from others",
    ),
    "of a list that was filled under the same name": (
        "opts = []\nfor n in nets:\n    opt = torch.optim.SGD(n.parameters(), lr=0.1)\n    opts.append(opt)",
        """
for n, opt in zip(nets, opts):
    opt.zero_grad()
    loss = F.mse_loss(n(x), y)
    loss.backward()
    opt.step()""",
        "`opt` is made, or taken from others",
    ),
    "scaled": (
        f"{LIST}\nscaler = torch.amp.GradScaler('cpu', enabled=False)",
        """
for n, opt in zip(nets, opts):
    opt.zero_grad()
    loss = F.mse_loss(n(x), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
scaler.update()""",
        "`opt` is made, or taken from others",
    ),
    "by its number": (
        LIST,
        """
for i in range(2):
    opts[i].zero_grad()
    loss = F.mse_loss(nets[i](x), y)
    loss.backward()
    opts[i].step()""",
        "`opts[i].step()`: which optimizer that is does not show",
    ),
    "made for a copy, beside the script's": (
        "meta = torch.optim.SGD(net.parameters(), lr=0.1)",
        """
learner = copy.deepcopy(net)
inner = torch.optim.SGD(learner.parameters(), lr=0.01)
loss = F.mse_loss(learner(x), y)
loss.backward()
inner.step()
meta.zero_grad()
loss = F.mse_loss(learner(x), y)
loss.backward()
for p, q in zip(net.parameters(), learner.parameters()):
    p.grad = q.grad.clone()
meta.step()""",
        "`inner` is made, or taken from others",
    ),
}


def script(made: str, step: str) -> str:
    lines = "\n".join("        " + line for line in step.strip("\n").splitlines())
    return HEAD.replace("MADE", made).replace("STEP", lines)


@pytest.mark.parametrize("made, step, says", OWN.values(), ids=OWN)
def test_the_step_is_one_over_whole_batches(made, step, says):
    text = script(made, step)
    assert "divide_batches = False" in check_same(text, "manual")
    assert [n for n in migrate_text(text).attention if says in n.message and "batch whole" in n.message]


OF_THE_MODULE = {
    "two of the script's": (
        "a, b = nets\n"
        "first = torch.optim.SGD(a.parameters(), lr=0.1)\n"
        "second = torch.optim.SGD(b.parameters(), lr=0.1)",
        """
for _ in range(2):
    first.zero_grad()
    second.zero_grad()
    loss = F.mse_loss(a(x), y) + F.mse_loss(b(x), y)
    loss.backward()
    first.step()
    second.step()""",
    ),
    "one, in a loop of the step": (
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
        """
for _ in range(2):
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    opt.step()""",
    ),
}


@pytest.mark.parametrize("made, step", OF_THE_MODULE.values(), ids=OF_THE_MODULE)
def test_what_the_script_has_made_is_of_the_module(made, step):
    new = check_same(script(made, step), "manual")
    assert "divide_batches" not in new and "self.optimizers()" in new


def test_one_that_the_script_made_and_a_step_makes_anew_is_the_modules_at_first():
    step = """
if epoch:
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
opt.zero_grad()
loss = F.mse_loss(net(x), y)
loss.backward()
opt.step()"""
    new = check_same(script("opt = torch.optim.SGD(net.parameters(), lr=0.1)", step), "manual")
    assert "return self.opt" in new and "divide_batches = False" in new


def test_a_step_without_any_changes_the_weights_itself():
    step = "loss = F.mse_loss(net(x), y)\nloss.backward()\nwith torch.no_grad():\n    for p in net.parameters():\n"
    text = script("", step + "        p -= 0.1 * p.grad\n        p.grad = None")
    assert "return None  # the step itself changes the weights" in check_same(text, "manual")
    assert [n for n in migrate_text(text).attention if "changes the weights itself" in n.message]


def test_an_optimizer_that_is_stepped_once_an_epoch_is_not_the_steps():
    text = """import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(12, 3)
loader = DataLoader(TensorDataset(x, x[:, :1]), batch_size=5)
net = torch.nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.05)
for epoch in range(3):
    opt.zero_grad()
    for a, b in loader:
        loss = F.mse_loss(net(a), b) * len(a) / len(x)
        loss.backward()
    opt.step()
    print(epoch, loss.item())
"""
    assert "return None  # the script steps its optimizer elsewhere" in check_same(text, "manual")
    told = [n for n in migrate_text(text).attention if "`opt.step()` does not stand in the step" in n.message]
    assert [n.line for n in told] == [14]
