"""What a module's code says of drawing: what is called by name is read, what is not called is not."""

import random
from functools import partial

import pytest
import torch
import torch.nn as nn
from ptmigrate.runtime import Module
from ptmigrate.runtime.draws.speaking import may_draw
from torch.distributions import Normal


def blurred(x):
    return x + torch.randn_like(x)


def through_another(x):
    return [blurred(row) for row in x]


class Noise(nn.Module):
    def forward(self, x):
        return x + x.new(x.shape).normal_()


class Held:
    """No nn.Module."""

    def noisy(self, x):
        return x + random.random()


class Quiet(nn.Module):
    def __init__(self):
        super().__init__()
        nn.init.normal_(nn.Linear(2, 2).weight)
        self.drop = nn.Dropout()

    def forward(self, x):
        return self.drop(x).softmax(-1)


def module(step, **parts):
    made = type("Made", (Module,), {"validation_step": step, "training_step": lambda self, x, i: blurred(x)})()
    for name, part in parts.items():
        setattr(made, name, part)
    return made


def calls(self, x, i):
    return self.part(x)


@pytest.mark.parametrize(
    "made",
    [
        module(lambda self, x, i: torch.rand(3)),
        module(lambda self, x, i: blurred(x)),
        module(lambda self, x, i: through_another(x)),
        module(lambda self, x, i: Normal(x, 1).rsample()),
        module(lambda self, x, i: self.training_step(x, i)),
        module(lambda self, x, i: self.held.noisy(x), held=Held()),
        module(calls, part=Noise()),
        module(calls, part=nn.Sequential(nn.Linear(2, 2), Noise())),
        module(partial(calls).func, part=Noise()),
    ],
)
def test_it_may_draw(made):
    assert may_draw(made, ("validation_step", "forward"))


@pytest.mark.parametrize(
    "made",
    [
        module(lambda self, x, i: x.mean()),
        module(calls, part=Quiet()),
        module(calls, part=nn.LSTM(2, 2, 2, dropout=0.5)),
        module(lambda self, x, i: x.mean(), held=Held()),
        module(lambda self, x, i: self.log("sampled", x.mean())),
    ],
)
def test_it_does_not_draw(made):
    assert not may_draw(made, ("validation_step", "forward"))
