"""T1: what a module keeps in lists, in its class and as defaults stays on the CPU: its moves are not taken away."""

import pytest
from helpers import migrated

HEAD = """import torch
import torch.nn as nn

class Net(nn.Module):
    COLORS = torch.ones(2)
    PAIR = (torch.ones(2), torch.zeros(2))
    def __init__(self):
        super().__init__()
        self.anchors = [torch.ones(2), torch.zeros(2)]
        self.pair = torch.ones(2), torch.zeros(2)
        self.table = {"a": torch.ones(2)}
        self.mixed = {"a": torch.ones(2), "n": 3, **more}
        self.called = dict(a=torch.ones(2), n=3)
        self.made = [torch.full((2,), float(i)) for i in range(2)]
        self.put, self.filled = [], {}
        self.put.append(torch.ones(2))
        self.filled["a"] = torch.ones(2)
        self.seen = []
"""
KEPT = [
    "self.anchors[0].cuda()",
    "self.pair[1].cuda()",
    'self.table["a"].cuda()',
    'self.mixed["a"].cuda()',
    'self.called["a"].cuda()',
    "self.made[1].cuda()",
    "self.put[0].cuda()",
    'self.filled["a"].cuda()',
    "self.COLORS.cuda()",
    "Net.COLORS.cuda()",
    "self.PAIR[0].cuda()",
    "sum(a.cuda() for a in self.anchors)",
    "sum(v.cuda() for k, v in self.table.items())",
    "sum(v.cuda() for v in self.table.values())",
    "sum(a.cuda() * n for n, (a, b) in enumerate(zip(self.anchors, self.pair)))",
]


def method(*lines: str, given: str = "x") -> str:
    return f"{HEAD}    def forward(self, {given}):\n" + "".join(f"        {line}\n" for line in lines)


@pytest.mark.parametrize("kept", KEPT)
def test_it_goes_where_the_batch_is(kept):
    text = migrated(method(f"y = x.float() + {kept}", "return y")).text
    assert ".to(x.device)" in text and "cuda" not in text


def test_in_loops_and_pairs():
    lines = ["for a in self.made:", "    a = a.cuda()", "    x = x.float() + a", "first, _ = self.pair"]
    text = migrated(method(*lines, "return x + first.cuda()")).text
    assert text.count(".to(x.device)") == 2 and "cuda" not in text


@pytest.mark.parametrize("given", ["x, w=torch.ones(2)", "x, *, w=torch.ones(2)"])
def test_a_default_is_made_once_on_the_cpu(given):
    text = migrated(method("return x.float() * w.cuda()", given=given)).text
    assert f"def forward(self, {given}):" in text and "w.to(x.device)" in text


def test_a_default_is_no_part_of_its_function():
    """The function's own parameters are unknown there: `def forward(self, x, w=torch.ones(2, device=x.device))`."""
    given = "x, w=torch.ones(2), f=lambda y, k=torch.zeros(2): y + k"
    text = migrated(method("return f(x.float() * w)", given=given)).text
    assert f"def forward(self, {given}):" in text


def test_a_dictionary_may_have_both():
    lines = ['self.filled["b"] = x', 'return self.filled["b"].cuda() + x']
    assert 'return self.filled["b"] + x\n' in migrated(method(*lines)).text


@pytest.mark.parametrize("kept", ["mixed", "called"])
def test_a_part_that_is_put_back_goes_where_the_batch_is(kept):
    """The move was taken away, and the tensor stayed on the CPU."""
    line = f'self.{kept}["a"] = self.{kept}["a"].cuda()'
    assert line.replace("cuda()", "to(x.device)") in migrated(method(line, "return x")).text


@pytest.mark.parametrize("key", ["n", "b", "z"])
def test_under_another_key_may_be_anything(key):
    lines = ['self.mixed["z"] = x', f'return self.mixed["{key}"].cuda() + x']
    assert f'return self.mixed["{key}"] + x\n' in migrated(method(*lines)).text


@pytest.mark.parametrize("batch", ["self.seen.append(x)", "self.seen += [x]", "self.seen = [x]"])
def test_what_a_batch_gave_is_placed(batch):
    assert "return self.seen[0] + x\n" in migrated(method(batch, "return self.seen[0].cuda() + x")).text
