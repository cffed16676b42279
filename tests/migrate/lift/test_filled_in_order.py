"""Lists and meters that an evaluation fills and reads whole: divided where its step does nothing else with them."""

import re

import pytest
from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.result import Options

from tests.migrate.lift.test_printed_by_two import HEAD
from tests.migrate.printed_on_two import by_originals, by_results
from tests.migrate.running import check_same

METERS = """
import numpy as np

class Meter:
    def __init__(self):
        self.last, self.sum, self.count, self.avg = 0, 0, 0, 0

    def update(self, value, n=1):
        self.last = value
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count

class Board:
    def __init__(self, meters):
        self.meters, self.rows = meters, []

    def note(self, i):
        self.rows.append((i, [round(m.avg, 4) for m in self.meters]))

history = []

def test(epoch, loader, criterion):
    BEFORE
    model.eval()
    n = 0
    with torch.no_grad():
        for i, (x, y) in enumerate(loader):
            out = model(x)
            loss = criterion(out, y)
            FILLS
            n += x.size(0)
    AFTER
    return n

for epoch in range(2):
    model.train()
    for x, y in train:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    n = test(epoch, valid, criterion)
    print(epoch, n)
print(history)
"""
DIVIDED = {
    "a meter": ("losses = Meter()", "losses.update(loss.item(), x.size(0))", "print(losses.avg, losses.last)"),
    "two meters, one by keyword": (
        "losses, hits = Meter(), Meter()",
        "losses.update(loss.item(), n=x.size(0)); hits.update((out.argmax(1) == y).float().mean().item())",
        "print(losses.avg, hits.sum)",
    ),
    "lists": (
        "guesses, rights, all_ = [], [], []",
        "guesses.append(out); rights += y.tolist(); all_.extend(out.argmax(1).cpu().numpy())",
        "print(torch.cat(guesses).shape, torch.cat(guesses).sum(), rights, np.mean(all_))",
    ),
    "of a dictionary": (
        "found = {'loss': [], 'hits': Meter()}",
        "found['loss'].append(loss.item()); found['hits'].update(float((out.argmax(1) == y).sum()))",
        "print({k: v for k, v in found.items() if k == 'loss'}, found['hits'].avg)",
    ),
    "now and then, one after another": (
        "seen = set(); odd = []",
        "for v in y.tolist():\n                seen.add(v)\n                if v % 2: odd.append((i, v))",
        "print(sorted(seen), odd)",
    ),
    "what shows them": (
        "losses = Meter(); board = Board([losses])",
        "losses.update(loss.item(), len(x))\n            if i % 2 == 0:\n                board.note(i)",
        "print(board.rows)",
    ),
    "over several lines": ("steps = []", "steps.append(  # so far\n                i)", "print(steps)"),
    "what the script keeps": ("pass", "history.append(loss.item())", "pass"),
}
WHOLE = {
    "shown at each step": ("losses = Meter()", "losses.update(loss.item()); print(losses.avg)", "print(losses.sum)"),
    "asked in the step": (
        "guesses = []",
        "if len(guesses) < 2: guesses.append(out)",
        "print(torch.cat(guesses).sum())",
    ),
    "filled from another": (
        "losses, means = Meter(), []",
        "losses.update(loss.item()); means.append(losses.avg)",
        "print(means, losses.avg)",
    ),
    "shown by what holds it": (
        "losses = Meter(); board = Board([losses])",
        "losses.update(loss.item()); board.note(i); print(board.rows[-1])",
        "print(losses.avg)",
    ),
    "a part of what the step reads": (
        "all_ = {'a': Meter()}; losses = all_['a']",
        "losses.update(loss.item()); print(len(all_))",
        "print(losses.avg)",
    ),
    "made anew": ("guesses = torch.zeros(0, 3)", "guesses = torch.cat([guesses, out])", "print(guesses.sum())"),
    "by its elements": ("rows = {}", "rows[i] = loss.item()", "print(rows)"),
    "a metric object": (
        "import torchmetrics; right = torchmetrics.Accuracy(task='multiclass', num_classes=3)",
        "right.update(out, y)",
        "print(right.compute())",
    ),
    "the value of the call": ("rows = {}", "first = rows.setdefault(0, loss.item())", "print(rows)"),
}


def script(before, fills, after):
    return HEAD + METERS.replace("BEFORE", before).replace("FILLS", fills).replace("AFTER", after)


@pytest.mark.parametrize("name", DIVIDED)
def test_what_a_step_only_fills_is_filled_in_order(name):
    result = check_same(script(*DIVIDED[name]), "module")
    assert "self.in_order(" in result and "divide_validation" not in result


@pytest.mark.parametrize("name", WHOLE)
def test_what_a_step_reads_besides_keeps_the_evaluation_whole(name):
    result = check_same(script(*WHOLE[name]), "module")
    assert "in_order" not in result and "divide_validation = False" in result


def test_a_function_that_reads_it_meanwhile_keeps_the_evaluation_whole():
    text = script("pass", "history.append(loss.item()); told()", "pass")
    text = text.replace("history = []", "history = []\n\ndef told():\n    return len(history)\n")
    assert "divide_validation = False" in check_same(text, "module")


def test_lightning_has_no_order():
    result = migrate_text(script(*DIVIDED["a meter"]), Options(framework="lightning"))
    assert "in_order" not in result.text and "self.test_losses.update" in result.text.replace(
        "self.losses", "self.test_losses"
    )


def test_an_evaluation_of_whole_batches_fills_at_once():
    whole = script(*DIVIDED["a meter"]).replace(
        "loss = criterion(model(x), y)", "loss = (model(x) @ model(x).t()).mean()"
    )
    result = check_same(whole, "module")
    assert "divide_batches = False" in result and "in_order" not in result


@pytest.mark.slow
def test_two_processes_print_what_one_printed(tmp_path):
    texts = [script(*DIVIDED[name]) for name in DIVIDED]
    for before, after in zip(by_originals(tmp_path, texts), by_results(tmp_path, texts), strict=True):
        numbers = [[float(n) for n in re.findall(r"[-\d.]*\d(?:e-?\d+)?", each)] for each in (before, after)]
        assert numbers[0] and numbers[1] == pytest.approx(numbers[0], rel=1e-4)
