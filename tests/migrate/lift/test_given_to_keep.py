"""What a training step hands to an object or a function that keeps it is told, whatever the method's name is."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

SCRIPT = """
import bisect
import csv
import heapq
import json
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Meter:
    def __init__(self):
        self.values = []

    def feed(self, out, y):
        self.values.append((out.argmax(1) == y).float().mean().item())

    __call__ = add_batch = feed

    def tick(self):
        self.values.append(0)


def count(kept, y):
    kept["n"] = kept["n"] + y.sum().item()


def fill(y):
    seen["n"] += y.sum().item()


def look(out, y):
    return (out.argmax(1) == y).sum()


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(27, 4), torch.arange(27) % 2), batch_size=8)
model = nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
meter, table, seen = Meter(), np.zeros((2, 2)), {"n": 0}
lists = {0: [], 1: [], "t": np.zeros(2), "of": {"n": 0}, "w": []}
rows = csv.writer(open("rows.csv", "w"))
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        STEP
    print(epoch, meter.values, table.tolist(), seen, lists)
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


KEPT = {
    "meter.feed(out, y)": "meter",
    "meter.add_batch(out, y)": "meter",
    "np.add.at(table, (y.numpy(), out.argmax(1).numpy()), 1)": "table",
    "np.copyto(table, out.detach().numpy()[:2])": "table",
    "count(seen, y)": "seen",
    "fill(y)": "seen",
    "np.add(table, out.detach().numpy()[:2], out=table)": "table",
    "np.add.at(lists['t'], y.numpy(), 1)": "lists",
    "count(lists['of'], y)": "lists",
    "setattr(meter, 'best', out.max().item())": "meter",
    "lists.setdefault('y', []).append(y[0].item())": "lists",
    "lists['of'].setdefault(epoch, {}).setdefault('y', []).append(out.max().item())": "lists",
    "lists['a'], lists['b'] = out.max().item(), i": "lists",
    "last, lists['a'] = i, out.max().item()": "lists",
    "[lists[k].append(v) for k, v in zip(y.tolist(), out.max(1)[0].tolist())]": "lists",
    "list(map(lists[0].append, y.tolist()))": "lists",
    "heapq.heappush(lists['w'], out.max().item())": "lists",
    "bisect.insort(lists['w'], y[0].item())": "lists",
}


def told(step):
    return [n.message for n in migrate_text(SCRIPT.replace("STEP", step)).attention if "the process sees" in n.message]


@pytest.mark.parametrize("step", KEPT)
def test_who_keeps_a_share_of_a_batch_is_told(step):
    check_same(SCRIPT.replace("STEP", step), "module")
    assert [m.split("`")[1] for m in told(step)] == [KEPT[step]]


def test_an_object_that_is_called_keeps_it_too():
    assert [m.split("`")[1] for m in told("meter(out, y)")] == ["meter"]


def test_a_picture_of_a_share_is_told_once():
    step = "tb.add_histogram('out', out, i)"
    text = SCRIPT.replace("STEP", step).replace(
        "meter, table", "tb = torch.utils.tensorboard.SummaryWriter()\nmeter, table"
    )
    notes = [n.message for n in migrate_text(text).attention if "the process sees" in n.message]
    assert len(notes) == 1 and notes[0].startswith("`tb.add_histogram(")


@pytest.mark.parametrize("save", ["np.save('out.npy', out.detach().numpy())", "torch.save(out, 'out.pt')"])
def test_what_is_saved_of_a_share_is_told(save):
    check_same(SCRIPT.replace("STEP", save), "module")
    assert len(told(save)) == 1


def test_the_rows_of_a_file_are_the_whole_batch_s():
    step = "rows.writerow([i, loss.item(), len(x)])"
    result = check_same(SCRIPT.replace("STEP", step), "module")
    assert "[i, self.batch_mean(loss.item()), self.batch_sum(len(x))]" in result and not told(step)


@pytest.mark.parametrize(
    "step",
    [
        "meter.tick()",
        "print(look(out, y).item())",
        "table.fill(i)",
        "np.copyto(table, np.ones((2, 2)))",
        "count(seen, torch.ones(2))",
        "look(out, y)",
        "torch.save(model.state_dict(), 'model.pt')",
        "json.dump({'i': i}, open('i.json', 'w'))",
        "hits = torch.zeros(2)\n        hits.index_add_(0, y, torch.ones(len(y)))",
        "model.requires_grad_(True)",
        "np.add(table, 1, out=table)",
        "own = {}\n        own.setdefault('y', []).append(y[0].item())",
        "own = {}\n        own['a'], own['b'] = out.max().item(), i",
        "own = [v for v in y.tolist()]",
        "lists['a'], lists['b'] = i, epoch",
        "lists.setdefault('w', []).append(i)",
        "lists.setdefault('w', []).append(loss.item())",
        "[lists['w'].append(k) for k in range(3)]",
        "[lists['w'].append(p.norm().item()) for p in model.parameters()]",
        "list(map(lists['w'].append, range(3)))",
        "heapq.heappush(lists['w'], i)",
    ],
)
def test_what_keeps_nothing_of_the_samples_needs_no_word(step):
    text = SCRIPT.replace("STEP", step)
    check_same(text, migrate_text(text).plan)
    assert not told(step)
