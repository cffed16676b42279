"""Batches that counted steps draw by hand, of a data set or a collate_fn that moved them: they are placed."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.running import check_on_card, check_project_on_card

DATA = """\
import torch
from torch.utils.data import Dataset


class Data(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x, y = self.x[i] * 2, self.y[i]
        return x.cuda(), y.cuda()


def collate(rows):
    return torch.stack([r[0] for r in rows]).cuda(), torch.stack([r[1] for r in rows]).cuda()
"""
MAIN = """\
import itertools
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def forever(loader):
    YIELDS


torch.manual_seed(0)
X, Y = torch.randn(16, 4), torch.randint(0, 3, (16,))
net = nn.Linear(4, 3).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
it = MADE
for step in range(6):
    x, y = next(it)
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
AFTER"""
AGAIN = "print(net(next(it)[0]).sum().item())\n"  # a second draw: the generator stays
LOADERS = ["DataLoader(Data(X, Y), batch_size=4)", "DataLoader(TensorDataset(X, Y), batch_size=4, collate_fn=collate)"]
CYCLES = ["forever", "itertools.cycle"]
YIELDS = ["while True:\n        for b in loader:\n            yield b", "while True:\n        yield from loader"]


def script(loader=LOADERS[0], cycle="forever", yields=YIELDS[0], after=AGAIN):
    return MAIN.replace("MADE", f"{cycle}({loader})").replace("YIELDS", yields).replace("AFTER", after)


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("cycle, yields", [*(("forever", y) for y in YIELDS), ("itertools.cycle", YIELDS[0])])
def test_of_the_same_file(tmp_path, loader, cycle, yields):
    assert f"{cycle}(on_device({loader}))" in check_on_card(tmp_path, DATA + script(loader, cycle, yields))


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("yields", YIELDS)
def test_what_is_drawn_once_a_step_is_the_trainers(tmp_path, loader, yields):
    result = check_on_card(tmp_path, DATA + script(loader, yields=yields, after=""))
    assert "next(" not in result and "on_device" not in result


def test_of_another_file(tmp_path):
    text = "import torch\nfrom data import *\n" + script()
    assert f"forever(on_device({LOADERS[0]}))" in check_project_on_card(tmp_path, main=text, data=DATA)["main"]


def test_by_a_method(tmp_path):
    head, loop = script(after="").split("it = forever(")
    made, loop = loop.split("\n", 1)
    lines = ["class Trainer:", "    def __init__(self):", f"        self.it = self.forever({made}", ""]
    lines += ["    def forever(self, source):", "        while True:", "            yield from source", ""]
    lines += ["    def train(self):", *(f"        {line}" for line in loop.replace("(it)", "(self.it)").splitlines())]
    text = DATA + head + "\n".join([*lines, "", "Trainer().train()", ""])
    assert "self.forever(on_device(" in check_on_card(tmp_path, text)


LEARNER = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def forever(loader):
    while True:
        for b in loader:
            yield b


class Learner:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        data = TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,)))
        self.loader = DataLoader(data, batch_size=4)
        self.net = nn.Linear(4, 3).to(self.device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train(self, steps):
        it = forever(self.loader)
        for step in range(int(steps)):
            x, y = next(it)
            x, y = x.to(self.device), y.to(self.device)
            loss = nn.functional.cross_entropy(self.net(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            print(step, loss.item())


torch.manual_seed(0)
Learner().train(6)
"""


def test_that_are_moved_where_they_are_drawn(tmp_path):
    """The generator becomes an iterator, which the step makes anew: each of the two is placed, told once."""
    text = check_on_card(tmp_path, LEARNER)
    assert text.count("iter(on_device(") == 2
    said = [e.message for e in migrate_text(LEARNER).edits if "its batches go where" in e.message]
    assert said == ["`it`: its batches go where the Trainer placed the model"]


SOLVER = LEARNER.replace(
    "        it = forever(self.loader)\n", "        it = iter(self.loader)\n        fixed = next(it)[0]\n"
)
SOLVER = SOLVER.replace("            x, y = next(it)\n", """\
            try:
                x, y = next(it)
            except StopIteration:
                it = iter(self.loader)
                x, y = next(it)
""").replace("loss.item())", "loss.item(), self.net(fixed.to(self.device)).sum().item())")  # fmt: skip


def test_of_a_solver_whose_iterator_begins_again(tmp_path):
    """Its method becomes steps, in which the iterator has another name than where the batches were moved."""
    assert check_on_card(tmp_path, SOLVER).count("iter(on_device(") == 2


def test_of_a_solver_in_another_file(tmp_path):
    files = SOLVER.partition("torch.manual_seed")
    main = "import torch\nfrom solver import Learner\n\n" + files[1] + files[2]
    assert check_project_on_card(tmp_path, main=main, solver=files[0])["main"].count("iter(on_device(") == 2


def test_what_no_network_gets_is_drawn_as_it_was():
    text = DATA + script(after="").replace("net(x), y)", "net(X), Y)")
    assert "on_device" not in migrate_text(text).text


def test_what_a_generator_makes_of_batches_is_its_own():
    text = DATA + script(yields="while True:\n        for b in loader:\n            yield b[0], b[1]")
    assert "forever(on_device(" not in migrate_text(text).text


WALRUS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,))), batch_size=4)
net = nn.Linear(4, 3).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    it = iter(loader)
    WHILE
        MOVED
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
"""


MOVED = ["x, y = (t.cuda() for t in batch)", "x, y = batch[0].cuda(), batch[1].cuda()"]
GIVEN = "while (batch := next(it, None)) is not None:"


@pytest.mark.parametrize("moved", MOVED)
def test_that_a_condition_names(tmp_path, moved):
    text = WALRUS.replace("WHILE", "while batch := next(it, ()):").replace("MOVED", moved)
    assert "iter(on_device(self.loader))" in check_on_card(tmp_path, text)


@pytest.mark.parametrize("moved", MOVED)
def test_all_that_a_condition_names_are_the_trainers(tmp_path, moved):
    result = check_on_card(tmp_path, WALRUS.replace("WHILE", GIVEN).replace("MOVED", moved))
    assert "iter(" not in result and "on_device" not in result


def test_what_a_condition_names_and_no_network_gets_is_drawn_as_it_was():
    text = WALRUS.replace("WHILE", GIVEN).replace("MOVED", "x, y = torch.ones(4, 4), torch.ones(4).long()")
    assert "on_device" not in migrate_text(text).text


INITS = """
import os
import torch.distributed as dist

def init(args):
    if int(os.environ.get("SLURM_NTASKS", 1)) > 1:
        args.local_rank = int(os.environ["SLURM_LOCALID"])
        dist.init_process_group("nccl")
        return True
    return False
"""
DIVIDED = """
import argparse
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from inits import init

def main():
    args = argparse.Namespace(local_rank=0)
    args.distributed = init(args)
    device = torch.device("cuda", args.local_rank) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(0)
    net = nn.Linear(4, 2).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(40, 4), torch.arange(40) % 2)
    batches = iter(DataLoader(data, 8 // (dist.get_world_size() if args.distributed else 1), shuffle=True))
    step = 0
    while step < 5:
        x, y = next(batches)
        x, y = x.to(device), y.to(device)
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        print(step, loss.item())

main()
"""


def test_of_a_loader_that_the_edits_changed(tmp_path):
    """The world's part of its batch size goes, though nothing here shows whether there are several processes."""
    text = check_project_on_card(tmp_path, main=DIVIDED, inits=INITS)["main"]
    assert "iter(on_device(DataLoader(data, 8, shuffle=True)))" in text


SIZE, WORLD = "8 // (dist.get_world_size() if args.distributed else 1), shuffle=True", "dist.get_world_size()"


@pytest.mark.parametrize(
    ("given", "after"),
    [
        (f"8 // (1 if not args.distributed else {WORLD})", "8"),
        (f"8 // ({WORLD} if args.distributed else 2)", "8 // (1 if args.distributed else 2)"),
        (f"8 // ({WORLD} if args.distributed else True)", "8 // (1 if args.distributed else True)"),
        (f"8 // ({WORLD} if init(args) else 1)", "8 // (1 if init(args) else 1)"),
        ("8, sampler=torch.utils.data.DistributedSampler(data) if args.distributed else None", "8"),
        ("8, pin_memory=True, pin_memory_device=str(device)", "8, pin_memory=True"),
    ],
)
def test_of_whatever_the_edits_changed_in_it(tmp_path, given, after):
    (tmp_path / "inits.py").write_text(INITS)
    (tmp_path / "main.py").write_text(DIVIDED.replace(SIZE, given))
    done = {m.path.name: m.result for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert f"iter(on_device(DataLoader(data, {after})))" in done["main.py"].text
