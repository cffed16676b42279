"""What a sum over the batch is divided by: how many samples there are, whatever holds the number, or something else."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """import math
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

ds = TensorDataset(torch.randn(22, 4), torch.randint(2, (22,)))
loader = DataLoader(ds, 4)
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
K = 5
for epoch in range(3):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y, reduction="sum")
        n = NUMBER
        loss = loss / n
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def migrated(number: str) -> str:
    return migrate_text(SCRIPT.replace("NUMBER", number)).text


@pytest.mark.parametrize(
    "number",
    [
        "len(x)",
        "torch.tensor(float(len(x)))",
        "torch.tensor([x.size(0)]).float()",
        "torch.as_tensor(len(y), dtype=torch.float, device=x.device)",
        "torch.full((1,), len(x))",
        "torch.clamp(torch.tensor([len(x)]), min=1).item()",
        "torch.tensor(len(x)).clamp(min=1).to(x.device)",
        "torch.tensor([len(x)])[0]",
        "torch.FloatTensor([len(x)])",
        "x.new_tensor(len(x))",
        "np.float32(len(x))",
        "np.prod(x.shape)",
        "math.prod(x.shape)",
        "round(len(x))",
    ],
)
def test_how_many_samples_there_are_makes_a_mean(number):
    """Each process took its own share's mean for a sum, and N processes trained with N times the gradient."""
    text = migrated(number)
    assert "loss_reduction" not in text and "divide_batches" not in text


@pytest.mark.parametrize(
    "number",
    [
        "sum(len(t) for t in x)",
        "math.sqrt(len(x))",
        "len(y.nonzero())",
        "len(torch.unique(y))",
        "len([t for t in y if t > 0])",
        "np.sum([1 for t in y if t > 0])",
        "x[y > 0].shape[0]",
        "x[y > 0].size(0)",
        "y[y > 0].numel()",
        "(y > 0).sum()",
    ],
)
def test_what_a_share_has_less_of_needs_the_whole_batch(number):
    assert "divide_batches = False" in migrated(number)


@pytest.mark.parametrize(
    "number",
    [
        "K",
        "float(K)",
        "torch.tensor(4.0)",
        "torch.tensor(K).item()",
        "np.sqrt(K)",
        "len(loader)",
        "model.weight.shape[0]",
        "x.size(1)",
        "x.shape[-1]",
        "torch.tensor(x.size(1))",
        "math.sqrt(x.shape[1])",
        "sum(p.numel() for p in model.parameters())",
    ],
)
def test_any_other_number_leaves_a_sum(number):
    text = migrated(number)
    assert 'loss_reduction = "sum"' in text and "divide_batches" not in text


@pytest.mark.parametrize("factor", ["math.sqrt(len(x))", "np.log(x.size(0))"])
def test_a_root_of_how_many_there_are_is_no_factor(factor):
    text = migrate_text(SCRIPT.replace("loss / n", "loss * n").replace("NUMBER", factor)).text
    assert "divide_batches = False" in text
