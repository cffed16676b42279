"""Losses that a loop, a list, a dictionary or `map` hands out, and functions of the step itself, by numbers."""

import pytest
from cut_steps import check_adds_up, check_split
from helpers import check_unchanged
from test_mixing_steps import batch, made, whole_and_halves

OWN = """\
class Alike(nn.Module):
    def forward(self, z, y):
        return (z @ z.t()).exp().mean()


class Apart(nn.Module):
    def forward(self, z, y):
        return F.cross_entropy(z * 2, y)


def far(z, y):
    return torch.cdist(z, z).exp().mean()


class Net"""
HELD = """\
        self.mixed = nn.ModuleList([nn.CrossEntropyLoss(), Alike()])
        self.plain = nn.ModuleList([nn.CrossEntropyLoss(), Apart()])
        self.functions = [F.cross_entropy, far]
        self.plain_functions = [F.cross_entropy, lambda z, y: F.cross_entropy(z * 2, y)]
        self.by_name = nn.ModuleDict({"ce": nn.CrossEntropyLoss(), "alike": Alike()})
        self.weighed_ones = {"ce": (nn.CrossEntropyLoss(), 1.0), "alike": (Alike(), 0.5)}
        self.plain_ones = {"ce": (nn.CrossEntropyLoss(), 1.0), "apart": (Apart(), 0.5)}
        self.put_in = []
        self.put_in.append(Alike())
"""
EACH = "z = self(x)\nloss = 0\nfor {}:\n    loss = loss + {}\nreturn loss"
MIXED = {
    "a list of modules": EACH.format("l in self.mixed", "l(z, y)"),
    "a generator": "z = self(x)\nreturn sum(l(z, y) for l in self.mixed)",
    "a list of functions": "z = self(x)\nreturn sum([f(z, y) for f in self.functions])",
    "one by its number": "z = self(x)\nreturn self.mixed[1](z, y)",
    "the last": "z = self(x)\nreturn self.mixed[-1](z, y)",
    "names and losses": EACH.format("k, l in self.by_name.items()", "l(z, y)"),
    "the values of a dictionary": "z = self(x)\nreturn sum(l(z, y) for l in self.by_name.values())",
    "a dictionary of a dictionary": "z = self(x)\nlosses = {k: l(z, y) for k, l in self.by_name.items()}\n"
    + "return sum(losses.values())",
    "with their weights": EACH.format("k, (l, w) in self.weighed_ones.items()", "w * l(z, y)"),
    "beside their weights": EACH.format("l, w in zip(self.mixed, [1.0, 0.1])", "w * l(z, y)"),
    "with their numbers": EACH.format("i, l in enumerate(self.mixed)", "l(z, y) / (i + 1)"),
    "a tuple in the step": EACH.format("f in (F.cross_entropy, far)", "f(z, y)"),
    "two lists": EACH.format("f in [F.cross_entropy] + self.functions", "f(z, y)"),
    "what was put into a list": EACH.format("l in self.put_in", "l(z, y)"),
    "one sample with the next": "import functools\nz = self(x)\nreturn functools.reduce(torch.maximum, z).sum()",
    "a map": "z = self(x)\nreturn sum(map(lambda o: (z @ o.t()).exp().mean(), [z, z * 2]))",
    "a map over losses": "z = self(x)\nreturn sum(map(lambda l: l(z, y), self.mixed))",
    "a map of a function": "z = self(x)\nreturn sum(map(far, [z, z * 2], [y, y]))",
    "a map of pairs": "import itertools\nz = self(x)\npairs = [(z, z)]\n"
    + "return sum(itertools.starmap(lambda a, b: (a @ b.t()).exp().mean(), pairs))",
    "a function of the step": "z = self(x)\ndef pull():\n    return (z @ z.t()).exp().mean()\nreturn pull()",
    "a lambda of the step": "z = self(x)\npull = lambda d: z.softmax(d).pow(2).mean()\nreturn pull(0)",
    "a product of losses by its name": "z = self(x)\nreturn torch.mul(F.mse_loss(z, t), F.cross_entropy(z, y))",
    "a quotient of losses by its name": "z = self(x)\nreturn F.mse_loss(z, t).div(z.pow(2).mean())",
    "one view of several": "a, b = self(x), self(views[1])\nreturn F.cross_entropy(a.mm(b.t()), torch.arange(len(a)))",
}
SAME = {
    "a list of modules": EACH.format("l in self.plain", "l(z, y)"),
    "a list of functions": "z = self(x)\nreturn sum([f(z, y) for f in self.plain_functions])",
    "one by its number": "z = self(x)\nreturn self.mixed[0](z, y)",
    "with their weights": EACH.format("k, (l, w) in self.plain_ones.items()", "w * l(z, y)"),
    "beside their weights": EACH.format("l, w in zip(self.plain, [1.0, 0.1])", "w * l(z, y)"),
    "a tuple in the step": EACH.format("f in (F.cross_entropy, self.criterion)", "f(z, y)"),
    "a sum of losses": "from functools import reduce\nz = self(x)\nlosses = [F.cross_entropy(z, y), F.mse_loss(z, t)]\n"
    + "return reduce(lambda a, b: a + b, losses)",
    "views together": "from functools import reduce\nzs = [self(v) for v in views]\n"
    + "return reduce(lambda a, b: a * b, zs).mean()",
    "a map of views": "a, b = map(self, views)\nreturn F.mse_loss(a, b)",
    "a map of each sample": "a, b = map(lambda v: F.normalize(self(v), dim=1), views)\nreturn (a * b).mean()",
    "a map over losses": "z = self(x)\nreturn sum(map(lambda l: l(z, y), self.plain))",
    "a function of the step": "z = self(x)\ndef pull(k):\n    return F.cross_entropy(z * k, y)\n"
    + "return pull(1) + pull(2)",
    "a lambda of the step": "z = self(x)\npull = lambda d: z.softmax(d).pow(2).mean()\nreturn pull(1)",
    "a loss times a number by its name": "z = self(x)\nreturn torch.mul(F.mse_loss(z, t), 2).div(3.0)",
    "one view of several": "return F.mse_loss(self(views[1]), t) + (self(x) * self(views[1])).sum(1).mean()",
}


def text_of(body: str) -> str:
    start = "        self.pairs = Pairs()\n"
    return made(body).replace("class Net", OWN, 1).replace(start, HELD + start)


@pytest.mark.parametrize("body", MIXED.values(), ids=MIXED)
def test_the_split_gives_the_loss_of_the_whole(body):
    check_split(text_of(body), batch())


@pytest.mark.parametrize("body", SAME.values(), ids=SAME)
def test_a_step_whose_parts_add_up_is_left_alone(body):
    check_adds_up(text_of(body), *whole_and_halves())


def test_a_map_that_calls_the_model_too_is_told():
    body = "a, b = map(lambda v: F.normalize(self(v), dim=0), views)\nreturn (a * b).mean()"
    assert "in a comprehension" in check_unchanged(text_of(body), select="PTM430").attention[0].message


def test_what_may_mix_among_the_arguments_is_told_once():
    body = "z = self(x)\nreturn sum(l(torch.topk(z.sum(1), 3)[0], y) for l in self.plain)"
    (note,) = check_unchanged(text_of(body), select="PTM430").attention
    assert "topk" in note.message and "may mix" in note.message


def test_a_lambda_may_have_a_function_of_its_own():
    body = "z = self(x)\nreturn sum(map(lambda o, *, far=F.mse_loss: far(o, t), [z, z * 2]))"
    check_unchanged(text_of(body), select="PTM430")
