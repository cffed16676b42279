# ruff: noqa: E501
"""T9: wrapped models in pairs, lists and dictionaries: what is asked of each by `.module` is the model itself."""

import pytest
from helpers import check, check_unchanged, migrated

HEAD = "import torch\nimport torch.nn as nn\na, b = nn.Linear(2, 2), nn.Linear(2, 2)\n"
LISTS = [
    ("m, n = nn.DataParallel(a), nn.DataParallel(b)\nf(m.module, n.module)\n", "m, n = a, b\nf(m, n)\n"),
    ("m, n = (nn.DataParallel(x) for x in (a, b))\nf(m.module, n.module)\n", "m, n = (x for x in (a, b))\nf(m, n)\n"),
    ("m, n = nn.DataParallel(a), b\nf(m.module, n.module)\n", "m, n = a, b\nf(m, n.module)\n"),
    ("ms = [nn.DataParallel(a), nn.DataParallel(b)]\nf(ms[0].module)\n", "ms = [a, b]\nf(ms[0])\n"),
    ("ms = {}\nms['a'] = nn.DataParallel(a)\nf(ms['a'].module)\n", "ms = {}\nms['a'] = a\nf(ms['a'])\n"),
    ("ms = [nn.DataParallel(a)]\nfor m in ms:\n    f(m.module)\n", "ms = [a]\nfor m in ms:\n    f(m)\n"),
    ("ms = [nn.DataParallel(a)]\nf([m.module.state_dict() for m in ms])\n", "ms = [a]\nf([m.state_dict() for m in ms])\n"),
    ("ms = [nn.DataParallel(a)]\nfor i, m in enumerate(ms):\n    f(m.module, i)\n", "ms = [a]\nfor i, m in enumerate(ms):\n    f(m, i)\n"),
    ("ms = {'a': nn.DataParallel(a)}\nfor k, m in ms.items():\n    f(k.module, m.module)\n", "ms = {'a': a}\nfor k, m in ms.items():\n    f(k.module, m)\n"),
    ("ms = {'a': nn.DataParallel(a)}\nfor m in ms.values():\n    f(m.module)\n", "ms = {'a': a}\nfor m in ms.values():\n    f(m)\n"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), LISTS)
def test_they_are_asked_themselves(before, after):
    check(HEAD + before, HEAD + after, select="PTM420")


def test_heads_of_a_module():
    body = "class N(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    body += "        self.heads = nn.ModuleList([nn.DataParallel(nn.Linear(2, 2)) for _ in range(2)])\n"
    body += "    def forward(self, x):\n        return [h.module(x) for h in self.heads] + [self.heads[0].module(x)]\n"
    assert "return [h(x) for h in self.heads] + [self.heads[0](x)]\n" in migrated(HEAD + body, "PTM420").text


@pytest.mark.parametrize("line", ["f([m.module for m in parts])", "f(parts[0].module)", "m, n = parts\nf(m.module)"])
def test_what_nothing_wraps_has_its_own(line):
    check_unchanged(f"{HEAD}parts = load()\n{line}\n", [], select="PTM420")
