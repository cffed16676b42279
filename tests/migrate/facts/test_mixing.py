"""Which operations of a step mix the samples of its batch; others give on two parts what they give on all."""

import pytest
import torch
from ptmigrate.migrate.migrate import migrate_text

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.functional import softmax as sm, cosine_similarity as cs
import ptmigrate.runtime as pl

BATCH = 0
KEEP = 1
OVER = dict(dim=0)


class Centred(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a - a.mean(0)

    @staticmethod
    def backward(ctx, g):
        return g


class Pairs(nn.Module):
    def forward(self, a, b):
        return F.cross_entropy(a @ b.t(), torch.arange(len(a), device=a.device))


class Term(nn.Module):
    def forward(self, a):
        return self.term(a)

    def term(self, a):
        return a.pow(2)


class Centring(Term):
    def term(self, a):
        return (a - a.mean(0)).pow(2)


class Scaling(Term):
    def term(self, a):
        return (a - a.mean(1, keepdim=True)).pow(2)


class Net(pl.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(5, 5)
        self.pairs = Pairs()
        self.centres = Centring()
        self.scales = Scaling()
        self.along = 0
        self.across = 1

    def scaled(self, a, dim=1):
        return a / a.norm(dim=dim, keepdim=True)

    def training_step(self, batch, batch_idx):
        x, y = batch
        z, v = self.net(x), self.net(x * 2)
"""
MIXES = """
sm(z, 0)
sm(z, BATCH)
z.mean(BATCH)
sm(z, dim=self.along)
sm(z, **OVER)
Centred.apply(z)
self.centres(z)
nn.CosineSimilarity(dim=0)(z, v)
nn.LogSoftmax(BATCH)(z)
z.amax(tuple(range(0, 2)))
z[:, 0].sort()[0]
z[:, 0].argsort()
torch.topk(z[:, 1], 2)[0]
z[:, 0].softmax(-1)
F.log_softmax(z[:, -1], dim=0)
torch.cumsum(z[:, 0], -1)
(z[:, 0] - z[:, 0, None]).abs()
torch.addmm(torch.zeros(1, device=z.device), z, z.mT)
z @ z.mT
z @ z.transpose(-2, -1)
z.flatten(1) @ v.flatten(1).mT
torch.einsum("id,jd->ij", [z, v])
z[torch.randperm(len(z)).to(z.device)]
cs(z[:, None], v[None], dim=-1)
F.cosine_similarity(z, v, dim=0)
y[:, None] == y
z.unsqueeze(1) - z
(z[:, None, :] - z[None])
y.view(-1, 1) == y
y.unsqueeze(1).eq(y.unsqueeze(0))
z[1:] - z[:-1]
z[y] * z
z.gather(0, y[:, None])
torch.zeros(5, 5).index_add_(0, y, z)
torch.bincount(y, minlength=5)
torch.dist(z, v)
torch.trapezoid(z, dim=0)
torch.cumulative_trapezoid(z, dim=0)
torch.gradient(z, dim=0)[0]
torch.fft.fft(z, dim=0).abs()
torch.fft.rfft(z, 4, 0).abs()
torch.fft.fftn(z).abs()
F.glu(z[:4], 0)
z.unfold(0, 2, 1)
z.select(0, 0)
torch.renorm(z, 2, 1, 0.1)
torch.rot90(z)
torch.block_diag(z, v)
torch.nanquantile(z, 0.5)
z.roll(1)
torch.roll(z, shifts=1)
z.flatten(1).pow(2).mean(1).topk(2)[0]
F.mse_loss(z, v, reduction="none").flatten(1).mean(1).sort()[0][:2]
F.cross_entropy(z, y, reduce=False).topk(2)[0]
self.scaled(z, 0)
self.scaled(z, dim=0)
self.pairs(z, v)
torch.cdist(z, v)
torch.cdist(z[None], v[None])
""".strip().splitlines()
MIXES_NOT = """
z[:, 0].exp()
z.roll(1, 1)
torch.roll(z, 1, dims=-1)
z[:, :2].softmax(-1)
z.unflatten(1, (1, 5))[:, 0].softmax(-1)
z[:, None][:, 0].softmax(-1)
torch.addmm(z, z, torch.eye(5, device=z.device))
sm(z, -1)
F.cosine_similarity(z, v)
cs(z, v, dim=1)
z.unsqueeze(1) @ v.unsqueeze(1).mT
z.view(-1, 5, 1) @ v.view(-1, 5, 1).mT
torch.einsum("id,id->i", [z, v])
torch.cdist(z.unsqueeze(1), v.unsqueeze(1))
y[:, None] == torch.arange(5)
z[:, :, None] * z[:, None, :]
z.unsqueeze(1) * z.unsqueeze(2)
z.unsqueeze(1) * z[:, :, None]
(z > 0).float()[:, None] * v[:, None]
z[torch.arange(len(z)), y]
z.gather(1, y[:, None])
z.index_select(1, torch.arange(3))
z[:, 1:] - z[:, :-1]
z[:, torch.randperm(5)]
z.flatten(1).topk(2)[0]
z.diff(dim=1)
torch.trapezoid(z, dim=1)
torch.gradient(z, dim=1)[0]
torch.fft.fft(z, dim=1).abs()
torch.fft.rfft(z).abs()
F.glu(z[:, :4], 1)
z.unfold(1, 2, 1)
z.select(1, 0)
torch.renorm(z, 2, 0, 0.1)
F.unfold(z[:, None, None], (1, 2))
self.scaled(z)
self.scaled(z, dim=-1)
torch.zeros(len(y), 5).scatter_(1, y[:, None], 1.0)
F.cross_entropy(z, y, reduce=False)
sm(z, KEEP)
self.scales(z)
nn.CosineSimilarity()(z, v)
nn.CosineSimilarity(1)(z, v)
nn.LogSoftmax(KEEP)(z)
z.view(-1, 5, 1).pow(2).sum(dim=tuple(range(1, z.dim() + 1)))
z.view(-1, 5, 1).pow(2).amax(list(range(1, 3)))
sm(z, dim=self.across)
sm(z, **dict(dim=1))
""".strip().splitlines()


def _text(expression: str) -> str:
    return f"{HEAD}        h = {expression}\n        return h.float().pow(2).mean()\n"


@pytest.mark.parametrize("expression", MIXES)
def test_mixes(expression):
    result = migrate_text(_text(expression), is_script=False)
    assert "training_step_end" in result.text or any(n.code == "PTM430" for n in result.attention)
    assert migrate_text(result.text, is_script=False).text == result.text


@pytest.mark.parametrize("expression", MIXES_NOT)
def test_mixes_not(expression):
    text = _text(expression)
    result = migrate_text(text, is_script=False)
    assert "training_step_end" not in result.text and not [n for n in result.attention if n.code == "PTM430"]
    made: dict = {}
    exec(text, made)
    torch.manual_seed(0)
    net = made["Net"]()
    x, y = torch.randn(8, 5), torch.randint(0, 5, (8,))

    def step(a, b):
        torch.manual_seed(1)
        return float(net.training_step((x[a:b], y[a:b]), 0).detach())

    assert step(0, 8) == pytest.approx((5 * step(0, 5) + 3 * step(5, 8)) / 8, rel=1e-4)


def test_what_is_cut_by_its_place_or_picked_is_made_behind_the_cut():
    text = f"{HEAD}        late = z[1:]\n        loss = (late - z[:-1]).mean() + sm(z, 0).mean()\n        return loss\n"
    step, end = migrate_text(text, is_script=False).text.split("def training_step_end")
    assert "late" not in step.split("def training_step")[1] and "late = z[1:]" in end


@pytest.mark.parametrize("expression", [e for e in MIXES if e.startswith("z[:, 0].") or "z[:, 1]" in e])
def test_one_column_of_a_layers_outputs_is_sure_to_be_of_the_samples(expression):
    assert "training_step_end" in migrate_text(_text(expression), is_script=False).text
