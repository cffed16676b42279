"""T11: `batches.next()` of what `iter()` gave."""

import pytest
from helpers import check, check_unchanged
from ptmigrate.migrate.migrate import migrate_text

HEAD = "import torch\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x, y = iter(loader).next()\n", "x, y = next(iter(loader))\n"),
        ("it = iter(loader)\nx = it.next()[0]  # first\n", "it = iter(loader)\nx = next(it)[0]  # first\n"),
        ("x = (iter(loader)).next()\n", "x = next((iter(loader)))\n"),
        ("def f(loader):\n    it = iter(loader)\n    return it.next()\n", None),
        ("it = None\n\n\ndef f():\n    global it\n    it = iter(loader)\n    return it.next()\n", None),
        ("it = iter(a)\n\n\ndef f():\n    return lambda: it.next()\n", None),
        ("def f(it, a):\n    it = iter(a)\n    return it.next()\n", None),
        ("a, it = 1, iter(loader)\nwhile (x := it.next()) is not None:\n    pass\n", None),
        (
            "class A:\n    def __init__(self, loader):\n        self.it = None\n        self.loader = loader\n\n"
            "    def draw(self):\n        try:\n            return self.it.next()\n        except StopIteration:\n"
            "            self.it = iter(self.loader)\n            return self.it.next()\n",
            None,
        ),
    ],
)
def test_drawn_by_the_function(before, after):
    after = after or before.replace("self.it.next()", "next(self.it)").replace("it.next()", "next(it)")
    check(HEAD + before, HEAD + after, attention=[])


@pytest.mark.parametrize(
    "source",
    [
        "x = prefetcher.next()\n",
        "it = prefetch(loader)\nx = it.next()\n",
        "it = iter(loader)\nx = next(it)\ny = it.__next__()\n",
        "it = iter(loader)\nx = it.next(1)\n",
        "it = iter(a)\nit = prefetch(a)\nx = it.next()\n",
        "it = iter(a)\n\n\ndef f(it):\n    return it.next()\n",
        "it = iter(a)\n\n\ndef f():\n    it = prefetch(a)\n    return it.next()\n",
        "for it in its:\n    x = it.next()\n",
        "class A:\n    def __init__(self, a):\n        self.it = iter(a)\n\n\n"
        "class B:\n    def draw(self):\n        return self.it.next()\n",
        "it = iter(loader)\nx = it.next\n",
    ],
)
def test_methods_of_others(source):
    check_unchanged(HEAD + source, attention=[])


@pytest.mark.parametrize(
    "source",
    [
        "def f(train_iter):\n    return train_iter.next()\n",
        "def next(x):\n    return x\n\n\nit = iter(loader)\nx = it.next()\n",
        "it = iter(loader)\nprint(f'{it.next()=}')\n",
    ],
)
def test_told(source):
    check_unchanged(HEAD + source, attention=["PTM610 line"])


def test_what_defines_next_is_not_told():
    check_unchanged(HEAD + "class DataIter:\n    def next(self):\n        return 1\n\n\nmy_iter.next()\n", attention=[])


def test_a_loop_that_draws_so_is_lifted():
    text = (
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.randn(8, 3), torch.randn(8, 1)), batch_size=4)\n"
        "net = torch.nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\nit = iter(loader)\n"
        "for step in range(5):\n    try:\n        x, y = it.next()\n    except StopIteration:\n"
        "        it = iter(loader)\n        x, y = it.next()\n    loss = (net(x) - y).pow(2).mean()\n"
        "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
    )
    assert migrate_text(text).plan == "module"
