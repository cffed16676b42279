"""Which steps mix their samples and which do not, by numbers: the mean of the parts' losses against the whole's."""

import pytest
import torch
from cut_steps import HEAD, check_adds_up, check_split, step
from helpers import check_unchanged, migrated

OWN = """\
def nce(a, b, t=1.0):
    return F.cross_entropy(a @ b.t() / t, torch.arange(len(a)))


def summed(z, *others):
    return sum((z @ o.t()).exp().mean() for o in others)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = nn.Parameter(torch.ones([]))

    @staticmethod
    def near(a, b):
        return a @ b.t()

    @staticmethod
    def apart(a, b):
        return (a - b).norm(dim=1)

    def forward(self, z):
        return (z @ z.t() * self.t).exp().mean()


class Pairs(nn.Module):
    def forward(self, z):
        return torch.pdist(z).exp().mean()


"""
MIXED = {
    "the root of a mean": "return torch.sqrt(F.mse_loss(self(x), t))",
    "the root of a mean, by hand": "mse = ((self(x) - t) ** 2).mean()\nloss = mse ** 0.5\nreturn {'loss': loss}",
    "the logarithm of a mean": "z = self(x)\nreturn -(z.mean() - torch.log(torch.exp(z).mean()))",
    "the halves by slices": "z = self(x)\nn = len(z) // 2\nreturn F.mse_loss(z[:n], z[n:])",
    "a loss over some": "z = self(x)\nm = z.max(1).values > 0.2\nreturn F.cross_entropy(z[m], y[m])",
    "the numbers of the samples, turned": "z = self(x)\ni = torch.arange(len(z)).flip(0)\nreturn F.mse_loss(z, t[i])",
    "the numbers from behind": "z = self(x)\ni = torch.arange(x.size(0) - 1, -1, -1)\nreturn (z * z[i]).mean()",
    "pairs by their numbers": "z = self(x)\ni, j = torch.triu_indices(len(z), len(z), 1)\n"
    + "return (z[i] - z[j]).pow(2).sum(1).exp().mean()",
    "a contraction with dots": "z = self(x)\nreturn torch.einsum('i...,j...->ij', z, t).softmax(1).pow(2).mean()",
    "a static method by its class": "return Scaled.near(self(x), t).exp().mean()",
    "samples in the last dimension": "z = self(x)[:, None].permute(1, 2, 0)\nreturn z.softmax(-1).pow(2).mean()",
    "neighbours by two": "z = self(x)\nv = z.view(-1, 2, 5)\nreturn F.mse_loss(v[:, 0], v[:, 1])",
    "neighbours by their size": "z = self(x)\nb, d = z.shape\na, c = z.reshape(-1, 2, d).unbind(1)\n"
    + "return F.mse_loss(a, c)",
    "neighbours by their number": "z = self(x)\nv = z.view(len(z) // 2, 2, 5)\nreturn F.mse_loss(v[:, 0], v[:, 1])",
    "the halves of a batch": "v = self(x).view(2, -1, 5)\nreturn F.mse_loss(v[0], v[1])",
    "the first of a batch": "return self(x)[:1].pow(2).mean().sqrt() + self(x).std(0).mean()",
    "pairs by copies": "z = self(x)\nn = len(z)\na = z.unsqueeze(1).expand(n, n, 5)\n"
    + "b = z.unsqueeze(0).expand(n, n, 5)\n"
    + "return (a - b).pow(2).sum(-1).exp().mean()",
    "pairs by repeated rows": "z = self(x)\nn = len(z)\na = z.repeat_interleave(n, 0)\n"
    + "return (a - z.repeat(n, 1)).pow(2).sum(1).exp().mean()",
    "places from behind": "z = self(x)\nback = list(range(len(z)))[::-1]\nreturn (z * z[back]).mean()",
    "a softmax in a row of layers": "return self.rows(self(x)).pow(2).mean()",
    "the last state of a series": "_, h = self.gru(x[:, None])\nz = torch.cat([h[-2], h[-1]], 1)\n"
    + "return z.std(0).mean()",
    "one of two criteria": "loss = self.weighed if self.training else self.criterion\nreturn loss(self(x), y)",
    "a criterion by its key": "return self.losses['ce'](self(x), y)",
    "a criterion that was chosen": "return self.chosen(self(x), y)",
    "some of the arguments of a loss": "return self.weighing(self(x), y)",
    "losses by their names": "losses = {}\nlosses['ce'] = self.weighed(self(x), y)\nreturn sum(losses.values())",
    "a mean over the weights of classes": "loss = F.cross_entropy(self(x), y, weight=self.table + 1)\nreturn loss",
    "a mean over the targets that count": "return F.nll_loss(self(x).log_softmax(1), y, ignore_index=1)",
    "a criterion with weights": "return {'loss': 0.5 * self.weighed(self(x), y)}",
    "a mean over some": "l = F.cross_entropy(self(x), y, reduction='none')\nreturn l[y > 1].mean()",
    "the order of another": "s = self(x)[:, 0]\norder = torch.argsort(y.float() + s, descending=True)\ns = s[order]\n"
    + "return (s.exp().cumsum(0).log() - s).mean()",
    "one with another in a loop": "z = self(x)\nloss = 0\nfor i in range(len(z)):\n    for j in range(len(z)):\n"
    + "        loss = loss + (z[i] * z[j]).sum().exp()\nreturn loss / len(z)",
    "a loss of one value": "z = self(x)\nreturn F.mse_loss(z, t) + self.pairs(z)",
    "normalized by the batch": "z = F.batch_norm(self(x), None, None, training=True)\nreturn (z ** 3).mean()",
    "the root of a sum": "return self(x).norm()",
    "rows and columns": "q = self(x).exp()\nw = q ** 2 / q.sum(0)\nw = (w.t() / w.sum(1)).t()\n"
    + "return F.kl_div(q.log(), w)",
    "the others by their place": "a, b = self(views[0]), self(views[1])\nn = x.size(0)\n"
    + "labels = torch.arange(n).to(x.device)\n"
    + "return F.cross_entropy(a @ b.mT / 0.5, labels)",
    "the exponential of a contraction": "z = self(x)\nreturn torch.exp(torch.einsum('bd,bd->', z, z) / 100)",
    "a function that an attribute holds": "return self.nce(self(views[0]), self(views[1]))",
    "a function with some of its arguments": "return self.warm(self(views[0]), self(views[1]))",
    "a lambda": "near = lambda a, b: a @ b.t()\nreturn near(self(x), self(x)).exp().mean()",
    "any number of arguments": "return summed(self(x), self(views[0]), self(views[1]))",
    "a module of torch by a name": "cos = nn.CosineSimilarity(dim=-1)\nz = self(x)\n"
    + "return cos(z.unsqueeze(1), z.unsqueeze(0)).exp().mean()",
    "a loss with a parameter": "z = self(x)\nreturn self.scaled(z)",
    "two tuples of a batch": "z = F.normalize(self(torch.cat([views[0], views[1]])), dim=1)\n"
    + "return (z @ z.t()).logsumexp(1).mean()",
    "a prediction that is an object": "out = self(x)\nout = SimpleNamespace(logits=out)\n"
    + "return (out.logits @ out.logits.t()).logsumexp(1).mean()",
}
SAME = {
    "an epoch's perplexity": "loss = F.cross_entropy(self(x), y)\nself.log('ppl', torch.exp(loss))\nreturn loss",
    "a contraction with dots of each sample": "return torch.einsum('...d,...d->...', self(x), t).mean()",
    "a state of each series": "o, h = self.gru(x[:, None])\nz = h.transpose(0, 1).flatten(1)\n"
    + "return z.softmax(1).pow(2).mean() + o.softmax(-1).pow(2).mean()",
    "packed series": "n = torch.full((len(x),), 1)\n"
    + "p = nn.utils.rnn.pack_padded_sequence(x[:, None], n, batch_first=True)\n"
    + "_, h = self.gru(p)\nreturn h[-1].pow(2).mean()",
    "rows that were repeated": "z = self(x.repeat_interleave(2, dim=0)).view(-1, 2, 5)\nreturn z.mean(1).pow(2).mean()",
    "a softmax of classes in a row of layers": "return self.columns(self(x)).pow(2).mean()",
    "a static method of each sample": "return Scaled.apart(self(x), t).mean()",
    "time in the last dimension": "z = self(x)[:, None].permute(0, 2, 1)\nreturn z.softmax(1).pow(2).mean()",
    "heads of one sample": "v = self(x)[:, :4].reshape(-1, 2, 2)\nreturn v.softmax(-1).pow(2).mean()",
    "parts of a sample put together again": "p = x.view(len(x), 3, 2)\nb, n, d = p.shape\n"
    + "q = p.repeat(1, 1, 3).view(-1, 6)\n"
    + "z = self(q).view(-1, n, 5)\nreturn (z[:, 0] - z[:, 1]).pow(2).mean()",
    "parts that were flattened": "p = x.view(len(x), 3, 2).repeat(1, 1, 3)\nz = self(p.flatten(0, 1))\n"
    + "return z.view(-1, 3, z.size(-1)).std(1).mean()",
    "two batches one after another": "z = self(torch.cat([views[0], views[1]]))\na, b = z.view(2, -1, 5)\n"
    + "return F.mse_loss(a, b)",
    "rows by the shape of what is given": "p = x.view(len(x), 1, 6)\nb, n, d = p.shape\nz = self(p)\n"
    + "return (z @ z.mT).mean() + torch.cdist(z, z).mean() + z.softmax(-2).mean()",
    "a weighed loss that is only logged": "z = self(x)\nself.log('w', self.weighed(z, y))\n"
    + "return F.cross_entropy(z, y)",
    "weights and a mean over the samples": "w = self.table\n"
    + "return F.cross_entropy(self(x), y, weight=w, reduction='none').mean()",
    "no weights": "return F.cross_entropy(self(x), y, weight=None, label_smoothing=0.1)",
    "weights of binary targets": "w = self.table\n"
    + "return F.binary_cross_entropy_with_logits(self(x), t.sigmoid(), pos_weight=w)",
    "a gradient penalty": "x = x.clone().requires_grad_(True)\nd = self(x).sum(1)\n"
    + "g = torch.autograd.grad(d.sum(), x, create_graph=True)[0]\n"
    + "return d.mean() + ((g.view(x.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()",
    "distances of one sample's": "z = self(x)\nd = torch.cdist(x[:, None], x[:, None]).mean((1, 2))\n"
    + "return (d + z.mean(1)).mean()",
    "points of one sample": "p = x.view(len(x), 3, 2)\nd = torch.cdist(p, p)\n"
    + "return (self(x).mean(1) + d.min(dim=2).values.mean(1)).mean()",
    "points of one sample, by hand": "p = x.view(len(x), 3, 2)\nd = (p.unsqueeze(2) - p.unsqueeze(1)).norm(dim=-1)\n"
    + "return self(x).mean() + d.mean()",
    "points as their shape shows": "p = self.points(x)\nb, n, c = p.shape\nd = torch.cdist(p, p)\n"
    + "return self(x).mean() + d.mean()",
    "smoothed labels": "lp = F.log_softmax(self(x), dim=-1)\n"
    + "nll = -lp.gather(dim=-1, index=y.unsqueeze(1)).squeeze(1)\nreturn (0.9 * nll - 0.1 * lp.mean(dim=-1)).mean()",
    "each view with each": "outs = [self(v) for v in views]\nloss = 0\nfor i, a in enumerate(outs):\n"
    + "    for j, b in enumerate(outs):\n        if i != j:\n"
    + "            loss = loss - F.cosine_similarity(a, b.detach()).mean()\nreturn loss",
    "the k best, turned": "z = self(x)\npred = z.topk(2, 1)[1].t()\ncorrect = pred.eq(y.view(1, -1).expand_as(pred))\n"
    + "self.log('acc', correct[:1].float().sum(0).mean())\nreturn F.cross_entropy(z, y)",
    "an image's last two": "i = x.view(-1, 1, 2, 3)\nm = self.images(i).mean((-2, -1))\n"
    + "return self(x).mean() + m.mean()",
    "each sample by its number": "z = self(x)\nloss = 0\nfor i in range(len(z)):\n"
    + "    loss = loss + F.cross_entropy(z[i:i + 1], y[i:i + 1]) + (z[i] - t[i]).abs().mean()\nreturn loss / len(z)",
    "what a module gives as a tuple": "out = self.pair(x)\nh = torch.sigmoid(out[0])\n"
    + "return ((h - t) ** 2).mean() + self(x).mean()",
    "a square of a root": "z = self(x)\nreturn F.mse_loss(z, t) + (z.norm(2).pow(2) + z.norm(p=1)) / len(z)",
    "numbers that a table has": "w = self.table.gather(0, y).reshape(len(y), 1)\nreturn (self(x) * w).mean()",
    "dimensions by a name": "i = x.view(-1, 1, 2, 3).sigmoid()\ndims = (2, 3)\n"
    + "return self(x).mean() + (i.pow(2).sum(dims) / i.sum(dims)).mean()",
    "a step of time after another": "h = torch.zeros(len(x), 5)\nfor step in x.view(-1, 3, 2).transpose(0, 1):\n"
    + "    h = h * step[:, :1] + self(x)\nreturn F.cross_entropy(h, y)",
    "rows by their sums": "q = self(x).exp()\nq = (q.t() / q.sum(1)).t()\nreturn F.nll_loss(q.log(), y)",
    "attention by its last two": "q = self(views[0])[:, None]\nk = self(views[1])[:, None]\n"
    + "a = (q @ k.mT).softmax(-1)\n"
    + "return F.cross_entropy((a @ k)[:, 0], y)",
    "a function of each sample that an attribute holds": "return self.far(self(views[0]), self(views[1])).mean()",
    "a layer of series": "h = self.conv(self.points(x))\n"
    + "return (h @ h.mT).mean() + torch.cdist(h, h).mean() + F.cross_entropy(self(x), y)",
    "by keywords": "z = self(x).unsqueeze(dim=1)\n"
    + "return F.cross_entropy(z.transpose(dim0=1, dim1=2).squeeze(dim=2), y)",
}  # fmt: skip
ATTRIBUTES = """\
        self.pairs = Pairs()
        self.conv = nn.Conv1d(3, 4, 1)
        self.gru = nn.GRU(6, 5, batch_first=True, bidirectional=True)
        self.rows = nn.Sequential(nn.ReLU(), nn.Softmax(dim=0))
        self.columns = nn.Sequential(nn.ReLU(), nn.Softmax(dim=1))
        self.losses = nn.ModuleDict({"ce": nn.CrossEntropyLoss(ignore_index=0)})
        self.chosen = nn.CrossEntropyLoss(ignore_index=0) if self.training else nn.CrossEntropyLoss()
        self.weighing = partial(F.cross_entropy, ignore_index=0)
        self.weighed = nn.CrossEntropyLoss(torch.arange(1.0, 6.0))
        self.nce = nce
        self.warm = partial(nce, t=0.5)
        self.far = lambda a, b: (a - b).norm(dim=1)
        self.scaled = Scaled()
        self.points = lambda x: x.view(len(x), 3, 2)
        self.images = lambda x: x
        self.register_buffer("table", torch.linspace(0, 1, 5))
        self.pair = lambda x: (self.encoder(x), 1)
"""


def made(body: str) -> str:
    imports = "import torch\nfrom functools import partial\nfrom types import SimpleNamespace\n"
    head = HEAD.replace("import torch\n", imports, 1).replace("\n    def forward", ATTRIBUTES + "\n    def forward")
    return head.replace("class Net", OWN + "class Net") + step("x, y, t, views = batch\n" + body)


def batch(n: int = 8) -> tuple:
    torch.manual_seed(2)
    x = torch.randn(n, 6)
    return x, torch.randint(0, 5, (n,)), torch.randn(n, 5), (x, torch.randn(n, 6))


def whole_and_halves():
    given = batch()
    return given, [tuple(part(v, at) for v in given) for at in (slice(0, 4), slice(4, 8))]


@pytest.mark.parametrize("body", MIXED.values(), ids=MIXED)
def test_the_split_gives_the_loss_of_the_whole(body):
    check_split(made(body), batch())


@pytest.mark.parametrize("body", SAME.values(), ids=SAME)
def test_a_step_whose_parts_add_up_is_left_alone(body):
    check_adds_up(made(body), *whole_and_halves())


def part(value, at: slice):
    return tuple(v[at] for v in value) if isinstance(value, tuple) else value[at]


@pytest.mark.parametrize("of", ["torch.linalg.svdvals(z)", "torch.linalg.matrix_norm(z, 'nuc')"])
def test_a_decomposition_of_the_samples_by_its_dimensions(of):
    body = f"{{}}\ns = {of}\nreturn s.max()"
    assert "training_step_end" in migrated(made(body.format("z = self(x).flatten(1)")), "PTM430").text
    check_unchanged(made(body.format("z = self(x).view(-1, 5, 1)").replace("s.max()", "s.mean()")), [], "PTM430")
    notes = check_unchanged(made(body.format("z = self(x)")), select="PTM430").attention
    assert len(notes) == 1 and "may mix" in notes[0].message, "and what follows is not cut behind it"
