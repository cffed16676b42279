"""Epochs that go through a list count its elements, and take each first thing; one that may change keeps the loop."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.randn(12, 3), batch_size=4, shuffle=True)
MADE
for LOOP:
    FIRST
    for i, x in enumerate(loader):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(SHOWN, loss.item())
"""


def _text(made: str, loop: str, first: str = "torch.manual_seed(seed)", shown: str = "seed") -> str:
    return TEXT.replace("MADE", made).replace("LOOP", loop).replace("FIRST", first).replace("SHOWN", shown)


@pytest.mark.parametrize(
    ("made", "loop", "shown", "result"),
    [
        ("seeds = [3, 5, 8]", "seed in seeds", "seed", "max_epochs=len(seeds)"),
        (
            "seeds = list(range(3))",
            "epoch, seed in enumerate(seeds)",
            "epoch, seed, len(seeds)",
            "max_epochs=len(seeds)",
        ),
        ("seeds = (4, 7)", "n, seed in enumerate(seeds, 1)", "n, seed, seeds[0]", "seed = self.seeds[n - 1]"),
        ("", "seed in (4, 7)", "seed", "rounds = (4, 7)"),
        (
            "seeds = [2 * k for k in range(3)]\nnames = ['a', 'b', 'c']",
            "epoch, (seed, name) in enumerate(zip(seeds, names))",
            "epoch, name",
            "rounds = list(zip(seeds, names))",
        ),
        ("import numpy as np", "seed in np.arange(2, 5)", "seed", "rounds = list(np.arange(2, 5))"),
        ("", "seed in reversed(range(3))", "seed", "rounds = list(reversed(range(3)))"),
        ("", "seed in range(5)[2:]", "seed", "rounds = range(5)[2:]"),
        ("", "seed in range(0, 6, 2)", "seed", "rounds = list(range(0, 6, 2))"),
        ("", "epoch, seed in enumerate(range(1, 4))", "epoch, seed", "rounds = list(range(1, 4))"),
        ("seeds = [5, 3]", "seed in sorted(seeds)", "seed", "rounds = list(sorted(seeds))"),
    ],
)
def test_each_is_taken_first_thing(made, loop, shown, result):
    assert result in check_same(_text(made, loop, shown=shown), "module")


def test_what_is_left_below_is_the_last():
    text = _text("seeds = [3, 5]", "epoch, seed in enumerate(seeds)") + "print(epoch, seed)\n"
    check_same(text, "module")


@pytest.mark.parametrize(
    ("made", "loop", "first"),
    [
        ("seeds = [3, 5]", "seed in seeds", "if seed < 4: seeds.append(9)"),
        ("seeds = [3, 5]", "seed in seeds", "seeds[-1] = 4"),
        ("seeds = [3, 5]\nif len(seeds) > 1:\n    seeds = [3]", "seed in seeds", "pass"),
        ("seeds = (k for k in range(2))", "seed in seeds", "pass"),
        ("seeds = {3: 'a', 5: 'b'}", "seed, name in seeds.items()", "pass"),
        ("seeds = iter([3, 5])", "epoch, seed in enumerate(seeds)", "pass"),
        ("seeds = iter([3, 5])", "seed in list(seeds)", "pass"),
        ("seeds = {'a': [3, 5]}", "seed in seeds['a']", "pass"),
        ("def reversed(n): return iter(n)", "seed in reversed(range(3))", "pass"),
    ],
)
def test_what_may_change_or_is_no_list_keeps_the_loop(made, loop, first):
    check_same(_text(made, loop, first), "loop")


def test_what_counts_already_is_left():
    assert "rounds" not in check_same(_text("", "seed in range(1, 3)"), "module")


@pytest.mark.parametrize("around", ["for again in range(2):\n", "for epoch in range(2):\n"])
def test_parts_of_an_epoch_are_none(around):
    text = _text("seeds = [3, 5]", "seed in seeds")
    a = text.index("for seed in seeds")
    inner = "".join(f"    {line}\n" if line else "" for line in text[a:].splitlines())
    check_same(text[:a] + around + inner, "loop")
