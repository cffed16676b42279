# ruff: noqa: E501
import pytest
from helpers import check, check_unchanged, migrated

HEAD = "import torch\nfrom torch.utils.data import DataLoader\nfrom torch.optim.lr_scheduler import LambdaLR\nfrom torchvision import transforms\n\n\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "def build(opt, rates):\n    return LambdaLR(opt, [lambda e, r=r: r ** e for r in rates])\n",
            "def _lr_lambda(e, *, r):\n    return r ** e\n\n\ndef build(opt, rates):\n    return LambdaLR(opt, [functools.partial(_lr_lambda, r=r) for r in rates])\n",
        ),
        (
            "if __name__ == '__main__':\n    SCALE = 2.0\n    t = transforms.Lambda(lambda x, s=SCALE, n=1: x * s + n)\n",
            "def _transform(x, n=1, *, s):\n    return x * s + n\n\n\nif __name__ == '__main__':\n    SCALE = 2.0\n    t = transforms.Lambda(functools.partial(_transform, s=SCALE))\n",
        ),
        (
            "def make():\n    return transforms.Lambda(lambda x, seen={}: seen.setdefault(x, x))\n",
            "def _transform(x, *, seen):\n    return seen.setdefault(x, x)\n\n\ndef make():\n    return transforms.Lambda(functools.partial(_transform, seen={}))\n",
        ),
        (
            "class N(torch.nn.Module):\n    def watch(self, names, kept):\n        for n in names:\n            self.fc.register_forward_hook(lambda m, i, o, n=n: kept.update({n: o}))\n",
            "def _hook(m, i, o, *, n, kept):\n    return kept.update({n: o})\n\n\nclass N(torch.nn.Module):\n    def watch(self, names, kept):\n        for n in names:\n            self.fc.register_forward_hook(functools.partial(_hook, n=n, kept=kept))\n",
        ),
    ],
)  # fmt: skip
def test_a_default_that_is_made_where_the_lambda_stands_is_bound_there(before, after):
    check(HEAD + before, "import functools\n" + HEAD + after, select="PTM201")


def test_a_default_of_a_comprehension_is_not_the_name_of_the_module():
    before = "for d in range(3):\n    print(d)\nts = [transforms.Lambda(lambda x, d=d: x + d) for d in (1, 2)]\n"
    assert "def _transform(x, *, d):" in migrated(HEAD + before, "PTM201").text


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("d = 5\nts = [transforms.Lambda(lambda x: x + d) for d in (1, 2)]\n", "`d` may be another value"),
        ("def f(d):\n    return [transforms.Lambda(lambda x: x + d) for d in (1, 2)]\n", "`d` may be another value"),
        ("def f(o):\n    g = lambda e, r=o.lr: r ** e\n    return LambdaLR(o, g), g(1, 2)\n", "its defaults"),
        ("def f(o, k):\n    return LambdaLR(o, lambda e=k: e)\n", "its defaults"),
        (
            "class A:\n    def f(self, a):\n        return LambdaLR(a, lambda e: a.__rate(e))\n",
            "`__rate` is its class's own",
        ),
        (
            "def f(train):\n    if train:\n        k = 3\n    return transforms.Lambda(lambda x: x * k)\n",
            "`k` may have no value yet",
        ),
        (
            "def f(x):\n    match x:\n        case [k]:\n            pass\n    return transforms.Lambda(lambda x: x * k)\n",
            "`k` may have no value yet",
        ),
        (
            "def f(path):\n    try:\n        k = read(path)\n    except OSError:\n        print('none')\n    return transforms.Lambda(lambda x: x * k)\n",
            "`k` may have no value yet",
        ),
    ],
)
def test_what_another_place_would_make_something_else_of_is_told(source, says):
    told = check_unchanged(HEAD + source, select="PTM201").attention
    assert [n.code for n in told] == ["PTM201"] and says in told[0].message


@pytest.mark.parametrize(
    "source",
    [
        "def f(train):\n    if train:\n        k = 3\n        t = transforms.Lambda(lambda x: x * k)\n        return t\n",
        "def f(train, k):\n    with train:\n        g = k * 2\n    return transforms.Lambda(lambda x: x * g)\n",
        "k = 1\ndef f(x):\n    match x:\n        case [k]:\n            return transforms.Lambda(lambda x: x * k)\n",
        "k = 1\ndef f(x):\n    match x:\n        case {'a': 1, **k}:\n            return transforms.Lambda(lambda x: x * k['b'])\n",
        "def f(train):\n    try:\n        k = 3\n        return transforms.Lambda(lambda x: x * k)\n    finally:\n        train()\n",
    ],
)
def test_a_value_that_is_there_is_bound(source):
    assert "functools.partial(_transform, " in migrated(HEAD + source, "PTM201").text
