"""Networks that name the size of a batch: a share of one has another."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn

batch_size = 4
torch.manual_seed(0)
xs = torch.randn(16, 2, 2)
loader = torch.utils.data.DataLoader(xs, batch_size=batch_size, shuffle=True)

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n, self.batch_size = n, batch_size
        self.code = nn.Linear(4, 4)

    def flat(self, x):
        return x.view(-1, 4)

    def forward(self, x):
        return self.code(self.flat(x))

def scaled(loss):
    return loss * 2

net = Net(batch_size)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        out = net(x)
        loss = scaled((out - x.flatten(1)).pow(2).mean())
        loss.backward()
        optimizer.step()
    print(epoch, f'{loss.item():.5f}')
"""
FIXED = {
    "a global": ("x.view(-1, 4)", "x.view(batch_size, -1)"),
    "an attribute that the constructor sets": ("x.view(-1, 4)", "x.view(self.batch_size, -1)"),
    "a function that the step calls": ("loss * 2", "loss * 2 / batch_size"),
}
FREE = {
    "nothing asks": ("loss * 2", "loss * 2"),
    "a local of that name": ("return x.view(-1, 4)", "batch_size = x.size(0)\n        return x.view(batch_size, -1)"),
    "an attribute that follows the batch": (
        "return x.view(-1, 4)",
        "self.batch_size = x.size(0)\n        return x.view(self.batch_size, -1)",
    ),
    "only shown": ("return x.view", "print(batch_size)\n        return x.view"),
    "a loader that the network makes": (
        "    def forward",
        "    def data(self):\n        return torch.utils.data.DataLoader(xs, batch_size=batch_size)\n\n    def forward",
    ),
}
FROM_ELSEWHERE = TEXT.replace("import torch\n", "import torch\nfrom model import Net, Other\n", 1)
FROM_ELSEWHERE = (
    FROM_ELSEWHERE[: FROM_ELSEWHERE.index("class Net")] + FROM_ELSEWHERE[FROM_ELSEWHERE.index("def scaled") :]
)


@pytest.mark.parametrize(("old", "new"), FIXED.values(), ids=FIXED.keys())
def test_a_size_that_does_not_follow_the_batch_asks_for_whole_ones(old, new):
    assert "divide_batches = False" in check_same(TEXT.replace(old, new), "module")


@pytest.mark.parametrize(("old", "new"), FREE.values(), ids=FREE.keys())
def test_one_that_follows_it_or_does_no_harm_does_not(old, new):
    assert "divide_batches" not in check_same(TEXT.replace(old, new), "module")


def test_a_network_of_another_file_that_is_told_the_size_may_go_by_it():
    assert "divide_batches = False" in migrate_text(FROM_ELSEWHERE).text
    assert "divide_batches" not in migrate_text(FROM_ELSEWHERE.replace("Net(batch_size)", "Net(4)")).text
    told = FROM_ELSEWHERE.replace("Net(batch_size)", "Net(4)\nmeter = Other(batch_size)")
    assert "divide_batches" not in migrate_text(told).text


NUMBER = TEXT.replace("batch_size=batch_size", "batch_size=4, drop_last=True").replace("Net(batch_size)", "Net(4)")
NUMBER = NUMBER.replace("self.n, self.batch_size = n, batch_size", "self.n = n").replace("batch_size = 4\n", "", 1)


@pytest.mark.parametrize(
    "made",
    ["torch.randn(4, 4)", "torch.full((4, 4), 0.1)", "torch.zeros(size=(4, 4))", "x.new_ones(4, 1)", "x.view(4, -1)"],
)
def test_a_number_that_is_the_loaders_counts_samples_where_it_comes_first(made):
    step = NUMBER.replace("out = net(x)", f"out = net(x) + {made}")
    assert "divide_batches = False" in check_same(step, "module")
    function = NUMBER.replace("loss * 2", f"loss * ({made} if True else 2).mean()").replace("x.", "xs[:4].")
    assert "divide_batches = False" in check_same(function, "module")


@pytest.mark.parametrize(
    "made", ["torch.full((1, 4), 0.1)", "torch.randn(1, 4)", "x.flatten(1) * 4", "x.view(-1, 4)", "torch.full((1,), 4)"]
)
def test_the_same_number_elsewhere_does_not(made):
    assert "divide_batches" not in check_same(NUMBER.replace("out = net(x)", f"out = net(x) + {made}"), "module")


def test_a_loader_that_an_object_keeps():
    made = "class Kept:\n    def __init__(self):\n        self.data = loader\n\nkept = Kept()\nnet = Net(4)"
    kept = NUMBER.replace("net = Net(4)", made)
    kept = kept.replace("for x in loader", "for x in kept.data").replace("net(x)", "net(x) + torch.ones(4, 1)")
    assert "divide_batches = False" in check_same(kept, "module")


PASS = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=4)

def noise(args, x):
    return torch.randn(x.size(0), 2)

def train(net, loader, optimizer, args):
    real = torch.ones(1, 1)
    for x in loader:
        optimizer.zero_grad()
        loss = (net(x + noise(args, x)) - real).pow(2).mean()
        loss.backward()
        optimizer.step()
    print(f'{loss.item():.5f}')

def main():
    args = parser.parse_args()
    torch.manual_seed(0)
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.randn(16, 2), batch_size=args.batch_size, shuffle=True)
    for epoch in range(2):
        train(net, loader, optimizer, args)

main()
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.randn(x.size(0), 2)", "torch.randn(args.batch_size, 2)"),
        ("torch.randn(x.size(0), 2)", "torch.randn((args.batch_size, 2))"),
        ("torch.ones(1, 1)", "torch.ones(args.batch_size, 1)"),
        ("torch.ones(1, 1)", "torch.full((args.batch_size,), 1.0).unsqueeze(1).requires_grad_(False)"),
    ],
)
def test_what_a_function_is_handed_and_what_is_made_before_the_loop_may_know_it(old, new):
    """It ended every run on several processes: a share's outputs beside as many targets as a batch has samples."""
    assert "divide_batches = False" in check_same(PASS.replace(old, new), "module")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.ones(1, 1)", "torch.ones(1, 1)"),
        ("torch.ones(1, 1)", "torch.ones(1, 1) * args.batch_size"),  # a number, and no size
        ("    return torch.randn", "    return 1 / args.batch_size + torch.randn"),
        ("torch.ones(1, 1)", "other = torch.ones(args.batch_size, 1)\n    real = torch.ones(1, 1)"),  # not for the step
        (
            "return torch.randn(x.size(0), 2)",
            "args = argparse.Namespace(batch_size=len(x))\n    return torch.randn(args.batch_size, 2)",
        ),
    ],
)
def test_what_counts_no_samples_or_asks_the_batch_does_not(old, new):
    assert "divide_batches" not in check_same(PASS.replace(old, new), "module")
