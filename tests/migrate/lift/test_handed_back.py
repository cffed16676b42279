"""A loss that a function of the script hands back, or that another file has: a sum, a weighted mean, or what mixes."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

LOSSES = """\
import torch
import torch.nn.functional as F
from torch import nn

class Hardest(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part
        self.criterion = nn.CrossEntropyLoss(reduction="none")
    def forward(self, out, y):
        loss = self.criterion(out, y).view(-1)
        return loss.topk(len(y) // self.part)[0].mean()

class Sum(nn.Module):
    def forward(self, out, y):
        return F.cross_entropy(out, y, reduction="sum")

class Left(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.CrossEntropyLoss(ignore_index=0)
    def forward(self, out, y):
        return self.loss(out, y)

class Scored(Sum):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
    def forward(self, out, y):
        return F.cross_entropy(self.layer(out), y, reduction="sum")

class Mean(nn.Module):
    def forward(self, out, y):
        return F.cross_entropy(out, y)

def total(out, y, reduction="sum"):
    return F.cross_entropy(out, y, reduction=reduction)

def average(out, y):
    return F.cross_entropy(out, y, reduction="sum") / len(y)

def build(name):
    if name == "hard":
        return Hardest(4)
    return nn.CrossEntropyLoss()

def twice(loss):
    return 2 * loss

def again(out, y):
    return again(out, y)

def summed():
    return nn.CrossEntropyLoss(reduction="sum")
"""
SCRIPT = """\
import torch
from torch import nn
{head}

def main():
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(24, 5), torch.ones(24).long()), 8)
    {made}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = {loss}
            loss.backward()
            optimizer.step()

main()
"""
NET = "net = nn.Linear(5, 3)\n    "
OWN = "def make(name='x'):\n    {}\n"
SEVERAL = "net = nn.Linear(5, 3)\n    criterion = {}\n    return net, criterion"
CHOSEN = "if name == 'x':\n        loss = {}\n    else:\n        raise ValueError(name)\n    return loss"
METHOD = "class Maker:\n    def first(self):\n        return self.second()\n    def second(self):\n        return {}\n"
CALLED = "criterion(net(x), y)"
WAYS = {
    "a function": (OWN.format("return {}"), NET + "criterion = make()"),
    "one of several": (OWN.format(SEVERAL), "net, criterion = make()"),
    "a branch": (OWN.format(CHOSEN), NET + "criterion = make('x')"),
    "a choice": (OWN.format("return {} if name else None"), NET + "criterion = make()"),
    "behind another": (
        OWN.format("def other():\n        return nn.MSELoss()\n    return {}"),
        NET + "criterion = make()",
    ),
    "after others": (OWN.format("return nn.Linear(5, 3), None, {}"), "net, _, criterion = make()"),
    "one function or another": (
        "def first():\n    return {}\ndef other():\n    raise ValueError\n"
        + OWN.format("return first() if name else other()"),
        NET + "criterion = make()",
    ),
    "of a function": ("def first():\n    return {}\n" + OWN.format("return first()"), NET + "criterion = make()"),
}
KINDS = {
    "a sum": ("nn.CrossEntropyLoss(reduction='sum')", 'loss_reduction = "sum"'),
    "a sum of another file": ("Sum()", 'loss_reduction = "sum"'),
    "weights": ("nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))", "divide_batches = False"),
    "some are left out": ("Left()", "divide_batches = False"),
    "the hardest": ("Hardest(4)", "divide_batches = False"),
}
THERE = {
    "a function": ("from losses import total", "pass", "total(net(x), y)", 'loss_reduction = "sum"'),
    "of a module": ("import losses", "pass", "losses.total(net(x), y)", 'loss_reduction = "sum"'),
    "by a name": ("from losses import total", "criterion = total", CALLED, 'loss_reduction = "sum"'),
    "what it is given": (
        "from losses import twice",
        "pass",
        "twice(nn.functional.cross_entropy(net(x), y, reduction='sum'))",
        'loss_reduction = "sum"',
    ),
    "a class": ("from losses import Sum", "criterion = Sum()", CALLED, 'loss_reduction = "sum"'),
    "with weights of its own": (
        "from losses import Scored",
        "criterion = Scored()",
        CALLED,
        'loss_reduction = "sum"',
    ),
    "of a star": ("from losses import *", "pass", "total(net(x), y)", 'loss_reduction = "sum"'),
    "by another name": ("from losses import total", "criterion = total", CALLED, 'loss_reduction = "sum"'),
    "of a star, by another name": ("from losses import *", "criterion = total", CALLED, 'loss_reduction = "sum"'),
    "placed": ("from losses import Sum", "criterion = Sum().cuda()", CALLED, 'loss_reduction = "sum"'),
    "what it hands back": ("from losses import summed", "criterion = summed()", CALLED, 'loss_reduction = "sum"'),
    "that mixes": ("from losses import build", "criterion = build('hard')", CALLED, "divide_batches = False"),
    "that leaves some out": ("from losses import Left", "criterion = Left()", CALLED, "divide_batches = False"),
}
MEANS = {
    "a class": ("from losses import Mean", "criterion = Mean()", CALLED),
    "a function": ("from losses import average", "pass", "average(net(x), y)"),
    "of a star": ("from losses import *", "pass", "average(net(x), y)"),
    "by a constant": ("from losses import total", "pass", "total(net(x), y, reduction='mean')"),
    "of a function": (OWN.format("return nn.CrossEntropyLoss()"), "criterion = make()", CALLED),
    "of a function there": (
        "from torch import nn as n\ndef make():\n    return n.MSELoss()\n",
        "criterion = make()",
        CALLED,
    ),
    "itself, there": ("from losses import again", "pass", "again(net(x), y) + nn.functional.cross_entropy(net(x), y)"),
    "one with a function in it": (
        OWN.format(
            "def other():\n        return nn.CrossEntropyLoss(reduction='sum')\n    return nn.CrossEntropyLoss()"
        ),
        "criterion = make()",
        CALLED,
    ),
}
UNSHOWN = {
    "a function that is not there": ("from elsewhere import make", "criterion = make()", CALLED),
    "the last of several": (
        OWN.format("return 1, nn.CrossEntropyLoss(reduction='sum'), nn.CrossEntropyLoss()"),
        "*_, criterion = make()",
        CALLED,
    ),
    "of a star of the folder": ("from . import *", "pass", "average(net(x), y)"),
    "itself": ("def make():\n    return make()\n", "criterion = make()", CALLED),
}


def migrated(folder, head, made, loss=CALLED):
    (folder / "losses.py").write_text(LOSSES)
    (folder / "main.py").write_text(SCRIPT.format(head=head, made=made, loss=loss))
    done = {m.path.name: m for m in migrate_all(collect([folder / "main.py"]), Options())}
    assert done["main.py"].report.plan == "module"
    return done["main.py"]


@pytest.mark.parametrize("given, says", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("head, made", WAYS.values(), ids=WAYS)
def test_of_functions(tmp_path, head, made, given, says):
    m = migrated(tmp_path, "from losses import Hardest, Left, Sum\n" + head.format(given), made)
    assert says in m.result.text
    assert [n.code for n in m.report.attention if n.code == "PTM703"] == ["PTM703"] * ("divide" in says)


def test_of_a_method(tmp_path):
    m = migrated(tmp_path, METHOD.format("nn.CrossEntropyLoss(reduction='sum')"), NET + "criterion = Maker().first()")
    assert "loss_reduction" not in m.result.text  # whose object it is does not show


@pytest.mark.parametrize("head, made, loss, says", THERE.values(), ids=THERE)
def test_of_another_file(tmp_path, head, made, loss, says):
    m = migrated(tmp_path, head, NET + made, loss)
    assert says in m.result.text
    told = [n.message for n in m.report.attention if n.code == "PTM703"]
    assert len(told) == ("divide" in says) and all("losses.py" in t for t in told)


@pytest.mark.parametrize("head", ["import aside\nfrom losses import *", "from losses import *\nimport aside"])
def test_of_the_file_that_a_star_names(tmp_path, head):
    """Another has a function of that name, too."""
    (tmp_path / "aside.py").write_text("import torch\ndef total(out, y):\n    return (out - y).mean()\n")
    m = migrated(tmp_path, head, NET, "total(net(x), y)")
    assert 'loss_reduction = "sum"' in m.result.text


@pytest.mark.parametrize("head, made, loss", MEANS.values(), ids=MEANS)
def test_means(tmp_path, head, made, loss):
    m = migrated(tmp_path, head, NET + made, loss)
    assert "loss_reduction" not in m.result.text and "divide_batches" not in m.result.text


@pytest.mark.parametrize("head, made, loss", UNSHOWN.values(), ids=UNSHOWN)
def test_what_does_not_show_takes_whole_batches(tmp_path, head, made, loss):
    m = migrated(tmp_path, head, NET + made, loss)
    assert "loss_reduction" not in m.result.text and "divide_batches = False" in m.result.text


def test_two_files_that_call_each_other(tmp_path):
    (tmp_path / "others.py").write_text("import torch\nfrom main import back\ndef there(x):\n    return back(x)\n")
    head = "from others import there\ndef back(x):\n    return there(x)"
    m = migrated(tmp_path, head, NET, "there(net(x)) + nn.functional.cross_entropy(net(x), y)")
    assert "loss_reduction" not in m.result.text
