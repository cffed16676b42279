"""Steps that leave the batches, or skip one, by what is in a batch: run before and after, and on two processes."""

import re

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.printed_on_two import by_originals, by_results
from tests.migrate.running import run

TEXT = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
xs = torch.randn(58, 4)
ys = (xs.sum(1, keepdim=True) > 0).float()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(xs, ys), batch_size=4)
net, other = nn.Linear(4, 1), nn.Linear(1, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.3)
OTHER
for epoch in range(3):
    total, n = 0.0, 0
    for i, (x, y) in enumerate(loader):
        FIRST
        opt.zero_grad()
        loss = F.binary_cross_entropy_with_logits(net(x), y)
        loss.backward()
        opt.step()
        total += loss.item()
        n += 1
        LAST
    print(f'{epoch}.0 {n}.0 {total / n:.5f}')
"""
OTHER = """opt_other.zero_grad()
        F.mse_loss(other(y), y).backward()
        opt_other.step()"""
WHOLE = {
    "left by the loss": ("pass", "if loss.item() < 0.45:\n            break"),
    "left by the loss of two networks": (OTHER, "if loss.item() < 0.45:\n            break"),
    "a batch that is not full": ("if len(x) != 4:\n            break", "pass"),
    "one by its size": ("size = x.size(0)\n        if size < 4:\n            continue", "pass"),
    "by what is in it": ("if y.sum() == 0 or y.sum() == 4:\n            continue", "pass"),
}
DIVIDED = {
    "by its number": ("if i == 7:\n            break", "pass"),
    "by what all shares have": (
        "if x.shape[1] < 4 or y is None or x.dim() != 2 or x.dtype == torch.long:\n            continue",
        "pass",
    ),
    "by a size": ("if x.size(-1) < 4 or x.size(dim=1) < 4:\n            continue", "pass"),
    "by shapes": ("if x.shape == y.shape or y.size() == x.size():\n            continue", "pass"),
    "by how many dimensions": ("if len(x.shape) != 2 or len(y.size()) != 2:\n            continue", "pass"),
    "nothing but a line": ("pass", "if loss.item() < 0.3:\n            low = 1"),
    "out of a loop of its own": (
        "for k in range(3):\n            if y[0] > k:\n                break\n        x = x * 1",
        "pass",
    ),
}


def script(first, last):
    made = "opt_other = torch.optim.SGD(other.parameters(), lr=0.3)" if first == OTHER else ""
    return TEXT.replace("OTHER", made).replace("FIRST", first).replace("LAST", last)


def lifted(case):
    """The result, which runs the same on one process."""
    text = script(*case)
    result = migrate_text(text)
    before, after = run(text), run(result.text)
    assert result.plan in ("module", "manual") and before.losses == after.losses and before.output == after.output
    return result.text


@pytest.mark.parametrize("case", WHOLE.values(), ids=WHOLE.keys())
def test_every_process_has_the_whole_batch(case):
    assert "divide_batches = False" in lifted(case)


@pytest.mark.parametrize("case", DIVIDED.values(), ids=DIVIDED.keys())
def test_shares(case):
    assert "divide_batches" not in lifted(case)


@pytest.mark.slow
def test_two_processes_do_what_one_does(tmp_path):
    cases = [*WHOLE.values(), *DIVIDED.values()]
    texts = [script(*case) for case in cases]
    for case, *printed in zip(cases, by_originals(tmp_path, texts), by_results(tmp_path, texts), strict=True):
        one, two = ([float(n) for n in re.findall(r"\d+\.\d+", each)] for each in printed)
        assert one and two == pytest.approx(one, abs=2e-5), case
