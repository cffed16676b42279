"""Epochs that make their loader anew and begin with a schedule's step: the loader is made before there is one."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn, optim

x = torch.randn(40, 4)
y = (x[:, 0] > 0).long()


def train(model, optimizer, epoch):
    model.train()
    order = torch.randperm(len(x))
    total = 0
    for at in order.split({size}):
        loss = nn.functional.cross_entropy(model(x[at]), y[at])
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    print(f'{{epoch}} {{total:.6f}}')


def main():
    model = nn.Linear(4, 2)
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    for epoch in range(1, 4):
        print('epoch', epoch)
        {first}
        train(model, optimizer, epoch)


main()
"""


@pytest.mark.parametrize(
    "first",
    [
        "scheduler.step()",
        "scheduler.step()\n        print('lr', scheduler.get_last_lr())",
        "for g in optimizer.param_groups:\n            g['lr'] = 0.5 / epoch",
    ],
    ids=["a step", "a step and a line about it", "a rate by hand"],
)
def test_steps_wait_for_the_optimizers(first):
    result = check_same(TEXT.format(size=8, first=first), "manual")
    made, started = result.split("def train_dataloader(self):")[1].split("def on_train_epoch_start(self):")
    assert "lr" not in made and "torch.randperm" in made
    assert first.split("\n")[0].split(" in ")[0].split(".")[-1] in started


@pytest.mark.parametrize("name", ["rate", "told"], ids=["by its name", "by another"])
def test_what_reads_a_value_of_the_steps_waits_too(name):
    text = TEXT.format(size=8, first="scheduler.step()\n        rate = scheduler.get_last_lr()[0]")
    text = text.replace("train(model, optimizer, epoch)\n\n", "train(model, optimizer, epoch, rate)\n\n")
    text = text.replace("def train(model, optimizer, epoch):", f"def train(model, optimizer, epoch, {name}):")
    text = text.replace("    total = 0\n", f"    rates.append({name})\n    print(rates)\n    total = 0\n")
    result = check_same(text.replace("y = (x", "rates = []\ny = (x"), "manual")
    assert "rates.append" in result.split("def on_train_epoch_start(self):")[1]


def test_a_loader_that_asks_for_the_rate_keeps_the_loop():
    text = TEXT.format(size="int(rate * 16)", first="rate = scheduler.get_last_lr()[0]")
    text = text.replace("model, optimizer, epoch)", "model, optimizer, epoch, rate)")
    assert migrate_text(text).plan == "loop"
    assert migrate_text(text.replace("rate * 16", "r * 16").replace("epoch, rate):", "epoch, r):")).plan == "loop"


def test_without_a_loader_of_its_own_the_epoch_starts_as_before():
    text = TEXT.format(size=8, first="scheduler.step()").replace("    order = torch.randperm(len(x))\n", "")
    text = text.replace("y = (x", "order = torch.arange(40)\nbatches = order.split(8)\ny = (x")
    text = text.replace("order.split(8):", "batches:")
    result = check_same(text, "manual")
    assert "def train_dataloader" not in result and "def on_train_epoch_start" in result


@pytest.mark.parametrize(("by_name", "given"), [("size", "epoch, size=8"), ("size=8", "epoch")])
def test_what_only_the_loader_reads_of_the_functions_parameters_is_known(by_name, given):
    text = TEXT.format(size="size", first="print('first')").replace("epoch):", f"epoch, {by_name}):", 1)
    text = text.replace("train(model, optimizer, epoch)\n\n", f"train(model, optimizer, {given})\n\n")
    assert "size = 8" in check_same(text, "manual").split("def train_dataloader(self):")[1]
