"""What an epoch fills anew is asked for in every epoch."""

import pytest

from tests.migrate.running import check_same

LIST = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
memory = []
for episode in range(3):
    {fill}
    for x, y in memory:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    {empty}
    print(episode, loss.item())
"""
OBJECT = """
import torch
from torch import nn


class Buffer:
    def __init__(self):
        self.data = [({drawn})]

    def refill(self, n):
        self.data = [({drawn}) for _ in range(n)]

    def add(self, n):
        for _ in range(n):
            self.data.append(({drawn}))

    def size(self):
        return len(self.data)


torch.manual_seed(0)
buffer = Buffer()
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
{above}
for epoch in range(3):
    {first}
    for x, y in buffer.data:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
"""
DRAWN = "torch.randn(4, 4), torch.zeros(4, dtype=torch.long)"
ANEW = "reload_dataloaders_every_n_epochs=1"


@pytest.mark.parametrize("empty", ["memory.clear()", "del memory[:]", "memory[:] = []", "memory = []"])
def test_a_list(empty):
    assert ANEW in check_same(LIST.format(fill=f"memory.append(({DRAWN}))", empty=empty), "module")


@pytest.mark.parametrize(
    ("fill", "empty"),
    [
        (f"memory[:] = [({DRAWN})]", ""),
        (f"memory += [({DRAWN})] * 2", "del memory[:1]"),
        (f"memory.extendleft([({DRAWN})])", ""),
    ],
)
def test_by_other_ways(fill, empty):
    start = "import collections\nmemory = collections.deque()" if "left" in fill else "memory = []"
    assert ANEW in check_same(LIST.replace("memory = []", start).format(fill=fill, empty=empty), "module")


@pytest.mark.parametrize("first", ["buffer.refill(2)", "buffer.add(2)", "buffer.data = buffer.data[:1] * 2"])
def test_what_an_object_holds(first):
    assert ANEW in check_same(OBJECT.format(drawn=DRAWN, first=first, above=""), "module")


@pytest.mark.parametrize(
    ("above", "first"),
    [("buffer.refill(2)", ""), ("buffer.add(2)", ""), ("", "n = buffer.size()"), ("", "n = buffer.data[0]")],
)
def test_what_stays_as_it_is_is_given_once(above, first):
    assert ANEW not in check_same(OBJECT.format(drawn=DRAWN, first=first, above=above), "module")


def test_a_list_that_is_filled_above():
    text = LIST.replace("memory = []", f"memory = [({DRAWN}), ({DRAWN})]").format(fill="memory[0]", empty="len(memory)")
    assert ANEW not in check_same(text, "module")
