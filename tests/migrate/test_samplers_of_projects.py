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


OWN = """\
import torch.distributed as dist
from torch.utils.data import DistributedSampler, Sampler


"""
REPEATS = "    def __iter__(self):\n        return iter([i for i in super().__iter__() for _ in range(2)])\n"
BASED = "class DistributedTwice(DistributedSampler):\n"
TOLD = (
    BASED
    + "    def __init__(self, data, num_replicas=None, rank=None):\n        super().__init__(data, num_replicas, rank)\n\n"
)
SPREAD = BASED + "    def __init__(self, data, **more):\n        super().__init__(data, **more)\n\n"
RANKED = """\
class DistributedTwice(Sampler):
    def __init__(self, data, num_replicas=None, rank=None):
        if num_replicas is None:
            num_replicas = dist.get_world_size()
        if rank is None:
            rank = dist.get_rank()
        self.data, self.num_replicas, self.rank = data, num_replicas, rank

    def __iter__(self):
        return iter([*range(len(self.data))][self.rank :: self.num_replicas])
"""
TAKES = "from torch.utils.data import DataLoader\nfrom data import {}\ns = {}\nloader = DataLoader(torch.ones(8, 2), 4, sampler=s)"


def with_own(path, own, made, name="DistributedTwice"):
    (path / "data.py").write_text(OWN + own)
    taken = TAKES.format(name, made)
    (path / "main.py").write_text(MAIN.format(taken, "s.set_epoch(epoch)", "loader"))
    done = migrate_all(collect([path / "main.py"]), Options())
    told = [n.message for m in done for n in m.report.attention if n.code == "PTM401"]
    return {m.path.name: m.data.decode() for m in done}, told


@pytest.mark.parametrize(
    ("own", "made", "given", "base"),
    [
        (
            TOLD + REPEATS,
            "DistributedTwice(torch.ones(8))",
            "DistributedTwice(torch.ones(8))",
            "super().__init__(data, 1, 0)",
        ),
        (
            BASED + REPEATS,
            "DistributedTwice(torch.ones(8))",
            "DistributedTwice(torch.ones(8), num_replicas=1, rank=0)",
            BASED,
        ),
        (
            BASED + REPEATS,
            "DistributedTwice(torch.ones(8), dist.get_world_size(), dist.get_rank())",
            "DistributedTwice(torch.ones(8), 1, 0)",
            BASED,
        ),
        (RANKED, "DistributedTwice(torch.ones(8))", "DistributedTwice(torch.ones(8))", "            rank = 0\n"),
        (
            RANKED,
            "DistributedTwice(torch.ones(8), 1, 0)",
            "DistributedTwice(torch.ones(8), 1, 0)",
            "            rank = 0\n",
        ),
    ],
)
def test_one_of_the_projects_own_is_that_of_one_process(tmp_path, own, made, given, base):
    texts, told = with_own(tmp_path, own, made)
    assert f"s = {given}\n" in texts["main.py"] and base in texts["data.py"] and not told


@pytest.mark.parametrize(
    ("own", "made"),
    [
        (SPREAD + REPEATS, "DistributedTwice(torch.ones(8))"),
        (RANKED, "DistributedTwice(torch.ones(8), 4, int(input()))"),
        (RANKED, "DistributedTwice(torch.ones(8), num_replicas=sys.argv[1].rank)"),
        (RANKED.replace("dist.get_rank()", "share.rank"), "DistributedTwice(torch.ones(8))"),
    ],
)
def test_one_that_divides_is_told(tmp_path, own, made):
    _, told = with_own(tmp_path, own, made)
    assert told and "divides the samples by rank itself" in told[0]


def test_a_sampler_that_asks_for_no_rank_is_not_told(tmp_path):
    own = "class OrderedDistributedSampler(Sampler):\n    def __iter__(self):\n        return iter(range(8))\n"
    texts, told = with_own(tmp_path, own, "OrderedDistributedSampler(None)", "OrderedDistributedSampler")
    assert "s = OrderedDistributedSampler(None)\n" in texts["main.py"] and not told


@pytest.mark.parametrize("size", ["1 / num_replicas", "len(data) // num_replicas"])
def test_what_a_parameter_is_by_default_stays_asked(tmp_path, size):
    """`if rank is None:` is not decided by the name: who made the object said nothing, and needs a number."""
    own = RANKED.replace("        self.data", f"        self.size = {size}\n        self.data", 1)
    texts, _ = with_own(tmp_path, own, "DistributedTwice(torch.ones(8))")
    assert "if num_replicas is None:\n            num_replicas = 1\n" in texts["data.py"]
    assert "if rank is None:\n            rank = 0\n" in texts["data.py"]
