"""An evaluation that writes what its samples give runs whole: every process evaluates every batch, rank 0 writes."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import on_one_and_two

SCRIPT = """
import csv, json
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x, y = torch.randn(40, 4), torch.randint(0, 2, (40,))
train = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
held = DataLoader(TensorDataset(x[:20], y[:20]), batch_size=4)
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
out = open('out.txt', 'w')
rows = csv.writer(out)
def note(a, b):
    print(a.tolist(), file=out)
for epoch in range(2):
    for a, b in train:
        loss = torch.nn.functional.cross_entropy(net(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = 0
    with torch.no_grad():
        for i, (a, b) in enumerate(held):
            found = net(a).argmax(1)
            right += (found == b).sum().item()
            WRITES
    print(epoch, right)
out.close()
"""
WRITTEN = [
    "out.write(f'{i} {found.tolist()}\\n')",
    "for each in found.tolist():\n                out.write(str(each))",
    "rows.writerow(found.tolist())",
    "print(found.tolist(), file=out)",
    "json.dump(found.tolist(), out)",
    "np.save(f'{i}.npy', found.numpy())",
    "note(found, b)",
    "with open('last.txt', 'w') as f:\n                f.write(str(found))",
]
NOT = [
    "print(found.tolist())",
    "out.write(f'{i}\\n')",
    "right += 0",
    "if i == 0:\n                np.save('first.npy', found.numpy())",
]


def migrated(writes: str):
    return migrate_text(SCRIPT.replace("WRITES", writes))


@pytest.mark.parametrize("writes", WRITTEN)
def test_it_is_whole_and_told(writes):
    result = migrated(writes)
    assert result.plan == "module" and "divide_validation = False" in result.text
    assert any("writes what its samples give" in n.message for n in result.attention)


@pytest.mark.parametrize("writes", NOT)
def test_one_that_shows_or_writes_nothing_of_them_is_divided(writes):
    result = migrated(writes)
    assert result.plan == "module" and "divide_validation" not in result.text


def test_two_processes_write_what_one_writes(tmp_path):
    result = migrated(WRITTEN[0])
    one, two = on_one_and_two(tmp_path, SCRIPT.replace("WRITES", WRITTEN[0]), result.text)
    written = (one / "out.txt").read_text()
    assert (two / "out.txt").read_text() == written and written.count("\n") == 10
