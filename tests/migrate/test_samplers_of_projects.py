# ruff: noqa: E501
"""T4 over several files: a sampler that another file takes stays, and its epochs with it."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

DATA = (
    "import torch\nfrom torch.utils.data import DataLoader, DistributedSampler, RandomSampler\n\nd = torch.ones(8, 2)\n"
)
MAIN = """\
import torch
import torch.distributed as dist
{}

dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
opt = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    {}
    for x in {}:
        opt.zero_grad()
        model(x).sum().backward()
        opt.step()
"""
PLAIN = "s = DistributedSampler(d)\nt = DataLoader(d, 4, sampler=s)\n"
CLASS = "class Data:\n    def __init__(self):\n        self.s = DistributedSampler(d)\n        self.t = DataLoader(d, sampler=self.s)\n"
RETURNED = "def make():\n    s = DistributedSampler(d)\n    return DataLoader(d, sampler=s), s\n\nmake()\n"
CHOSEN = "if many:\n    s = DistributedSampler(d)\nelse:\n    s = RandomSampler(d)\nt = DataLoader(d, sampler=s)\n"


def migrated(path, data, taken, epochs, loader):
    (path / "data.py").write_text(DATA + data)
    (path / "main.py").write_text(MAIN.format(taken, epochs, loader))
    done = migrate_all(collect([path / "main.py"]), Options())
    return {m.path.name: m.data.decode() for m in done}


@pytest.mark.parametrize(
    ("data", "taken", "epochs", "loader"),
    [
        (PLAIN, "from data import s, t", "s.set_epoch(epoch)", "t"),
        (PLAIN, "import data", "data.s.set_epoch(epoch)", "data.t"),
        (CLASS, "import data\nall = data.Data()", "all.s.set_epoch(epoch)", "all.t"),
        (RETURNED, "from data import make\nt, s = make()", "t.sampler.set_epoch(epoch)", "t"),
    ],
)
def test_a_sampler_that_another_file_takes_stays(tmp_path, data, taken, epochs, loader):
    texts = migrated(tmp_path, data, taken, epochs, loader)
    assert "DistributedSampler(d, num_replicas=1, rank=0)" in texts["data.py"]
    assert ".set_epoch(" in texts["main.py"]


@pytest.mark.parametrize("data", [PLAIN, CHOSEN])
def test_one_that_goes_has_no_epochs_anywhere(tmp_path, data):
    texts = migrated(tmp_path, data, "from data import t", "t.sampler.set_epoch(epoch)", "t")
    assert "DistributedSampler(" not in texts["data.py"] and "set_epoch" not in texts["main.py"]


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("shuffle and sampler is None", "shuffle"),
        ("sampler is None and shuffle", "shuffle"),
        ("sampler is None", "True"),
        ("not sampler", "True"),
    ],
)
def test_the_choice_of_a_launched_script_leaves_what_the_plain_one_says(given, left):
    text = (
        "import os\nimport torch\nimport torch.distributed as dist\nfrom torch.utils.data import DataLoader, DistributedSampler\n"
        "RANK = int(os.getenv('RANK', -1))\nif RANK != -1:\n    dist.init_process_group('gloo')\n\n"
        "def create(d, rank=-1, shuffle=False):\n    sampler = None if rank == -1 else DistributedSampler(d, shuffle=shuffle)\n"
        f"    return DataLoader(d, 4, shuffle={given}, sampler=sampler)\n\ncreate(d, rank=RANK, shuffle=True)\n"
    )
    assert f"return DataLoader(d, 4, shuffle={left})\n" in migrate_text(text).text


STAYS = "s = DistributedSampler(d)\nprint(len(s))\nu = DataLoader(d, sampler=s)\n"
STARTS = "for loader in t, u:\n        start(loader, epoch)"
MADE = "from data import t, u\n\ndef start(loader, epoch):\n    loader.sampler.set_epoch(epoch)\n"


@pytest.mark.parametrize("guarded", [False, True])
def test_epochs_of_one_that_goes_and_one_that_stays(tmp_path, guarded):
    goes = "t = DataLoader(d, sampler=DistributedSampler(d))\n"
    made = (
        MADE.replace("    loader", '    if hasattr(loader.sampler, "set_epoch"):\n        loader') if guarded else MADE
    )
    text = migrated(tmp_path, goes + STAYS, made, STARTS, "t")["main.py"]
    assert text.count('    if hasattr(loader.sampler, "set_epoch"):\n        loader.sampler.set_epoch(epoch)\n') == 1
