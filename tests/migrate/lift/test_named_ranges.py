"""Epochs that are counted by a range with a name, or by an iterator of one, are lifted as those of the range are."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import argparse
import torch
from torch import nn

torch.manual_seed(0)
opt = argparse.Namespace(n=3)
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.randn(12, 3), batch_size=4)
{made}
for epoch in {over}:
    for i, x in enumerate(loader):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, i, loss.item())
{below}
"""


@pytest.mark.parametrize(
    ("made", "over", "counted"),
    [
        ("", "iter(range(3))", "max_epochs=3"),
        ("epochs = range(3)", "epochs", "max_epochs=3"),
        ("epochs = range(opt.n)\nopt.n = 7", "iter(epochs)", "max_epochs=epochs.stop"),
        ("epochs = range(1, opt.n)", "epochs", "epochs.stop - epochs.start"),
    ],
)
def test_a_range_that_has_a_name(made, over, counted):
    assert counted in check_same(TEXT.format(made=made, over=over, below=""), "module")


@pytest.mark.parametrize(
    ("made", "over"),
    [
        ("epochs = range(6)[::2]", "epochs"),
        ("epochs = range(0, 6, 2)", "iter(epochs)"),
        ("epochs = range(2)\nif opt.n > 2:\n    epochs = range(opt.n)", "epochs"),
    ],
)
def test_one_that_is_no_count_or_two_keeps_the_loop(made, over):
    check_same(TEXT.format(made=made, over=over, below=""), "loop")


def test_a_batch_loop_over_an_iterator_and_other_loops_as_they_are():
    below = "seen = range(2)\nfor i in iter(seen):\n    print(i)"
    text = TEXT.format(made="", over="range(2)", below=below).replace("enumerate(loader)", "enumerate(iter(loader))")
    result = check_same(text, "module")
    assert below.replace("print", "rank_zero_print") in result and "LinearModule(net), loader)" in result
