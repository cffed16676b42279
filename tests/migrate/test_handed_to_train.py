"""Files that say nothing of torch, and train or compute with what others of their project hand them."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.verify.runs import python, run

EPOCH = """
def train_one_epoch(model, loader, criterion, optimizer, device):
    total = 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)
"""
CLIENT = """
class Client:
    def __init__(self, model, loader, criterion, optimizer, device):
        self.model, self.loader, self.criterion = model, loader, criterion
        self.optimizer, self.device = optimizer, device

    def update(self, epochs):
        for epoch in range(epochs):
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x.to(self.device)), y.to(self.device))
                loss.backward()
                self.optimizer.step()
            print(loss.item())
"""
SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from engine import {name}

torch.manual_seed(0)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
model = torch.nn.Linear(4, 2).to(device)
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(30, 4)
loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8, shuffle=True)
"""
TRAINS = "for epoch in range(2):\n    print(train_one_epoch(model, loader, criterion, optimizer, device))\n"
SCRIPTS = {
    "a function": (EPOCH, SCRIPT.format(name="train_one_epoch") + TRAINS),
    "a class": (
        CLIENT,
        SCRIPT.format(name="Client") + "Client(model, loader, criterion, optimizer, device).update(2)\n",
    ),
}


def migrated(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    done = migrate_all(collect([folder / "train.py"]), Options())
    return {m.path.stem: m for m in done}


@pytest.mark.parametrize("shape", SCRIPTS)
def test_a_loop_without_the_word_is_lifted(tmp_path, forked_runs, shape):
    engine, script = SCRIPTS[shape]
    done = migrated(tmp_path, engine=engine, train=script)
    assert done["train"].report.plan == "module" and "backward" not in done["train"].data.decode()
    before = run(python(), tmp_path / "train.py", [], tmp_path / "before", 100)
    for m in done.values():
        m.path.write_bytes(m.data)
    after = run(python(), tmp_path / "train.py", [], tmp_path / "after", 100)
    assert before.ok and after.ok, (before.output, after.output)
    assert before.output == after.output and before.losses == after.losses and len(before.losses[0]) == 8


def test_one_that_is_reached_through_others_is_kept_on_the_runtime(tmp_path):
    engine, script = SCRIPTS["a class"]
    done = migrated(tmp_path, engine="from client import Client\n", client=engine, train=script)
    assert done["client"].report.plan == "loop" and "runtime.backward(loss)" in done["client"].data.decode()
    assert [n.code for n in done["client"].report.attention] == ["PTM703"]


def test_what_trains_something_else_is_left(tmp_path):
    engine, script = SCRIPTS["a function"]
    script = script.replace("torch", "frame")
    done = migrated(tmp_path, engine=engine, train=script)
    assert done["engine"].data.decode() == engine and done["train"].data.decode() == script


LOSS = """
import torch
from losses import loss_of
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(torch.randn(32, 4), batch_size=8):
    optimizer.zero_grad()
    loss = loss_of(model(x))
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("computes", "says"),
    [
        ("(y ** 2).sum()", 'loss_reduction = "sum"'),
        ("((y - y.mean(0)) ** 2).mean()", "divide_batches = False"),
        ("(y ** 2).mean()", "class LinearModule(Module):"),
    ],
)
def test_a_loss_without_the_word_is_followed(tmp_path, computes, says):
    losses = f"def loss_of(y):\n    return {computes}\n"
    text = migrated(tmp_path, losses=losses, train=LOSS)["train"].data.decode()
    kinds = ('loss_reduction = "sum"', "divide_batches = False")
    assert says in text and [k for k in kinds if k in text] == [k for k in kinds if k == says]
