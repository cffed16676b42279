"""A loss of another file that mixes the samples of a batch: batches stay whole, and the report says why."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

SCRIPT = """\
import torch
from torch import nn
{head}
net = nn.Linear(2, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
weights = torch.eye(3)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 2), torch.zeros(8, dtype=int)), 4)
for epoch in range(2):
    for x, y in loader:
        out = net(x)
        loss = {loss}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
LOSSES = """\
import torch
from torch import nn
import torch.nn.functional as F
from kernels import products

def pairs(a, b):
    z = torch.cat((a, b), 0)
    return torch.exp(-torch.mm(z, z.t())).mean()

def apart(a):
    return products(a).logsumexp(1).mean()

def weighed(a, w):
    return (a @ w.t()).mean()

def plain(a, y):
    return F.cross_entropy(a, y)

def accuracy(a, y):
    return (a.argmax(1)[None] == y[:, None]).float().mean()

class Spread(nn.Module):
    def forward(self, a):
        return (a - a.mean(0)).abs().mean()

class Kept(nn.Module):
    def forward(self, a, y):
        return F.nll_loss(a.log_softmax(1), y)
"""
KERNELS = "import torch\n\ndef products(z):\n    return z @ z.t()\n\ndef plain(z):\n    return z @ z.t()\n"
MIXES = {
    "a function": ("from losses import pairs", "pairs(out, out * 2)", "torch.mm(z, z.t())"),
    "of a module": ("import losses as own", "own.pairs(out, b=out * 2)", "torch.mm(z, z.t())"),
    "a function, by a star": ("from losses import *", "pairs(out, out * 2)", "torch.mm(z, z.t())"),
    "a function, by another name": ("from losses import pairs as p", "p(out, out * 2)", "torch.mm(z, z.t())"),
    "a class, by a star": ("from losses import *\nspread = Spread()", "spread(out)", "a.mean(0)"),
    "of a third file": ("from losses import apart", "apart(out)", "products(a)"),
    "a class": ("from losses import Spread\nspread = Spread()", "spread(out)", "a.mean(0)"),
    "by the name of its file": ("import losses\nlosses = losses.Spread()", "losses(out)", "a.mean(0)"),
    "by the name that it came by": ("import losses as lost\nlost = lost.Spread()", "lost(out)", "a.mean(0)"),
    "a class, made where it is called": ("import losses", "losses.Spread()(out)", "a.mean(0)"),
    "the one of two with its name": ("import kernels", "kernels.plain(out).mean()", "z @ z.t()"),
}
MIXES_NOT = {
    "a mean": ("from losses import plain", "plain(out, y)"),
    "a mean, by a star": ("from losses import *", "plain(out, y)"),
    "a mean of a class": ("from losses import Kept\nkept = Kept()", "kept(out, y)"),
    "a mean, by the name of its file": ("import losses\nlosses = losses.Kept()", "losses(out, y)"),
    "a product with weights": ("from losses import weighed", "weighed(out, weights)"),
    "of what is none of the batch": ("from losses import pairs", "plain(out, y) + pairs(weights, weights)".replace(
        "plain(out, y)", "nn.functional.cross_entropy(out, y)")),
    "what no gradient comes from": ("from losses import accuracy", "nn.functional.cross_entropy(out, y)\n"
        "        hits = accuracy(out, y)"),
}  # fmt: skip


def migrated(folder, head, loss):
    (folder / "losses.py").write_text(LOSSES)
    (folder / "kernels.py").write_text(KERNELS)
    (folder / "main.py").write_text(SCRIPT.format(head=head, loss=loss))
    done = {m.path.name: m for m in migrate_all(collect([folder / "main.py"]), Options())}
    return done["main.py"]


@pytest.mark.parametrize("head, loss, operation", MIXES.values(), ids=MIXES)
def test_batches_stay_whole(tmp_path, head, loss, operation):
    m = migrated(tmp_path, head, loss)
    assert m.report.plan == "module" and "divide_batches = False" in m.result.text
    (told,) = [n.message for n in m.report.attention if n.code == "PTM703"]
    assert f"mixes the samples of a batch: `{operation}" in told and told.endswith(".py")


@pytest.mark.parametrize("head, loss", MIXES_NOT.values(), ids=MIXES_NOT)
def test_batches_are_divided(tmp_path, head, loss):
    m = migrated(tmp_path, head, loss)
    assert m.report.plan == "module" and "divide_batches" not in m.result.text


@pytest.mark.parametrize(
    "head, loss", [("from .losses import pairs", "pairs"), ("from . import losses", "losses.pairs")]
)
def test_relative_imports_are_followed(tmp_path, head, loss):
    (tmp_path / "__init__.py").touch()
    m = migrated(tmp_path, head, f"{loss}(out, out * 2)")
    (told,) = [n.message for n in m.report.attention if n.code == "PTM703"]
    assert "torch.mm(z, z.t())" in told


def test_what_the_loss_is_before_another_file_has_it_is_not_of_that_file(tmp_path):
    """The mean of some samples comes from the script, and the short file only gives it back."""
    (tmp_path / "util.py").write_text("def shown(t):\n    return t.clone()\n")
    loss = "nn.functional.cross_entropy(out[y > 0], y[y > 0])\n        print(shown(loss))"
    text = SCRIPT.format(head="from util import shown", loss=loss)
    (tmp_path / "train.py").write_text(text)
    m = migrate_all(collect([tmp_path / "train.py"]), Options())[0]
    assert m.report.plan == "module" and not any(n.code == "PTM701" for n in m.report.attention)
    assert not any("util.py" in n.message for n in m.report.attention)


BANK = """\
import torch
from torch import nn
from torch.autograd import Function

class Score(Function):
    @staticmethod
    def forward(ctx, x, y, memory, rate):
        ctx.save_for_backward(x, memory, y)
        ctx.rate = rate
        return x @ memory.t()
    @staticmethod
    def backward(ctx, grad):
        x, memory, y = ctx.saved_tensors
        given = grad @ memory
        new = memory.index_select(0, y).mul_(ctx.rate)
        new.add_(x * (1 - ctx.rate))
        memory.index_copy_(0, y, new / new.norm(dim=1, keepdim=True))
        return given, None, None, None

class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("memory", torch.rand(3, 3))
    def forward(self, x, y):
        return Score.apply(x, y, self.memory, 0.5)

class Other(nn.Module):
    def forward(self, x, y):
        return x
"""
FILLS = "        memory.index_copy_(0, y, new / new.norm(dim=1, keepdim=True))\n"
IN_FORWARD = ("        return x @ memory.t()\n", "        memory[y] = x.detach()\n        return x @ memory.t()\n")
LATE = ("        ctx.rate = rate\n", "        ctx.rate = rate\n        ctx.memory = memory\n")
OF_CONTEXT = "        for z, i in zip(x, y):\n            ctx.memory[i] = z\n"
SELF = ("ctx", "self")
ONE = "from bank import Bank\nbank = Bank()"
EITHER = "import sys\nfrom bank import Bank, Other\nif len(sys.argv) > 1:\n    bank = Bank()\nelse:\n    bank = Other()"


def with_bank(folder, edits, head):
    text = BANK
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "bank.py").write_text(text)
    return migrated(folder, head, "nn.functional.cross_entropy(bank(out, y), y)")


@pytest.mark.parametrize(
    ("edits", "head"),
    [
        ([], ONE),
        ([], EITHER),
        ([SELF], ONE),
        ([IN_FORWARD, (FILLS, "")], ONE),
        ([LATE, (FILLS, OF_CONTEXT)], ONE),
        ([("return Score.apply(", "score = Score.apply\n        return score("), SELF], ONE),
        ([("return x @ memory", "return (x - x.mean(0)) @ memory"), (FILLS, "")], ONE),
        ([(FILLS, "        memory.data.mul_(0.5).add_(new.mean(0))\n")], ONE),
    ],
    ids=[
        "backward",
        "one of two",
        "the context is self",
        "forward",
        "of the context",
        "a name for it",
        "of others",
        "in place",
    ],
)
def test_a_function_of_autograd_that_fills_a_buffer(tmp_path, edits, head):
    """Each process had in its memory what its own part of the batches left there."""
    m = with_bank(tmp_path, edits, head)
    assert "divide_batches = False" in m.result.text
    assert any("Bank.forward() of bank.py" in n.message for n in m.report.attention if n.code == "PTM703")


@pytest.mark.parametrize(
    "edits",
    [
        [(FILLS, "")],
        [(FILLS, "        memory.index_copy_(0, torch.arange(3), torch.ones(3, 3))\n")],
        [(FILLS, "        memory.index_select(0, y).add_(new)\n")],
        [(FILLS, "        memory = new\n")],
        [(FILLS, "        weight = grad.t() @ x\n")],
        [("(Function)", "(object)")],
    ],
    ids=["reads it", "of nothing", "a copy", "a name anew", "a sum for the weights", "no Function"],
)
def test_a_function_of_autograd_that_fills_none(tmp_path, edits):
    m = with_bank(tmp_path, edits, ONE)
    assert "divide_batches" not in m.result.text


JOINED = """\
import torch
from torch import nn

class Unit(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        return self.conv(x)

class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Unit(), Unit()

    def forward(self, x):
        outputs = [self.a(x), self.b(x)]
        return torch.cat(outputs, 1)

class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Branches()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
BLOCKS        x = x.view(x.size(0), -1)
        return self.head(x)
"""


def test_a_network_of_joined_branches_is_followed_once(tmp_path):
    """What a list of them held stayed with the tensor that they were joined to: twice as much at each block."""
    (tmp_path / "losses.py").write_text(JOINED.replace("BLOCKS", "        x = self.block(x)\n" * 30))
    net = "net = losses.Deep()\noptimizer"
    text = SCRIPT.format(head="import losses", loss="nn.functional.cross_entropy(out, y)")
    (tmp_path / "train.py").write_text(text.replace("net = nn.Linear(2, 3)\noptimizer", net))
    done = {m.path.name: m.result for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert done["train.py"].plan == "module" and not done["train.py"].attention
