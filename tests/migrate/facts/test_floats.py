"""`.type_as(x)` only where x is shown to hold floats: a state made like tokens would be of whole numbers."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

NET = """\
import torch
from torch import nn
from models import Other


def embed_all(t):
    return nn.functional.embedding(t, WEIGHT)


def scaled(t):
    return t.mean()


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(9, 4)

    def forward(self, tokens, n=None):
        return self.e(tokens)


class Pixels(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Linear(9, 4)

    def forward(self, p):
        return self.e(p)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.r = nn.Embedding(9, 4), nn.GRU(4, 3)
        self.embedded = nn.Embedding(9, 4)
        self.words, self.pixels, self.other = Words(), Pixels(), Other()
        self.seq = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 3))
        self.mlp = nn.Sequential(nn.Linear(4, 3))
        self.rnn = nn.GRU(4, 3)

    def look(self, s):
        return self.embedded(s)

    def forward(self, x, n):
        h0 = torch.zeros(1, x.size(0), 3).cuda()
        {use}
        return h0
"""


def placed(use):
    return migrate_text(NET.format(use=use.replace("; ", "\n        "))).text


@pytest.mark.parametrize(
    "use",
    [
        "e = self.embedded(x[n])",
        "e = self.embedded(x.t().contiguous())",
        "e = self.embedded(x.T)",
        "e = self.embedded(input=x)",
        "e = self.words(x)",
        "e = self.words(n=3, tokens=x)",
        "e = self.seq(x)",
        "e = self.look(x)",
        "e = embed_all(x)",
        "y = x[:, 0]; e = self.embedded(y)",
        "e = [self.embedded(w) for w in x]",
        "for w in x.t(): e = self.embedded(w)",
        "x = self.embedded(x)",
        "e = self.other(x)",  # of another file: nothing shows what it takes
    ],
)
def test_like_tokens_it_is_not(use):
    assert "torch.zeros(1, x.size(0), 3).to(x.device)" in placed(use)


@pytest.mark.parametrize(
    "use", ["e = self.pixels(x)", "e = self.mlp(x)", "e = self.rnn(x, h0)", "e = scaled(x)", "e = self.other(x.mean())"]
)
def test_like_floats_it_is(use):
    assert "torch.zeros(1, x.size(0), 3).type_as(x)" in placed(use)


@pytest.mark.parametrize(
    ("function", "to"),
    [
        ("def f(q, k):\n    return torch.zeros(k, k).cuda().sum() + q.sum()", ".to(q.device)"),
        ("def f(x):\n    return torch.ones(x.size(0)).cuda() + x", ".to(x.device)"),
        ("def f(x):\n    return torch.ones(x.size(0)).cuda() + x.mean()", ".type_as(x)"),
        ("def f(images):\n    return torch.ones(images.size(0)).cuda() + images", ".type_as(images)"),
        ("for x in loader:\n    n = x.size(0)\n    y = f(x, torch.ones(n).cuda())", ".type_as(x)"),
        (
            "class N(torch.nn.Module):\n    def forward(self, x):\n        return torch.ones(3).cuda() + x",
            ".type_as(x)",
        ),
    ],
)
def test_a_letter_alone_says_nothing_of_what_a_function_is_given(function, to):
    assert to in migrate_text(f"import torch\nloader = torch.utils.data.DataLoader(data)\n{function}\n").text
