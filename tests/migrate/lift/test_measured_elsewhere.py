"""Measures of another file: a mean or a sum over the samples is brought together as one of the script's own is."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.running import on_one_and_two

MEASURES = """\
def accuracy(out, y):
    return (out.argmax(1) == y).float().mean().item()


def hits(out, y):
    return out.argmax(1).eq(y).sum().item() / len(y)


def sized(out, y):
    return out.argmax(1).eq(y).sum().item() / count(y)


def count(y):
    return y.size(0)


def top(out, y, topk=(1,)):
    correct = out.topk(max(topk), 1, True, True)[1].t().eq(y.view(1, -1))
    res = []
    for k in topk:
        res.append(correct[:k].reshape(-1).float().sum(0).mul_(100.0 / y.size(0)))
    return res


def worst(out, y):
    return (out.argmax(1) == y).float().min().item()


class Meter:
    def __init__(self):
        self.sum = self.count = self.avg = 0

    def update(self, value, n=1):
        self.sum += float(value) * n
        self.count += n
        self.avg = self.sum / self.count
"""
MAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
IMPORT


def train(loader, model, criterion, optimizer):
    meter = Meter()
    for x, y in loader:
        out = model(x)
        loss = criterion(out, y)
        MEASURE
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return meter.avg


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.arange(32) % 3), batch_size=8, shuffle=True)
    model = nn.Linear(4, 3)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        shown = train(loader, model, criterion, optimizer)
        with open("shown", "w") as file:
            print(f"{shown:.4f}", file=file)


main()
"""
FROM = "from measures import Meter, accuracy, count, hits, sized, top, worst"
MEAN = {
    "a mean": "meter.update(accuracy(out, y), len(y))",
    "a sum by the size": "meter.update(hits(out, y), len(y))",
    "of a size that a function tells": "meter.update(sized(out, y), count(y))",
    "a part of a list": "first, second = top(out, y, topk=(1, 2))\n        meter.update(first.item(), x.size(0))",
}


def migrated(folder, main):
    (folder / "main.py").write_text(main)
    (folder / "measures.py").write_text(MEASURES)
    return next(m for m in migrate_all(collect([folder / "main.py"]), Options()) if m.path.stem == "main")


@pytest.mark.parametrize("measure", MEAN.values(), ids=MEAN)
def test_a_mean_is_brought_together(tmp_path, measure):
    main = MAIN.replace("IMPORT", FROM).replace("MEASURE", measure)
    done = migrated(tmp_path, main)
    text = done.data.decode()
    assert "divide_batches" not in text and "update(self.batch_mean(" in text and not done.report.attention
    before = main.replace(FROM, MEASURES)
    one, two = on_one_and_two(tmp_path, before, text.replace(FROM, MEASURES))
    assert (one / "shown").read_text() == (two / "shown").read_text() != ""


def test_by_the_files_name(tmp_path):
    measure = "meter.update(measures.accuracy(out, y), len(y))"
    main = MAIN.replace("IMPORT", "import measures").replace("MEASURE", measure).replace("Meter()", "measures.Meter()")
    assert b"update(self.batch_mean(measures.accuracy(" in migrated(tmp_path, main).data


def test_what_is_no_mean_makes_the_batches_whole(tmp_path):
    main = MAIN.replace("IMPORT", FROM).replace("MEASURE", "meter.update(worst(out, y), len(y))")
    assert b"divide_batches = False" in migrated(tmp_path, main).data
