"""Losses that a table, a plain object, torch.compile or a class with layers holds, and other ways to turn an order."""

import pytest
import torch
from cut_steps import losses, net
from helpers import check_unchanged, migrated
from test_mixing_steps import batch, made, part

OWN = """\
LOSSES = {"nce": nce, "far": lambda a, b: (a - b).norm(dim=1).mean()}
fast = torch.compile(nce, backend="eager")


class Plain:
    def __call__(self, a, b):
        return nce(a, b, 0.5)

    def both(self, a, b):
        return self(a, b) + nce(b, a)

    def far(self, a, b):
        return (a - b).norm(dim=1).mean()


class ProjectedLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(5, 4)

    def forward(self, a, b):
        return nce(self.project(a), self.project(b))


class DistanceLoss(ProjectedLoss):
    def forward(self, a, b):
        return (self.project(a) - self.project(b)).pow(2).mean()


"""
ATTRIBUTES = """\
        self.plain = Plain()
        self.projected = ProjectedLoss()
        self.distance = DistanceLoss()
"""
PAIR = "a, b = self(views[0]), self(views[1])\n"
MIXED = {
    "of a table": PAIR + 'return LOSSES["nce"](a, b)',
    "of a plain object": PAIR + "return self.plain(a, b)",
    "a method of a plain object": PAIR + "return self.plain.both(a, b)",
    "a compiled function": PAIR + "return fast(a, b)",
    "a loss with layers": PAIR + "return self.projected(a, b)",
    "places turned by a remainder": "z = self(x)\np = (torch.arange(len(z)) + 1) % len(z)\nreturn (z * z[p]).mean()",
    "a batch of one": "v = self(x).view(1, -1, 5)\nreturn torch.bmm(v, v.transpose(1, 2)).exp().mean()",
}
SAME = {
    "of a table": PAIR + 'return LOSSES["far"](a, b)',
    "a method of a plain object": PAIR + "return self.plain.far(a, b)",
    "a loss with layers": PAIR + "return self.distance(a, b)",
    "matrices of each": "v = self(x)[:, None]\nreturn torch.bmm(v, v.transpose(1, 2)).exp().mean()",
    "a number of a sample": "n = len(x) % 1 + 1\nreturn self(x).pow(2).mean() / n",
}


def text_of(body: str) -> str:
    last = "        self.pair = lambda x: (self.encoder(x), 1)\n"
    return made(body).replace(last, last + ATTRIBUTES).replace("class Net", OWN + "class Net")


@pytest.mark.parametrize("body", MIXED.values(), ids=MIXED)
def test_the_split_gives_the_loss_of_the_whole(body):
    source = text_of(body)
    result = migrated(source, "PTM430")
    assert "training_step_end" in result.text and not result.attention, result.attention
    assert migrated(result.text, "PTM430").text == result.text
    expected, one, loss, gradients = losses(source, result.text, batch())
    torch.testing.assert_close(one, expected)
    torch.testing.assert_close(loss, expected)
    for a, b in gradients:
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("body", SAME.values(), ids=SAME)
def test_a_step_whose_parts_add_up_is_left_alone(body):
    source = text_of(body)
    check_unchanged(source, [], select="PTM430")
    torch.manual_seed(1)
    module, given = net(source), batch()
    whole = module.training_step(given, 0)
    halves = [tuple(part(v, at) for v in given) for at in (slice(0, 4), slice(4, 8))]
    torch.testing.assert_close(sum(module.training_step(half, 0) for half in halves) / 2, whole)
