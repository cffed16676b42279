"""A label of the shape (n, 1) against a distance of the shape (n,): each sample against all others."""

import pytest
import torch
import torch.nn.functional as F
from ptmigrate.migrate.facts.one_number_items import one_number_places
from ptmigrate.migrate.facts.other_files import OtherFile
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

PAIRS = """\
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 6)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        j = (i * 7 + 3) % len(self.x)
        return self.x[i], self.x[j], torch.from_numpy(np.array([i % 3 != j % 3], dtype=np.float32))


class ContrastiveLoss(nn.Module):
    def forward(self, a, b, label):
        d = F.pairwise_distance(a, b)
        return torch.mean((1 - label) * d.pow(2) + label * torch.clamp(2.0 - d, min=0.0).pow(2))


torch.manual_seed(0)
net = nn.Linear(6, 2)
criterion = ContrastiveLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(2):
    for data in DataLoader(Pairs(16), batch_size=8, shuffle=True):
        a, b, label = data
        optimizer.zero_grad()
        loss = criterion(net(a), net(b), label)
        loss.backward()
        optimizer.step()
        print(loss.item())
"""
ITEM = "torch.from_numpy(np.array([i % 3 != j % 3], dtype=np.float32))"
DISTANCE = "F.pairwise_distance(a, b)"
MIXES = {
    "a contrastive loss": PAIRS,
    "unpacked by the loop": PAIRS.replace("for data in", "for a, b, label in").replace("a, b, label = data", "pass"),
    "a module of distances": PAIRS.replace(DISTANCE, "nn.PairwiseDistance(2)(a, b)"),
    "a name": PAIRS.replace(ITEM, "same").replace(
        "        j =", "        same = torch.tensor([i % 2]).float()\n        j ="
    ),
}
MIXES_NOT = {
    "a dimension is kept": PAIRS.replace(DISTANCE, "F.pairwise_distance(a, b, keepdim=True)"),
    "a module keeps it": PAIRS.replace(DISTANCE, "nn.PairwiseDistance(keepdim=True)(a, b)"),
    "the label's goes": PAIRS.replace("        d =", "        label = label.squeeze(1)\n        d ="),
    "a number": PAIRS.replace("[i % 3 != j % 3]", "i % 3 != j % 3"),
    "the class's own number": PAIRS.replace(ITEM, "i % 2"),
    "another dataset's": PAIRS.replace("self.x[j], torch", "self.x[j], i, torch").replace("label =", "label, _ ="),
}


@pytest.mark.parametrize("text", MIXES.values(), ids=MIXES.keys())
def test_batches_stay_whole(text):
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches = False" in result.text
    assert any(n.code == "PTM703" and "(1 - label)" in n.message for n in result.attention)


@pytest.mark.parametrize("text", MIXES_NOT.values(), ids=MIXES_NOT.keys())
def test_others_are_divided(text):
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches" not in result.text


def test_datasets_of_other_files():
    start, end = PAIRS.index("class Pairs"), PAIRS.index("class ContrastiveLoss")
    script = Facts(PAIRS[:start] + PAIRS[end:])
    script.others = (OtherFile("pairs", PAIRS[:end]),)
    assert one_number_places(script, 3) == {2} and one_number_places(script, 2) == set()


def test_both_are_what_torch_does():
    a, b, label = torch.ones(4, 2), torch.zeros(4, 2), torch.ones(4, 1)
    assert (F.pairwise_distance(a, b) * label).shape == (4, 4)
    assert (F.pairwise_distance(a, b, keepdim=True) * label).shape == (4, 1)
