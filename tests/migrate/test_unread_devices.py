"""T1: a device goes with its last use, also where the lift was the last to read it."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """\
import torch
from torch.utils.data import DataLoader
gpu = 0
{device}
model = torch.nn.Linear(2, 1).to(device)
loader = DataLoader(torch.ones(8, 2), batch_size=2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    noise = torch.tensor([1.0], device=device)
    for x in loader:
        x = x.to(device)
        loss = (model(x) + noise).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{after}
"""


def lifted(device, after=""):
    result = migrate_text(SCRIPT.format(device=device, after=after))
    assert result.plan == "module"
    return result


def test_nothing_of_it_stays():
    result = lifted('device = torch.device(f"cuda:{gpu}" if torch.cuda.is_available() else "cpu")')
    assert "\ndevice = " not in result.text and "\ngpu = " not in result.text and "device=self.device" in result.text
    assert not [n for n in result.attention if n.code == "PTM102"]
    assert {(e.code, e.line) for e in result.edits} >= {("PTM102", 3), ("PTM102", 4)}


@pytest.mark.parametrize("blank", ["\n", "\n\n", "\r\n"])
def test_blank_lines_around_it_are_one_gap(blank):
    result = lifted(f"{blank}device = torch.device('cuda')\n{blank}")
    assert f"gpu = 0\n{blank}\nmodel =" in result.text


def test_a_form_feed_is_no_blank_line():
    assert "gpu = 0\n\f\n\nmodel =" in lifted("\f\ndevice = torch.device('cuda')\n").text


@pytest.mark.parametrize(
    ("device", "after"),
    [
        ('device = torch.device("cuda:0")', "print(device)"),
        ('device = torch.device("cuda:0"); y = 1', ""),
        ("if torch.cuda.is_available():\n    device = 'cuda'\nelse:\n    device = 'cpu'", ""),
    ],
)
def test_what_is_read_or_does_more_stays(device, after):
    text = lifted(device, after).text
    assert "device = " in text


def test_what_an_object_keeps_is_told_where_it_stays():
    keeps = "class Kept:\n    def __init__(self, net):\n        self.device = torch.device('cuda')\n"
    keeps += (
        "        self.net = net.to(self.device)\n    def where(self):\n        return self.device\nkept = Kept(model)\n"
    )
    result = migrate_text(SCRIPT.format(device="device = 'cuda'", after=keeps))
    assert result.plan == "module"
    told = [n.message for n in result.attention if n.code == "PTM102"]
    assert [m for m in told if m.startswith("`self.device` stays: line ")]


RANKED = """import os
node = int(os.environ.get("NODE", 0))
rank = node * torch.cuda.device_count() + int(os.environ["LOCAL_RANK"])
torch.distributed.init_process_group("nccl", rank=rank, world_size=2)
device = "cuda"
"""


def test_a_rank_that_only_the_processes_read_goes():
    text = lifted(RANKED, "print(node)").text
    assert "rank = " not in text and "print(node)" in text


@pytest.mark.parametrize("after", ["print(rank)", "rank = start()", "go(lambda: rank)"])
def test_a_rank_that_is_read_or_does_more_stays(after):
    assert "rank = " in lifted(RANKED, after).text


PROCESSES = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

dist.init_process_group("gloo")
{asked}
model = DDP(torch.nn.Linear(2, 1))
loader = DataLoader(torch.ones(8, 2), batch_size=8 // world)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    for x in loader:
        loss = model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(epoch, loss.item())
{after}
"""


@pytest.mark.parametrize(
    ("asked", "after", "left"),
    [
        ("rank, world = dist.get_rank(), dist.get_world_size()", "", ""),
        ("rank, world = dist.get_rank(), dist.get_world_size()  # who", "", ""),
        ("rank, world = dist.get_rank(), dist.get_world_size()", "print(world)", "world = 1\n"),
        ("rank, n, world = dist.get_rank(), 3, dist.get_world_size()", "print(n)", "n = 3\n"),
        ("rank, n, m, world = dist.get_rank(), 3, 4, dist.get_world_size()", "print(n, m)", "n, m = 3, 4\n"),
        ("rank, n, world = dist.get_rank(), count(), dist.get_world_size()", "", "n = count()\n"),
    ],
)
def test_ranks_that_are_assigned_together(asked, after, left):
    result = migrate_text(PROCESSES.format(asked=asked, after=after))
    head = result.text.split("import Module")[1].split("model = ")[0].partition("\n")[2].lstrip("\n")
    assert result.plan == "module" and head == left
    assert any(e.code == "PTM102" and e.line == 7 and "nothing reads" in e.message for e in result.edits)


OPTIONS = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", "--local-rank", type=int, default=0)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
device = torch.device("cuda", args.local_rank) if torch.cuda.is_available() else torch.device("cpu")"""


def test_the_option_that_it_read_goes_with_it():
    result = lifted(OPTIONS)
    assert "local_rank" not in result.text and "--epochs" in result.text and "device = " not in result.text
    assert [e.line for e in result.edits if "args.local_rank any more" in e.message] == [6]


@pytest.mark.parametrize("after", ["print(args.local_rank)", "print(vars(args))", "f = getattr(args, 'local_rank')"])
def test_one_that_is_read_elsewhere_stays(after):
    assert "--local_rank" in lifted(OPTIONS, after).text
