"""Loaders that the epoch loop makes anew for a pass, whether it gives them by name or writes them into the call."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
data = torch.randn(6, 2)


def make(n):
    return DataLoader(torch.randn(n, 2), 2)


def train(model, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())


def test(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x in loader:
            total += model(x).sum().item()
    print("test", total)
    model.train()


model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = make(4)
for epoch in range(2):
    {first}
    train(model, {trained}, optimizer)
    {tested}
"""


@pytest.mark.parametrize(
    ("first", "trained"),
    [
        ("pass", "make(4)"),
        ("pass", "DataLoader(torch.randn(4, 2), 2)"),
        ("pass", "loader=DataLoader(data[:2 + 2 * epoch], 2)"),
        ("new = make(2 + 2 * epoch)", "new"),
        ("part = data[:2 + 2 * epoch]", "DataLoader(part, 2)"),
    ],
)
def test_each_epoch_trains_on_its_own(first, trained):
    """They were made once: the second epoch trained on the first one's batches, or a name was not there."""
    text = TEXT.format(first=first, trained=trained, tested="pass")
    text = text.replace("loader=DataLoader(data[:2 + 2 * epoch], 2), optimizer", "optimizer=optimizer, " + trained)
    assert "reload_dataloaders_every_n_epochs=1" in check_same(text, "module")


@pytest.mark.parametrize("trained", ["loader", "DataLoader(data, 2, shuffle=True)", "DataLoader(data, len(data) // 3)"])
def test_one_that_is_the_same_is_made_once(trained):
    text = TEXT.format(first="pass", trained=trained, tested="test(model, DataLoader(data, 4))")
    result = check_same(text, "module")
    assert "reload_dataloaders" not in result and "def validation_step" in result


@pytest.mark.parametrize(
    "tested",
    ["test(model, make(4))", "test(model, DataLoader(data * epoch, 2))", "new = make(4)\n    test(model, new)"],
)
def test_an_evaluation_of_its_own_data_in_each_epoch_stays_as_it_is(tested):
    text = TEXT.format(first="pass", trained="loader", tested=tested)
    assert "def validation_step" not in check_same(text, "module")
    assert any("made anew in every epoch" in n.message for n in migrate_text(text).attention)


COUNTED = """
import torch
from torch import nn

torch.manual_seed(0)


def train(model, steps, optimizer):
    for i in range(steps):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 2) * i).mean()
        loss.backward()
        optimizer.step()


model, steps, sizes = nn.Linear(2, 1), 2, [1, 2, 3]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    {first}
    train(model, {given}, optimizer)
print(steps)
"""


@pytest.mark.parametrize(
    ("first", "given", "anew"),
    [
        ("steps = 3 - epoch", "steps", True),  # the first number of steps was that of every epoch
        ("steps += 1", "steps", True),
        ("count = 3 - epoch", "count", True),  # it had no value above the loop
        ("pass", "epoch + 1", True),
        ("pass", "steps", False),
        ("pass", "len(sizes)", False),
    ],
)
def test_each_epoch_makes_as_many_steps_as_it_is_given(first, given, anew):
    text = COUNTED.format(first=first, given=given)
    result = migrate_text(text)
    assert ("def train_dataloader" in result.text) is anew
    assert check_same(text, result.plan) and result.plan in ("module", "manual")


RATES = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
args = argparse.Namespace(lr=0.1, first=0.1, size=4)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def adjust(optimizer, epoch{parameter}):
    args.lr = args.first * 0.5 ** epoch
    for group in optimizer.param_groups:
        group["lr"] = args.lr


def train(model, optimizer, epoch, own):
    loader = DataLoader(torch.randn(args.size + epoch, 2), 2)
    {reads}
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())
    print(note)


note = ""
for epoch in range(3):
    adjust(optimizer, epoch{given})
    train(model, optimizer, epoch, args)
"""


@pytest.mark.parametrize(
    "reads",
    ["print('epoch', epoch, len(loader.dataset), args.lr)", "global note; note = f'rate {own.lr}'", "print('begins')"],
)
@pytest.mark.parametrize(("parameter", "given"), [("", ""), (", args", ", args")])
def test_what_reads_a_rate_that_a_function_sets_comes_after_it(reads, parameter, given):
    """The loader is made before there is a rate: what was printed above the batches had that of the epoch before."""
    text = check_same(RATES.format(reads=reads, parameter=parameter, given=given), "module")
    assert "def train_dataloader" in text


def test_a_loader_by_such_a_rate_keeps_the_loop():
    text = RATES.format(reads="pass", parameter="", given="").replace("args.size + epoch", "int(8 * args.lr / 0.1)")
    check_same(text, "loop")
