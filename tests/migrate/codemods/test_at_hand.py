"""Tensors that are made where they meet one that is at hand."""

import pytest
import torch
from helpers import check, check_unchanged

from tests.migrate.running import check_on_card, check_same

NET = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x, lengths, k=2):\n        n = x.size(1)\n"


@pytest.mark.parametrize(
    ("made", "placed"),
    [
        ("torch.arange(n) < lengths[:, None]", "torch.arange(n, device=lengths.device) < lengths[:, None]"),
        (
            "lengths.view(-1, 1) > torch.arange(n)[None]",
            "lengths.view(-1, 1) > torch.arange(n, device=lengths.device)[None]",
        ),
        ("x.masked_fill(torch.arange(n) < k, 0)", "x.masked_fill(torch.arange(n, device=x.device) < k, 0)"),
        ("x * (torch.rand(n) < 0.5)", "x * (torch.rand(n, device=x.device) < 0.5)"),
        ("torch.where(torch.arange(n) > 1, x, x * 2)", "torch.where(torch.arange(n, device=x.device) > 1, x, x * 2)"),
    ],
)
def test_what_is_compared_is_made_where_it_meets_a_tensor(made, placed):
    check(f"{NET}        return {made}\n", f"{NET}        return {placed}\n", select="PTM104")
    before, after = (in_net(made), in_net(placed))
    assert before.dtype == after.dtype and torch.equal(before, after)


def in_net(value):
    names = {}
    exec(f"{NET}        return {value}\n", names)
    torch.manual_seed(0)
    return names["Net"]()(torch.randn(2, 3), torch.tensor([1, 2]))


@pytest.mark.parametrize(
    "body",
    [
        "if torch.rand(1) < 0.5:\n            x = x * 2\n        return x",
        "return x * 2 if torch.rand(1) < k else x",
        "return x[:, torch.arange(n) < k]",
        "return (torch.arange(n) < k).numpy()",
        "seen = torch.arange(n) < k\n        return x, seen.tolist()",
        "return torch.arange(n) in lengths",
        "return torch.arange(n) < lengths",  # which may be a number
    ],
)
def test_what_is_compared_and_meets_no_tensor_stays(body):
    check_unchanged(f"{NET.replace('x.size(1)', '3')}        {body}\n", None, select="PTM104")


HELPERS = """
import torch


def mask_of(lengths, most):
    row = torch.arange(most{0})
    return row < lengths.unsqueeze(1)


def smooth(y, eps):
    return y * (1 - eps) + torch.ones(3{1}) * eps


def table(n):
    return torch.arange(n) / n


class Net(torch.nn.Module):
    def part(self, x):
        return x.float() + torch.ones(x.size(-1){2})

    def forward(self, x, lengths):
        return self.part(x) * mask_of(lengths, x.size(1)), smooth(x.sum(1), 0.1), table(3)


def plot(xs):
    return xs.mean() + torch.ones(3)
"""


def test_helpers_that_modules_call_make_theirs_where_it_meets_a_tensor():
    check(
        HELPERS.format("", "", ""),
        HELPERS.format(", device=lengths.device", "", ", device=x.device"),
        select="PTM104",
    )


LOOP = """
import torch
from torch.utils.data import DataLoader, TensorDataset

def loss_of(p, y):
    return ((p.view(-1) - y) * torch.ones(4MADE)).pow(2).mean()

torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(torch.randn(8, 3), torch.randn(8)), batch_size=4):
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
print(loss_of(net(x), y).item())
"""


def test_a_helper_of_a_training_loop_too():
    assert "torch.ones(4, device=p.device)" in check_same(LOOP.replace("MADE", ""), "module")


def test_no_function_that_no_step_calls():
    text = LOOP.replace("MADE", "").replace("loss = loss_of(net(x), y)", "loss = (net(x).view(-1) - y).pow(2).mean()")
    assert "torch.ones(4)" in check_same(text, "module")


SOLVER = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Solver:
    def __init__(self):
        self.loader = DataLoader(TensorDataset(torch.randn(12, 3), torch.randn(12, 3)), batch_size=4)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.net = nn.Linear(3, 3)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.net.to(self.device)

    def train(self):
        fixed, _ = next(iter(self.loader))
        fixed = fixed.to(self.device)
        for i in range(2):
            for x, y in self.loader:
                loss = (self.net(x.to(self.device)) - y.to(self.device)).pow(2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            with torch.no_grad():
                print(self.net(fixed).sum().item())


torch.manual_seed(0)
solver = Solver()
solver.train()
"""


def test_a_network_before_the_loop_is_not_placed_yet(tmp_path):
    """The sample went where the network was, and stayed there when the Trainer placed that."""
    text = check_on_card(tmp_path, SOLVER)
    assert "trainer.fit(" in text and "parameters()).device" not in text
