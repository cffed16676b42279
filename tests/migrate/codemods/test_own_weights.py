"""T2: a method that the constructor runs goes by no weight that is not there yet, or that is not placed yet."""

import pytest
from helpers import check, check_unchanged, migrated

HEAD = """import torch
import torch.nn as nn
class A(nn.Module):
    def __init__(self, n, device):
        super().__init__()
        self.device = device
        {}
    def make(self, n):
        i = torch.zeros(2, n, dtype=torch.long).to({})
        return {}
    def forward(self, x):
        return torch.sparse.mm(self.graph, self.a(x))
{}"""
LAYER, GRAPH = "self.a = nn.Linear(4, 4)", "self.graph = self.make(n)"
SPARSE = "torch.sparse_coo_tensor(i, torch.ones(n), (n, n))"
OF_WEIGHT = "self.a.weight.device"


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ([GRAPH, LAYER], ""),
        (["self.graph = self.make(n).coalesce()", LAYER], ""),
        (["graph = self.make(n)", "self.graph = graph", LAYER], ""),
        ([GRAPH, LAYER], "    def again(self, n):\n        self.graph = self.make(n)\n"),
        (["self.first(n)", LAYER], "    def first(self, n):\n        self.graph = self.make(n)\n"),
        ([LAYER, GRAPH], ""),
        ([LAYER, "self.graph = self.make(n).coalesce()"], ""),
    ],
)
def test_what_is_made_before_the_weight_or_stays_behind_keeps_its_device(body, more):
    text = HEAD.format("\n        ".join(body), "self.device", SPARSE, more)
    check_unchanged(text, [f"PTM104 line {8 + len(body)}"], select="PTM104")


@pytest.mark.parametrize(
    ("body", "back", "more"),
    [
        ([LAYER], SPARSE, ""),  # nothing in the constructor makes it
        ([LAYER, "self.make(n)"], SPARSE, ""),
        ([LAYER, GRAPH], SPARSE, "    def again(self, n):\n        self.graph = self.make(n)\n"),
        ([LAYER, "self.b = nn.Parameter(self.make(n))"], "i.float()", ""),
    ],
)
def test_a_weight_that_is_there_says_where(body, back, more):
    before, after = (HEAD.format("\n        ".join(body), to, back, more) for to in ("self.device", OF_WEIGHT))
    check(before, after, select="PTM104")


def test_a_dense_one_is_a_buffer_and_goes_along():
    text = migrated(HEAD.format(f"{LAYER}\n        {GRAPH}", "self.device", "i.float()", ""), "PTM10").text
    assert 'self.register_buffer("graph", self.make(n))' in text
    assert OF_WEIGHT in text


def test_a_second_run_says_the_same():
    body = f"{GRAPH}\n        self.a = nn.Linear(4, 4).to(self.device)"
    text = HEAD.format(body, "self.device", SPARSE, "")
    once = migrated(text, "PTM10").text
    assert once != text
    assert migrated(once, "PTM10").text == once
