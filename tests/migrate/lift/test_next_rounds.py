"""A loop around the epochs, over stages or folds: what one training leaves and the next begins with comes back."""

import pytest

from tests.migrate.running import check_same, on_one_and_two

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Linear(4, 1)
step, best = 0, 100.0


def train(model, loader, optimizer):
    global step
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y) * 0.99 ** step
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    return loss.item()


for stage in range(2):
    loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 / (stage + 1))
    # begins
    for epoch in range(2):
        got = train(model, loader, optimizer)
        if got < best:
            best = got
        print(epoch, step, f"{best:.5f}")
"""
FIRST, OUTER = "for stage in range(2):\n", "    # begins\n"


@pytest.mark.parametrize(
    ("changes", "back"),
    [
        ({}, {"step", "best"}),
        ({OUTER: "    best = 100.0\n"}, {"step"}),
        ({OUTER: "    step = 0\n"}, {"best"}),
        ({OUTER: "    step, best = 0, 100.0\n"}, set()),
        ({FIRST: "stage = -1\nwhile best > 0.6:\n    stage += 1\n", OUTER: "    step = 0\n"}, {"best"}),
        ({FIRST: "for stage in range(1):\n"}, {"step", "best"}),
        ({FIRST: "if True:\n    stage = 0\n"}, set()),
    ],
)
def test_what_the_next_round_reads_comes_back(changes, back):
    text = TEXT
    for old, new in changes.items():
        text = text.replace(old, new)
    migrated = check_same(text, "module")
    assert {name for name in ("step", "best") if f"    {name} = module.{name}\n" in migrated} == back


INLINE = TEXT.replace("def train", "def stepped").replace(
    "        got = train(model, loader, optimizer)\n        if got < best:\n            best = got\n",
    "        for x, y in loader:\n            loss = nn.functional.mse_loss(model(x), y)\n"
    "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n"
    "            step += 1\n"
    "        print(loss.item())\n",
)
INLINE = INLINE[: INLINE.index("def stepped")] + INLINE[INLINE.index("for stage") :]


def test_the_loss_of_the_last_batch_is_none_of_it():
    migrated = check_same(INLINE, "module")
    assert "    step = module.step\n" in migrated and "loss = module" not in migrated


FOUND = TEXT.replace(
    "        if got < best:\n            best = got\n",
    "        if got < best:\n            best, found = got, (stage, epoch)\n",
)


@pytest.mark.parametrize("first", ["    # begins\n", "    lr = 0.0 if stage else 0.1\n"])
def test_what_only_some_rounds_find_is_not_lost_in_others(first):
    """The last stage finds no better one: the name had no value in its Module, and got that."""
    text = FOUND.replace(OUTER, first).replace("(stage + 1)", "(stage + 1), maximize=stage > 0")
    migrated = check_same(text + "print(found)\n", "module")
    assert '    if hasattr(module, "found"):\n        found = module.found\n' in migrated


def test_a_name_that_a_nearer_loop_begins_anew_does_not_come_back():
    head, loop = TEXT.split(FIRST)
    nested = "".join(f"    {line}\n" if line else "\n" for line in (FIRST + loop).splitlines())
    nested = nested.replace("    # begins\n", "    best = 100.0\n")
    migrated = check_same(f"{head}for turn in range(2):\n{nested}", "module")
    assert "best = module" not in migrated and "step = module.step" in migrated


SUMS = INLINE.replace("step += 1", "step += len(x)").replace("        print(loss.item())\n", "")


@pytest.mark.parametrize(("begins", "whole"), [("    # begins\n", True), ("    step = 0\n", False)])
def test_a_sum_that_goes_on_over_trainings_is_one_of_whole_batches(begins, whole, tmp_path, monkeypatch):
    """Every process would begin the next one with what all have seen."""
    monkeypatch.chdir(tmp_path)
    shown = 'with open("seen", "a") as file:\n            print(epoch, step, file=file)'
    text = SUMS.replace(OUTER, begins).replace('print(epoch, step, f"{best:.5f}")', shown)
    migrated = check_same(text, "module")
    assert ("divide_batches = False" in migrated) is whole
    one, two = on_one_and_two(tmp_path, text, migrated)
    assert (one / "seen").read_text() == (two / "seen").read_text() != ""
