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
    "a class, made where it is called": ("import losses", "losses.Spread()(out)", "a.mean(0)"),
    "the one of two with its name": ("import kernels", "kernels.plain(out).mean()", "z @ z.t()"),
}
MIXES_NOT = {
    "a mean": ("from losses import plain", "plain(out, y)"),
    "a mean, by a star": ("from losses import *", "plain(out, y)"),
    "a mean of a class": ("from losses import Kept\nkept = Kept()", "kept(out, y)"),
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
