"""The number of an epoch that its loop makes another: counted from there, or the loop is kept."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests import forked
from tests.migrate.lift.test_same_run import HEAD, NESTED
from tests.migrate.running import check_same

HEADER = "for epoch in range(args.epochs):\n"
OWN_FUNCTION = (
    HEAD
    + """
def train(epoch):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())

begin = 2
for epoch in range(begin, args.epochs + begin):
    epoch += 1
    train(epoch)
    if epoch % 2:
        print('odd', epoch)
print(epoch)
"""
)
COUNTED = {
    "from 0": (NESTED.replace(HEADER, f"{HEADER}    epoch += 1  # from 1\n"), "max_epochs=args.epochs"),
    "from a name": (OWN_FUNCTION, "max_epochs=args.epochs"),
    "to a name": (
        OWN_FUNCTION.replace("args.epochs + begin", "args.epochs").replace("begin = 2", "begin = args.epochs - 1"),
        "max_epochs=max(args.epochs - begin, 0)",
    ),
    "to a number": (NESTED.replace(HEADER, "for epoch in range(1, 3):\n    epoch += 2\n"), "max_epochs=2"),
}
KEPT = [
    f"{HEADER}    epoch += 1; print('begins')\n",
    f"{HEADER}    print(epoch)\n    epoch += 1\n",
    f"{HEADER}    epoch += 1\n    epoch *= 2\n",
    f"{HEADER}    epoch += args.epochs\n",
    f"{HEADER}    epoch -= 1\n",
    f"{HEADER}    if args.epochs > 1:\n        epoch = 7\n",
    "import itertools\nfor epoch in itertools.count():\n    if epoch > 1:\n        break\n    epoch += 1\n",
]


@pytest.mark.parametrize(("text", "says"), COUNTED.values(), ids=COUNTED.keys())
def test_it_counts_from_there(text, says):
    assert says in check_same(text, "module")


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_behind_its_last_epoch_a_run_trains_nothing(ahead, tmp_path):
    text = OWN_FUNCTION.replace("args.epochs + begin", "args.epochs").replace(
        "begin = 2", f"begin = epoch = 2 + {ahead}"
    )
    script = tmp_path / "script.py"
    script.write_text(migrate_text(text).text)
    done = forked.run(script, "--epochs", "2")
    assert (done.returncode, done.stdout) == (0, f"{2 + ahead}\n"), done.stderr


@pytest.mark.parametrize("header", KEPT)
def test_another_number_keeps_the_loop(header):
    check_same(NESTED.replace(HEADER, header), "loop")


ENDLESS = """
import itertools
import torch
from torch import nn

xs = torch.randn(8, 4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(xs, xs.sum(1, keepdim=True)), batch_size=4)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
begin = 3
for epoch in COUNT:
    for x, y in loader:
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    print(epoch)
    if epoch > 4:
        break
print(epoch)
"""


@pytest.mark.parametrize("count", ["", "1", "begin", "start=begin - 1"])
def test_a_count_without_end_begins_where_it_says(count):
    assert "max_epochs=-1" in check_same(ENDLESS.replace("COUNT", f"itertools.count({count})"), "module")


@pytest.mark.parametrize("count", ["1, 2", "begin, step=2", "step=2"])
def test_a_count_by_more_than_one_keeps_the_loop(count):
    check_same(ENDLESS.replace("COUNT", f"itertools.count({count})"), "loop")


@pytest.mark.parametrize("count", ["range(begin, 7)", "itertools.count(begin)"])
@pytest.mark.parametrize("sets", ["begin = epoch", "begin += 1", "moved()"])
def test_where_it_began_is_another_number_in_the_epochs(count, sets):
    function = "def moved():\n    global begin\n    begin += 1\n\n"
    text = ENDLESS.replace("COUNT", count).replace("begin = 3\n", f"begin = 3\n{function}")
    text = text.replace("    print(epoch)\n", f"    print(epoch)\n    {sets}\n", 1)
    assert "first_epoch = begin" in check_same(text, "module")


OF_A_CLASS = """
import torch
from torch import nn

xs = torch.randn(8, 4)
data = torch.utils.data.TensorDataset(xs, xs.sum(1, keepdim=True))


class Training:
    def __init__(self):
        self.epoch, self.epochs = 2, 6
        self.net = nn.Linear(4, 1)
        self.loader = torch.utils.data.DataLoader(data, batch_size=4)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def one_epoch(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = ((self.net(x) - y) ** 2).mean()
            loss.backward()
            self.optimizer.step()
        print(self.epoch, loss.item())

    def train(self):
        for epoch in range(self.epoch, self.epochs):
            self.epoch = epoch
            self.one_epoch()
        print(epoch)


Training().train()
"""


def test_an_attribute_that_the_epochs_set_is_where_they_began():
    assert "first_epoch = self.epoch" in check_same(OF_A_CLASS, "module")


def test_an_attribute_that_they_leave_alone_is_asked_as_it_is():
    text = OF_A_CLASS.replace("            self.epoch = epoch\n", "            self.last = epoch\n")
    assert "first_epoch" not in check_same(text, "module")


IN_TRAIN = (
    HEAD
    + """
def train(args, last):
    last = last - 1
    for epoch in range(max(0, last), 3):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


train(args, 2)
"""
)


def test_a_start_that_only_the_function_around_sets_is_the_same_in_every_epoch():
    """`model.train()` is no call of the script's own train(), which sets `last`: the start got a name twenty times."""
    assert "first_epoch" not in check_same(IN_TRAIN, "module")
    text = check_same(
        IN_TRAIN.replace("        model.train()\n", "        model.train()\n        last = epoch\n"), "module"
    )
    assert text.count("first_epoch = max(0, last)") == 1 and "first_epoch_" not in text


RETURNED = """
import torch
from torch.utils.data import DataLoader, TensorDataset

def train(model, optimizer, loader, epoch):
    total = 0.0
    model.train()
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return GIVEN, total

def valid(model, loader, epoch):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
    return GIVEN, right

def main():
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,))), batch_size=4)
    for epoch in range(1, 4):
        scores = train(model, optimizer, loader, epoch)
        seen = valid(model, loader, epoch)
        print(scores, seen)

main()
"""


@pytest.mark.parametrize("given", ["epoch", "epoch * 2", "f'{epoch}:'"])
def test_a_number_that_the_passes_give_back(given):
    """Nothing but what they return reads it there: the hook had no such name."""
    check_same(RETURNED.replace("GIVEN", given), "module")
