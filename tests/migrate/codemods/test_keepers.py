# ruff: noqa: E501
"""What keeps the functions that it is given, and is pickled with them."""

import pytest
from helpers import check_unchanged, migrated

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, Dataset\nfrom torch.optim.lr_scheduler import LambdaLR\nfrom torchvision import datasets\n\n\n"
KEEPS = "class View(nn.Module):\n    def __init__(self, func, n=1):\n        super().__init__()\n        self.func, self.n = func, n\n"
IN_NET = "class N(nn.Module):\n    def __init__(self, act, table):\n        super().__init__()\n        "


@pytest.mark.parametrize(
    "source",
    [
        KEEPS + "net = nn.Sequential(View(lambda x: x.view(-1)), nn.ReLU())\n",
        KEEPS + "net = View(n=2, func=lambda x: x.view(-1))\n",
        KEEPS + "class Flat(View):\n    def __init__(self):\n        super().__init__(lambda x: x.view(-1))\n",
        "def default(v, d):\n    return d if v is None else v\n" + IN_NET + "self.act = default(act, lambda x: x)\n",
        "ACTS = {}\ndef register(name, f):\n    ACTS[name] = f\nregister('id', lambda x: x)\n" + IN_NET + "self.act = ACTS[act]\n",
        "ACTS = {'id': lambda x: x}\n" + IN_NET + "self.act = ACTS.get(act)\n",
        IN_NET + "self.act = getattr(torch, act, lambda x: x)\n",
        IN_NET + "self.act = table.get(act, lambda x: x)\n",
        IN_NET + "self.act = {'id': lambda x: x}.get(act)\n",
        IN_NET + "self.act = dict(id=lambda x: x)[act]\n",
        IN_NET + "self.act: object = lambda x: x\n",
        IN_NET + "self.a = self.b = lambda x: x\n",
        IN_NET + "self.act, n = (lambda x: x), 3\n",
        IN_NET + "if f := lambda x: x:\n            self.act = f\n",
        "def f(opt, a):\n    if a:\n        g = lambda e: 0.5 ** e\n    else:\n        g = lambda e: 1.0\n    return LambdaLR(opt, g)\n",
        "def warmup(n):\n    return lambda e: min(1.0, e / n)\ns = LambdaLR(opt, warmup(5))\n",
        "class T:\n    def rate(self, n):\n        return lambda e: e / n\n    def run(self, opt):\n        return LambdaLR(opt, self.rate(3))\n",
        "class Base(Dataset):\n    pass\nclass Own(Base):\n    def __init__(self):\n        self.tf = lambda x: x\n",
        "d = datasets.ImageFolder('r', lambda im: im)\n",
        "d = datasets.DatasetFolder('r', loader=lambda p: p)\n",
        "d = datasets.VOCDetection('r', transforms=lambda im, t: (im, t))\n",
        "def collate(pad):\n    def inner(b):\n        return b + pad\n    return inner\nd = DataLoader(x, collate_fn=collate(0))\n",
        "def make(x, pad):\n    if pad:\n        def inner(b):\n            return b + pad\n    else:\n        def inner(b):\n            return b\n    return DataLoader(x, collate_fn=inner)\n",
    ],
)  # fmt: skip
def test_no_lambda_and_no_local_function_is_left(source):
    done = migrated(HEAD + source, "PTM2")
    assert "lambda " not in done.text and "    def inner" not in done.text
    assert done.edits and not done.attention


@pytest.mark.parametrize(
    "source",
    [
        "class Init(nn.Module):\n    def __init__(self, f):\n        super().__init__()\n        self.apply(f)\nm = Init(lambda m: None)\n",
        IN_NET + "make = lambda i, o: nn.Linear(i, o)\n        self.fc = nn.Sequential(make(1, 2), make(2, 3))\n",
        IN_NET + "local, self.n = lambda x: x, 3\n        print(local(3))\n",
        IN_NET + "self.n = {'id': lambda x: x}.get(act)(3)\n",
        IN_NET + "self.n = len(table.get(act, lambda: 3)())\n",
        "SORT = {'a': lambda x: x}\n" + IN_NET + "self.names = sorted(table, key=SORT[act])\n",
        "def key(n):\n    return lambda x: x[n]\nxs = sorted(ys, key=key(1))\n",
        "def adder(n):\n    def add(x):\n        return x + n\n    return add\ny = adder(3)(torch.ones(2))\n",
        "d = datasets.DatasetFolder('r', load, ('.x',), is_valid_file=lambda p: True)\n",
        "import functools\ndef timed(f):\n    @functools.wraps(f)\n    def inner(*a):\n        return f(*a)\n    return inner\n" + IN_NET + "self.f = timed(torch.relu)\n",
    ],
)  # fmt: skip
def test_what_is_not_kept_stays(source):
    check_unchanged(HEAD + source, [], select="PTM2")
