"""A collate_fn that mixes the samples of its batch takes whole batches on several processes."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

SCRIPT = """\
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataloader import default_collate


def collate(batch):
    {body}


class Collate:
    def __init__(self, p):
        self.p = p

    def __call__(self, batch):
        {body}


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 3), torch.randn(16, 1)), 8, shuffle=True, collate_fn={given})
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = (net(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TAKEN = "x, y = default_collate(batch); "
STACKED = "x = torch.stack([b[0] for b in batch]); y = torch.stack([b[1] for b in batch]); "
MIXES = [
    TAKEN + "i = torch.randperm(len(x)); return x + x[i], y + y[i]",
    TAKEN + "i = torch.from_numpy(np.random.permutation(len(x))); return x + x[i], y + y[i]",
    TAKEN + "return 0.7 * x + 0.3 * x.flip(0), y",
    TAKEN + "return x - x.mean(0), y",
    "return mixup(*default_collate(batch))",
    "x, y = zip(*batch); x = torch.stack(x); return x / x.norm(), torch.stack(y)",
]
APART = [
    "return default_collate(batch)",
    TAKEN + "return x - x.mean(1, keepdim=True), y * 2",
    STACKED + "return x / 255, y",
    STACKED + "return x / x.std(dim=1, keepdim=True), y",
    STACKED + "return x / x.sum(1).unsqueeze(1), y",
    STACKED + "return x / x.abs().max(1)[0][:, None], y",
    "x, y = zip(*batch); return torch.stack(x), torch.stack(y)",
    "return torch.tensor([b[0].tolist() for b in batch]), torch.tensor([[float(b[1])] for b in batch])",
]


@pytest.mark.parametrize("given", ["collate", "Collate(0.5)"])
@pytest.mark.parametrize("body", MIXES)
def test_one_that_mixes(body, given):
    result = migrate_text(SCRIPT.format(body=body, given=given))
    assert "divide_batches = False" in result.text
    assert any(f"`{given}` mixes the samples of a batch" in n.message for n in result.attention)


@pytest.mark.parametrize("given", ["collate", "Collate(0.5)"])
@pytest.mark.parametrize("body", APART)
def test_one_that_keeps_them_apart(body, given):
    assert "divide_batches" not in migrate_text(SCRIPT.format(body=body, given=given)).text


@pytest.mark.parametrize(("body", "whole"), [(MIXES[0], True), (APART[0], False)])
def test_of_another_file(tmp_path, body, whole):
    head, own, rest = SCRIPT.format(body=body, given="collate").partition("def collate")
    own, _, rest = (own + rest).partition("class Collate")
    (tmp_path / "collating.py").write_text(head + own)
    (tmp_path / "train.py").write_text(f"{head}from collating import collate\n\n\nclass Collate{rest}")
    done = {m.path.stem: m.data.decode() for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert ("divide_batches = False" in done["train"]) is whole
