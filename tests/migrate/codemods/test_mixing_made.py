"""Losses that a table, a plain object, torch.compile or a class with layers holds, and other ways to turn an order."""

import pytest
from cut_steps import check_adds_up, check_split
from test_mixing_steps import batch, made, whole_and_halves

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
    check_split(text_of(body), batch(), exact=False)


@pytest.mark.parametrize("body", SAME.values(), ids=SAME)
def test_a_step_whose_parts_add_up_is_left_alone(body):
    check_adds_up(text_of(body), *whole_and_halves())
