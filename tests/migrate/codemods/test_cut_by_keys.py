"""What a model gives as a dictionary: its values are of the samples, and those that are read cross the cut."""

import pytest
import torch
from cut_steps import HEAD, end, losses, step
from helpers import check, check_unchanged, migrated

TWO = """\
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.other = nn.Linear(6, 5), nn.Linear(6, 5)

    def forward(self, x):
        a, b = self.first(x), self.other(x)
        return {"a": a, "class": b, "loss": (a - b).pow(2).mean()}


"""
OTHERWISE = "self.first = nn.Linear(6, 5)\n        self.other = nn.Linear(6, 5)"
TWO_HEAD = HEAD.replace("class Net", TWO + "class Net").replace("self.encoder = nn.Linear(6, 5)", "self.net = Two()")


def test_the_values_that_are_read_cross():
    check(
        TWO_HEAD + step('x, y = batch\nout = self.net(x)\nsim = out["a"] @ out["class"].t()\nreturn sim.exp().mean()'),
        TWO_HEAD
        + step('x, y = batch\nout = self.net(x)\na = out["a"]\nout_2 = out["class"]\nreturn {"a": a, "out_2": out_2}')
        + end('a = outputs["a"]\nout_2 = outputs["out_2"]\nsim = a @ out_2.t()\nreturn sim.exp().mean()', "outputs"),
        attention=[],
        select="PTM430",
    )


@pytest.mark.parametrize(
    "body",
    [
        "out = self.net(x)\nreturn (out['a'] @ out['class'].t()).exp().mean() + out['a'].pow(2).mean()",
        "out = self.net(x)\nz = out['a']\nreturn z.std(0).mean() + F.cross_entropy(out['class'], y)",
    ],
)
@pytest.mark.parametrize("layers", ["self.first, self.other = nn.Linear(6, 5), nn.Linear(6, 5)", OTHERWISE])
def test_the_split_gives_the_loss_of_the_whole(body, layers):
    head = TWO_HEAD.replace("self.first, self.other = nn.Linear(6, 5), nn.Linear(6, 5)", layers)
    source = head + step("x, y = batch\n" + body)
    result = migrated(source, "PTM430")
    assert not result.attention
    expected, one, loss, gradients = losses(source, result.text, (torch.randn(8, 6), torch.randint(0, 5, (8,))))
    assert torch.equal(one, expected)
    torch.testing.assert_close(loss, expected)
    for a, b in gradients:
        torch.testing.assert_close(a, b)


def test_a_dictionary_in_the_batch():
    body = 'z = self(batch["inputs"]["x"])\n'
    check(
        HEAD + step(body + "return z.std(0).mean()"),
        HEAD + step(body + "return z") + end("return z.std(0).mean()", "z"),
        select="PTM430",
    )


def test_a_loss_among_the_values_does_not_cross():
    body = "x, y = batch\nout = self.net(x)\nreturn out['loss'] + out['a'].std(0).mean()"
    notes = check_unchanged(TWO_HEAD + step(body), select="PTM430").attention
    assert "`out['loss']` is needed behind the cut" in notes[0].message


@pytest.mark.parametrize(
    "body",
    [
        "out = self.net(x)\nreturn out['loss']",
        "out = self.net(x)\nloss = out['loss'] + F.cross_entropy(out['a'], y)\nself.log('l', loss)\nreturn loss",
        "out = self.net(x)\nreturn F.mse_loss(out['a'], out['class'])",
        "out = self.net(x)\nreturn out['a'].softmax(-1).mean()",
    ],
)
def test_values_of_each_sample_are_left_alone(body):
    check_unchanged(TWO_HEAD + step("x, y = batch\n" + body), [], select="PTM430")
