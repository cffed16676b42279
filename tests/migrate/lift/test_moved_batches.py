"""Loops over loaders that stay in the script: where they moved their batches, the runtime does."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
torch.manual_seed(0)
xs = torch.randn(16, 4)
train_loader, test_loader = DataLoader(xs, batch_size=4), DataLoader(xs, batch_size=8)
model = nn.Linear(4, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x in train_loader:
        x = x.to(device)
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
for x in test_loader:
    x = x.to(device)
    print(f'{USES.sum().item():.5f}')
"""
MOVED = ["model(x)", "model.forward(x)", "torch.relu(model.weight @ x.t())"]


@pytest.mark.parametrize("uses", MOVED)
def test_a_loop_that_moved_its_batches_gets_them_where_the_trainer_placed_the_model(uses):
    assert "for x in on_device(test_loader):\n    rank_zero_print" in check_same(TEXT.replace("USES", uses), "module")


@pytest.mark.parametrize("uses", ["x.numpy()", "(x * 2)"])
def test_one_that_did_not_keeps_them_where_they_are(uses):
    text = TEXT.replace("USES", uses).replace("    x = x.to(device)\n    print", "    print")
    assert "on_device" not in check_same(text, "module")


def test_nor_one_that_moved_something_else():
    text = TEXT.replace("USES", "x").replace("    x = x.to(device)\n    print", "    model.to(device)\n    print")
    assert "on_device" not in check_same(text, "module")


DRAWN = (
    TEXT[: TEXT.index("for epoch")]
    + """
def forever(loader):
    while True:
        yield from loader

test_iter, endless = iter(test_loader), forever(test_loader)
for epoch in range(2):
    for i, x in enumerate(train_loader):
        x = x.to(device)
        DRAW
        z = MOVED
        loss = (model(x) - x).pow(2).mean() + model(z).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
)
AGAIN = """try:
            other = next(test_iter)
        except StopIteration:
            test_iter = iter(test_loader)
            other = next(test_iter)"""
DRAWS = [
    ("other = next(iter(test_loader))", "next(iter(on_device(self.test_loader)))"),
    ("_, other = next(enumerate(test_loader, 0))", "next(enumerate(on_device(self.test_loader), 0))"),
    ("other = next(iter(test_loader))[:4]", "next(iter(on_device(self.test_loader)))[:4]"),
    (AGAIN, "self.test_iter = iter(on_device(self.test_loader))"),
]


@pytest.mark.parametrize(("draw", "placed"), DRAWS)
def test_batches_drawn_by_hand_come_from_a_loader_that_places_them(draw, placed):
    result = check_same(DRAWN.replace("DRAW", draw).replace("MOVED", "other.to(device)"), "module")
    assert placed in result and "z = other\n" in result


def test_every_iterator_of_the_loader_does():
    result = check_same(DRAWN.replace("DRAW", AGAIN).replace("MOVED", "other.to(device)"), "module")
    assert result.count("iter(on_device(") == 2


@pytest.mark.parametrize("draw", [draw for draw, _ in DRAWS])
def test_those_that_were_not_moved_stay_where_they_are(draw):
    assert "on_device" not in check_same(DRAWN.replace("DRAW", draw).replace("MOVED", "torch.zeros_like(x)"), "module")


def test_what_else_gives_batches_leaves_the_move():
    text = DRAWN.replace("yield from loader", "yield from map(torch.clone, loader)")
    result = check_same(text.replace("DRAW", "other = next(endless)").replace("MOVED", "other.to(device)"), "module")
    assert "z = other.to(x.device)" in result and "on_device" not in result


def test_an_evaluation_within_a_step_whose_count_is_read_behind_it():
    """Its loop counts in an attribute, and was not seen: the batches stayed on the CPU."""
    inner = (
        "        model.eval()\n        with torch.no_grad():\n            for j, x in enumerate(test_loader):\n"
        "                total = model(x.to(device)).sum()\n        print(f'{total.item() / (j + 1):.5f}')\n"
    )
    text = TEXT[: TEXT.index("for x in test_loader")].replace(
        "    optimizer.step()\n", "    optimizer.step()\n" + inner
    )
    assert "in enumerate(on_device(self.test_loader)):" in check_same(text, "manual")


SHOWN = """
def show(model, loader):
    x = next(iter(loader))
    y = model(MOVED)
    print(x.numpy().sum() > 0, f'{y.sum().item():.5f}')

show(model, test_loader)
"""


@pytest.mark.parametrize("moved", ["x.to(device)", "x[:2].to(device)"])
def test_what_is_drawn_stays_where_the_script_has_it_and_moves_what_the_network_gets(tmp_path, moved):
    text = TEXT[: TEXT.index("for x in test_loader")] + SHOWN.replace("MOVED", moved)
    assert "iter(loader)" in check_on_card(tmp_path, text)


def test_a_loop_within_a_try_asks_for_cuda_before_it_waits_for_it():
    text = TEXT.replace("USES", "x").replace(
        "        optimizer.step()\n", "        optimizer.step()\n        torch.cuda.synchronize()\n"
    )
    start, stop = text.index("for epoch"), text.index("for x in test")
    inner = "".join(f"    {line}\n" for line in text[start:stop].splitlines())
    text = f"{text[:start]}try:\n{inner}except RuntimeError:\n    print('ended')\n{text[stop:]}"
    assert "if torch.cuda.is_available():\n            torch.cuda.synchronize()" in migrate_text(text).text


ENGINE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Engine:
    def __init__(self, model, device):
        self.device = device
        self.model = model.to(self.device)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def move(self, batch):
        return tuple(t.to(self.device) for t in batch)

    def loss(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self.model(x), y)

    def fit(self, train, val):
        for epoch in range(2):
            for batch in train:
                loss = self.loss(self.move(batch))
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            print(epoch, '%.5f' % self.evaluate(val))

    def evaluate(self, val):
        return SUM


torch.manual_seed(0)
ds = TensorDataset(torch.randn(18, 4), torch.randint(0, 3, (18,)))
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
Engine(nn.Linear(4, 3), device).fit(DataLoader(ds, 5), DataLoader(ds, 6))
"""


@pytest.mark.parametrize(
    "total",
    [
        "sum(self.loss(self.move(b)).item() for b in val) / len(val)",
        "sum([self.loss(self.move(b)).item() for b in val])",
        "sum(self.loss(self.move((x, y))).item() for x, y in val)",
    ],
)
def test_an_evaluation_in_an_expression_whose_batches_a_method_moved(tmp_path, total):
    assert "in on_device(val)" in check_on_card(tmp_path, ENGINE.replace("SUM", total))


MOVER = """
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')


def move(batch):
    x, y = batch
    return x.to(device), y.to(device)


class Engine"""


def test_an_evaluation_in_an_expression_whose_batches_a_function_moved(tmp_path):
    text = ENGINE.replace("SUM", "sum(self.loss(move(b)).item() for b in val)").replace("self.move(", "move(")
    assert "in on_device(val)" in check_on_card(tmp_path, text.replace("\nclass Engine", MOVER))


SEES = """
    def total(self, rows):
        for row in rows:
            seen.move(row)
        return 0

    def evaluate"""


def test_a_method_of_that_name_of_something_else_moved_nothing():
    text = ENGINE.replace("SUM", "self.total(val)").replace("\n    def evaluate", SEES)
    assert "on_device" not in migrate_text(text.replace("ds = Tensor", "seen = Seen()\nds = Tensor")).text


def test_what_such_a_method_did_not_move_stays():
    text = ENGINE.replace("SUM", "sum(len(b[0]) for b in val)")
    assert "on_device" not in migrate_text(text).text


ANEW = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(40, 4), torch.arange(40) % 2), batch_size=8)
net = nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for i, batch in enumerate(loader):
        FIRST
        x = x.to(device)
        y = y.to(device).long()
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 3 == 0:
            y = y.cpu().numpy()
            print(epoch, i, y.mean(), loss.item())
"""


def test_a_name_that_a_branch_below_gives_something_else(tmp_path):
    text = check_on_card(tmp_path, ANEW.replace("FIRST", "x, y = batch"))
    assert "y = y.long()" in text and "x = x" not in text


def test_a_name_that_is_not_bound_anew_in_each_step(tmp_path):
    """What the branch leaves on the CPU is there in the next step."""
    text = ANEW.replace("FIRST", "if i % 3 != 1:\n            x, y = batch").replace("numpy()", "float()")
    assert "self.y = self.y.to(self.x.device).long()" in check_on_card(tmp_path, text)
