"""What lasts longer than an evaluation and is filled in it: where batches go round, a process would have its part."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import heapq
import numpy as np
from tqdm import tqdm


class Seen:
    values, last = (), 0

    def feed(self, y):
        self.values += (y.sum().item(),)


def add(kept, y):
    kept["n"] = kept["n"] + y.sum().item()


def keep(y):
    sizes.append(len(y))


def look(out):
    return out.sum()


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(27, 4), torch.arange(27) % 3), batch_size=6)
model = nn.Linear(4, 3)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
held, counted, seen = {"n": np.zeros(3)}, np.zeros(3), Seen()
table, counts, sizes, total = torch.zeros(3, 3), [0, 0, 0], [], 0
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    correct = 0
    with torch.no_grad():
        for i, (x, y) in enumerate(loader):
            out = model(x)
            correct += (out.argmax(1) == y).sum().item()
            FILLS
    print(epoch, correct, total, SHOWN)
"""
FILLED = {
    "for a, b in zip(y, out.argmax(1)):\n                table[a, b] += 1": "table.tolist()",
    "for c in y.tolist():\n                counts[c] += 1": "counts",
    "counts[0] += 1": "counts",
    "counts[1] += len(x)": "counts",
    "sizes.append(len(x))": "sizes",
    "sizes.append(i)": "sizes",
    "counts[y[0].item()] = epoch": "counts",
    "counts[0], n = y.sum().item(), i": "counts",
    "held.setdefault('y', []).extend(y.tolist())": "held",
    "[sizes.append(v) for v in y.tolist()]": "sizes",
    "list(map(sizes.append, y.tolist()))": "sizes",
    "heapq.heappush(sizes, y.sum().item())": "sizes",
    "add(held, y)": "held",
    "keep(y)": "sizes",
    "np.add.at(counted, y.numpy(), 1)": "counted.tolist()",
    "np.add.at(held['n'], y.numpy(), 1)": "held",
    "torch.add(table, out.sum(0), out=table)": "table.tolist()",
    "table.index_add_(0, y, out)": "table.tolist()",
    "seen.feed(y)": "seen.values",
    "setattr(seen, 'last', y.sum().item())": "seen.last",
}
DIVIDED = {
    "total += len(x)": "0",
    "counts[0] = epoch": "counts",
    "own = [0]\n            own[0] += len(x)": "0",
    "own = {}\n            own.setdefault('y', []).append(len(x))": "0",
    "own = {}\n            own['a'], own['b'] = len(x), i": "0",
    "own = [v for v in y.tolist()]": "0",
    "own = torch.zeros(3, 3).index_add_(0, y, out)": "0",
    "torch.clamp(out, 0, out=out)": "0",
    "np.add(counted, 1, out=counted)": "0",
    "look(out)": "0",
    "model.requires_grad_(bool(len(x)))": "0",
    "counts[0], counts[1] = epoch, 1": "counts",
}


def text_of(fills, shown):
    return SCRIPT.replace("FILLS", fills).replace("SHOWN", shown)


@pytest.mark.parametrize("fills", FILLED)
def test_every_process_evaluates_every_batch(fills):
    text = text_of(fills, FILLED[fills])
    assert "divide_validation = False" in check_same(text, "module")
    assert any("collects values over the evaluation" in n.message for n in migrate_text(text).attention)


@pytest.mark.parametrize("fills", DIVIDED)
def test_what_every_process_has_needs_no_more(fills):
    assert "divide_validation = False" not in check_same(text_of(fills, DIVIDED[fills]), "module")
