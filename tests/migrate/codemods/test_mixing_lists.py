"""Samples that meet by Python's lists, by vmap, by written places or by values of the host, by numbers."""

import pytest
from cut_steps import check_adds_up, check_split
from helpers import check_unchanged
from test_mixing_steps import batch, made, whole_and_halves

MIXED = {
    "the worst of the samples": "z = self(x)\nreturn torch.stack([r.pow(2).mean() for r in z]).max()",
    "the worst, by Python": "z = self(x)\nl = [r.pow(2).mean() for r in z]\nreturn max(l)",
    "a root among other losses": "z = self(x)\nreturn sum([F.mse_loss(z, t), F.cross_entropy(z, y).sqrt()])",
    "a soft maximum of losses": "z = self(x)\nl = torch.stack([F.mse_loss(z, t), F.cross_entropy(z, y)])\n"
    + "return l.logsumexp(0)",
    "neighbours": "z = self(x)\nreturn sum((a - b).pow(2).sum() for a, b in zip(z[:-1], z[1:]))",
    "pairs of samples": "z = self(x)\npairs = itertools.combinations(z, 2)\n"
    + "return sum((a - b).pow(2).sum() for a, b in pairs)",
    "pairs of numbers": "z = self(x)\npairs = itertools.combinations(range(len(z)), 2)\n"
    + "return torch.stack([(z[i] - z[j]).pow(2).sum().exp() for i, j in pairs]).mean()",
    "samples by class": "z = self(x)\nkinds = {}\nfor r, k in zip(z, y.tolist()):\n"
    + "    kinds.setdefault(k, []).append(r)\n"
    + "return sum(torch.stack(g).var(0, unbiased=False).sum() for g in kinds.values())",
    "samples by class, by index": "z = self(x)\nkinds = defaultdict(list)\nfor i in range(len(z)):\n"
    + "    kinds[int(y[i])].append(z[i])\n"
    + "return sum(torch.stack(g).mean(0).pow(2).sum() for g in kinds.values())",
    "views of one matrix": "z = self(x)\na, b = z.view(len(z), 1, -1), z.view(1, len(z), -1)\n"
    + "return (-(a - b).pow(2).sum(2)).logsumexp(1).mean()",
    "each against all by dots": "z = self(x)\nd = z[..., None, :] - z\nreturn (-d.pow(2).sum(-1)).exp().mean()",
    "a grid": "s = self(x)[:, 0]\na, b = torch.meshgrid(s, s, indexing='ij')\nreturn (a - b).exp().mean()",
    "a map in a map": "z = self(x)\n"
    + "d = torch.vmap(lambda a: torch.vmap(lambda b: (a - b).pow(2).sum())(z))(z)\nreturn torch.exp(-d).mean()",
    "a map of a function that reads the batch": "z = self(x)\ndef nearest(a):\n"
    + "    return (a - z).pow(2).sum(-1).max()\nnear = torch.vmap(nearest)\nreturn near(z).mean()",
    "a map over columns": "return torch.vmap(lambda c: c.var(), in_dims=1)(self(x)).mean()",
    "a map that gets all at once": "z = self(x)\n"
    + "return torch.vmap(lambda a, b: (b @ a).exp().sum(), in_dims=(0, None))(z, z).log().mean()",
    "written places": "z = self(x)\npairs = torch.tensor([[0, 1, 2], [1, 2, 3]])\n"
    + "return (z[pairs[0]] - z[pairs[1].to(z.device)]).pow(2).mean()",
    "written places, in a list": "z = self(x)\nreturn F.mse_loss(z[[0, 2]], z[[1, 3]])",
    "normalized by the batch, whatever is known": "z = self(x)\n"
    + "z = F.batch_norm(z, self.table, self.table + 1, training=True)\nreturn (z ** 3).mean()",
    "attention among the samples": "z = self(x).flatten(1)\n"
    + "return F.scaled_dot_product_attention(z, z, z).pow(2).mean()",
    "counts of the host": "z = self(x)\nseen = Counter(y.tolist())\n"
    + "w = torch.tensor([1 / (seen[i] + 1) for i in range(5)])\nreturn F.cross_entropy(z, y, weight=w)",
    "counts of an array": "z = self(x)\nw = np.bincount(y.numpy(), minlength=5) + 1\n"
    + "return F.cross_entropy(z, y, weight=torch.tensor(w / w.sum(), dtype=torch.float))",
    "what a model gives of an array": "z = self(torch.tensor(x.numpy() * 2))\nreturn z.std(0).mean()",
}
SAME = {
    "the mean of the samples": "z = self(x)\nreturn torch.stack([r.pow(2).mean() for r in z]).mean()",
    "the sum of several losses": "z = self(x)\nreturn torch.stack([F.mse_loss(z, t), F.cross_entropy(z, y)]).sum()",
    "samples beside samples": "z = self(x)\nreturn sum((a - b).pow(2).mean() for a, b in zip(z, t)) / len(z)",
    "pairs of views": "outs = [self(v) for v in views]\n"
    + "return sum(F.mse_loss(a, b) for a, b in itertools.combinations(outs, 2))",
    "views by their names": "zs, outs = [self(v) for v in views], {}\nfor k, z in zip('ab', zs):\n"
    + "    outs.setdefault(k, []).append(z)\n"
    + "return sum(o[0].pow(2).mean() for o in outs.values())",
    "an image of one channel": "p = x.view(x.size(0), 1, 6)\nz = self(p)\nreturn (z[:, 0] - t).pow(2).mean()",
    "a map of two": "return torch.vmap(lambda a, b: (a - b).pow(2).sum())(self(x), t).mean()",
    "a map with what all share": "w = self.table\nreturn torch.vmap(lambda a: (a * w).sum().exp())(self(x)).mean()",
    "a gradient of each sample": "g = torch.func.vmap(torch.func.grad(lambda a: a.pow(2).sum()))(self(x))\n"
    + "return g.pow(2).mean()",
    "written columns": "z = self(x)\nreturn F.mse_loss(z[:, [0, 2]], z[:, [1, 3]])",
    "normalized by what is known": "z = F.batch_norm(self(x), self.table, self.table + 1, training=False)\n"
    + "return (z ** 3).mean()",
    "attention in each sample": "z = self(x.view(len(x), 1, 6)).transpose(1, 2)\n"
    + "return F.scaled_dot_product_attention(z, z, z).pow(2).mean()",
    "losses in two dictionaries": "z = self(x)\nloss = F.mse_loss(z, t)\n"
    + "self.log_dict({'loss': loss} | {f'p{k}': (z > k).float().mean() for k in range(2)})\nreturn loss",
    "targets of the host": "k = torch.tensor([int(c) for c in y.tolist()])\nreturn F.cross_entropy(self(x), k)",
}


def text_of(body: str) -> str:
    imports = "import itertools\nfrom collections import Counter, defaultdict\nimport numpy as np\n"
    return imports + made(body)


@pytest.mark.parametrize("body", MIXED.values(), ids=MIXED)
def test_the_split_gives_the_loss_of_the_whole(body):
    check_split(text_of(body), batch())


@pytest.mark.parametrize("body", SAME.values(), ids=SAME)
def test_a_step_whose_parts_add_up_is_left_alone(body):
    check_adds_up(text_of(body), *whole_and_halves())


def test_a_random_order_by_index_select_is_told():
    body = "order = torch.randperm(len(x))\nreturn self(x.index_select(0, order)).mean()"
    result = check_unchanged(text_of(body), select="PTM430")
    assert "index_select" in result.attention[0].message
    check_unchanged(text_of("c = torch.randperm(6)\nreturn self(x.index_select(1, c)).mean()"), [], select="PTM430")
