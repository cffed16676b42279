"""Copies of the network that an object of the script keeps, such as an average of its weights."""

import pytest
from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.result import Options

from tests.migrate.running import check_same

TEXT = """
import copy
import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
torch.manual_seed(0)

class Average:
    def __init__(self, model, decay=0.9):
        self.ema = MADE
        self.decay = decay
        for p in self.ema.parameters():
            p.requires_grad_(False)

    def update(self, model):
        with torch.no_grad():
            for e, p in zip(self.ema.parameters(), model.parameters()):
                e.copy_(e * self.decay + (1 - self.decay) * p)

averages = True
loader = DataLoader(torch.randn(8, 4), batch_size=4)
net = nn.Linear(4, 4).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
GIVEN
for epoch in range(2):
    for x in loader:
        x = x.to(device)
        loss = (net(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        USED
print('%.5f' % sum(p.sum() for p in net.parameters()))
"""
GIVEN = "average = Average(net)"
MOVES = "self.average.ema.to(self.device)\n"


def text_of(made="copy.deepcopy(model).to(device).eval()", given=GIVEN, used="average.update(net)"):
    return TEXT.replace("MADE", made).replace("GIVEN", given).replace("USED", used)


@pytest.mark.parametrize("made", ["copy.deepcopy(model).to(device).eval()", "copy.deepcopy(model)"])
def test_they_go_where_the_module_is(made):
    assert f"    def on_fit_start(self):\n        {MOVES}" in check_same(text_of(made), "manual")


def test_one_that_a_function_is_given_does_too():
    head, loop = text_of().split("for epoch")
    lines = ["def train(average, net, optimizer):", *(f"    {line}" for line in ("for epoch" + loop).splitlines()[:-1])]
    text = "\n".join([head, *lines, "train(average, net, optimizer)", loop.splitlines()[-1], ""])
    assert f"    def on_fit_start(self):\n        {MOVES}" in check_same(text, "manual")


@pytest.mark.parametrize("given", ["average = None\n", ""])
def test_one_that_a_branch_makes_is_asked_for(given):
    text = text_of(given=f"{given}if averages:\n    {GIVEN}", used="if averages: average.update(net)")
    assert f"        if self.average is not None:\n            {MOVES}" in check_same(text, "manual")


@pytest.mark.parametrize(("given", "told"), [(GIVEN, False), ("average, = [Average(net)]", True)])
def test_one_that_a_list_holds_is_told_of(given, told):
    result = migrate_text(text_of(given=given))
    assert any(n.code == "PTM105" and "copy.deepcopy(model)" in n.message for n in result.attention) is told


@pytest.mark.parametrize(
    ("made", "used"),
    [("model", "average.update(net)"), ("copy.deepcopy(model)", "pass")],  # the network itself; not the Module's
)
def test_nothing_else_does(made, used):
    assert ".ema.to(" not in migrate_text(text_of(made, used=used)).text


def test_one_of_another_file_keeps_its_move():
    there = text_of()[: text_of().index("averages = True")]
    result = migrate_text(there, Options(), is_script=False)
    assert "copy.deepcopy(model).to(device).eval()" in result.text


def test_a_device_that_a_step_reads_beside_a_copy_is_none():
    text = """
import copy
import torch
from torch import nn

torch.manual_seed(0)


def train(epochs):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Linear(3, 1).to(device)
    averaged = copy.deepcopy(net)
    loader = torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=4)
    for epoch in range(epochs):
        order = torch.randperm(4, device=device)
        for x in loader:
            loss = net(x.to(device)[order]).pow(2).mean()
            net.zero_grad()
            loss.backward()
            for p in net.parameters():
                p.data.add_(p.grad.data, alpha=-0.1)
        print(epoch, loss.item(), averaged(torch.ones(1, 3, device=device)).item(), device)


train(2)
"""
    assert "trainer.fit(" in check_same(text, "manual")
