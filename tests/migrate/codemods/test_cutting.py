"""What a step needs behind its cut: brought over whole, made again with all that makes it, or told of."""

import pytest
import torch
from cut_steps import HEAD, end, losses, step
from helpers import check, check_unchanged, migrated

SIM = "sim = z @ z.t()\n"
MADE = {
    "a local function": "z = self(x)\ndef sim(p, q):\n    return F.normalize(p) @ q.t()\n"
    + "return sim(z, z).logsumexp(1).mean()",
    "an import": "import math as m\nz = self(x) * m.e\n" + SIM + "return sim.mean() * m.pi",
    "a dictionary of losses": "z = self(x)\nall = {}\nall['ce'] = F.cross_entropy(z, y)\n"
    + "all['sim'] = (z @ z.t()).pow(2).mean()\nreturn sum(all.values())",
    "a list of losses": "z = self(x)\nall = []\nall.append(F.cross_entropy(z, y))\n"
    + "all.append((z @ z.t()).pow(2).mean())\nreturn sum(all)",
    "a mask filled in place": "n = len(x)\nmask = torch.zeros(n, n)\nmask.fill_diagonal_(1)\nmask[0, :] = 1\n"
    + "z = self(x)\n" + SIM + "return (sim * mask).exp().mean()",
    "classes filled in place": "z = self(x)\nhot = torch.zeros(len(x), 5)\nhot.scatter_(1, y[:, None], 1.0)\n"
    + SIM + "return ((hot @ hot.t()) * sim).mean()",
    "a loss added up": "z = self(x)\nloss = 0\nloss += F.cross_entropy(z, y)\n" + SIM
    + "loss += sim.pow(2).mean()\nreturn loss",
    "a branch": "z = self(x)\nif self.training:\n    w = 1.0\nelse:\n    w = 2.0\n" + SIM
    + "return w * sim.pow(2).mean()",
    "an annotation": "z: torch.Tensor = self(x)\nn: int = len(x)\n" + SIM + "return sim.exp().sum() / n",
    "an attribute of the module": "self.seen = len(x)\nz = self(x)\n" + SIM + "return sim.exp().sum() / self.seen",
    "labels of two views": "x = torch.cat([x, x * 2])\ny = torch.cat([y, y])\nz = self(x)\n"
    + "same = y[None] == y[:, None]\nreturn (z @ z.t())[same].exp().mean()",
    "views in a comprehension": "views = [x, x * 2]\nz = torch.cat([F.normalize(self(v)) for v in views])\n"
    + SIM + "return sim.logsumexp(1).mean()",
    "a name of a comprehension": "zs = [self(v) for v in (x, x * 2)]\nsim = zs[0] @ zs[1].t()\n"
    + "return sim.mean() + sum(v.pow(2).mean() for v in zs)",
    "normalize draws nothing": "w = F.normalize(self.encoder.weight)\nz = self(x)\nc = z - z.mean(0)\n"
    + "return (c @ w).exp().mean()",
}  # fmt: skip


@pytest.mark.parametrize("body", MADE.values(), ids=MADE)
def test_all_that_makes_a_name_goes_with_it(body):
    source = HEAD + step("x, y = batch\n" + body)
    result = migrated(source, "PTM430")
    assert "training_step_end" in result.text and not result.attention, result.attention
    assert migrated(result.text, "PTM430").text == result.text
    expected, one, loss, gradients = losses(source, result.text, (torch.randn(8, 6), torch.randint(0, 5, (8,))))
    assert torch.equal(one, expected), "on one device, bit for bit"
    torch.testing.assert_close(loss, expected)
    for a, b in gradients:
        torch.testing.assert_close(a, b)


def test_a_dictionary_that_is_filled_goes_behind_the_cut():
    filled = "losses = {}\nlosses['ce'] = self.criterion(z, y)\n"
    rest = "losses['c'] = torch.cdist(z, z).mean()\nreturn sum(losses.values())"
    check(
        HEAD + step("x, y = batch\nz = self(x)\n" + filled + rest),
        HEAD
        + step('x, y = batch\nz = self(x)\nreturn {"y": y, "z": z}')
        + end('y = outputs["y"]\nz = outputs["z"]\n' + filled + rest, "outputs"),
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("z = self(x)\nfor v in z.unbind(1):\n    n = v.shape\nreturn z.softmax(0).sum() / n[0]", "more than assign"),
        ("w = torch.rand(5)\nz = self(x)\nreturn (z.softmax(0) * w).sum()", "random"),
        ("w = numpy.random.beta(1, 1)\nz = self(x)\nreturn (z.softmax(0) * w).sum()", "random"),
        ("n = len(x)\nm = n * 2\nn = 3\nz = self(x)\nreturn z.softmax(0).sum() / m", None),
        ("n = len(x)\nz = self(x)\nn, k = z.shape\nreturn z.softmax(0).sum() / n", None),
        ("z = self(x)\nw = z.shape[1]\nz = z * w\nreturn z.softmax(0).sum() / w", "`z` is another value by then"),
    ],
)  # fmt: skip
def test_what_is_made_again_finds_what_it_reads(body, why):
    source = "import numpy\n" + HEAD + step("x, y = batch\n" + body)
    result = migrated(source, "PTM430")
    if why is None:
        batch = (torch.randn(8, 6), torch.randint(0, 5, (8,)))
        expected, one, loss, _ = losses(source, result.text, batch)
        assert torch.equal(one, expected)
        torch.testing.assert_close(loss, expected)
    else:
        assert result.text == source and why in result.attention[0].message, result.attention


SHAPES = "return self.encoder(x), self.encoder(x).pow(2).mean()"


def test_a_number_beside_the_values_of_the_samples_is_told():
    head = HEAD.replace("return self.encoder(x)", SHAPES)
    notes = check_unchanged(head + step("z, r = self(batch)\nreturn z.softmax(0).sum() + r"), select="PTM430").attention
    assert "`r` cannot cross" in notes[0].message
    check(
        head + step("z, r = self(batch)\nreturn z.softmax(0).sum()"),
        head + step("z, r = self(batch)\nreturn z") + end("return z.softmax(0).sum()", "z"),
    )


@pytest.mark.parametrize(
    "body",
    [
        "a, *rest = batch\nz = self(a)\nreturn (z @ self(rest[0]).t()).logsumexp(1).mean()",
        "x, y = batch\nz = self(x)\ndef sim(p):\n    return p @ z.t()\nreturn sim(z).logsumexp(1).mean()",
        "x, y = batch\nz = self(x)\nreturn self.spread(z)",
    ],
)
def test_what_mixes_is_found(body):
    static = "    @staticmethod\n    def spread(z):\n        return torch.cov(z.t()).pow(2).sum()\n\n"
    assert "training_step_end" in migrated(HEAD + static + step(body), "PTM430").text
