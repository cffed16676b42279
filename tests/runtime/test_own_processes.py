"""ptrun does not start a script several times that starts processes itself: it says so at once, and hangs nowhere."""

import subprocess
import sys

import pytest
from ptmigrate.runtime.launch.own_processes import starts_processes

STARTS = {
    "spawn": "import torch.multiprocessing as mp\nif __name__ == '__main__':\n    mp.spawn(f, nprocs=2)\n",
    "spawn by name": "from torch.multiprocessing import spawn\nspawn(f, nprocs=2)\n",
    "spawn from torch": "from torch import multiprocessing\nmultiprocessing.spawn(f)\n",
    "rpc": "from torch.distributed import rpc\nif rank == 0:\n    rpc.init_rpc('a')\n",
    "processes that meet": """
import torch.distributed as dist
import torch.multiprocessing as mp

def init(rank, size, fn):
    dist.init_process_group("gloo", rank=rank, world_size=size)
    fn(rank, size)

if __name__ == "__main__":
    for rank in range(2):
        p = mp.Process(target=init, args=(rank, 2, run))
        p.start()
""",
    "processes that train": """
from multiprocessing import get_context

def step(model):
    model().backward()

def train(model):
    step(model)

get_context("spawn").Process(target=train, args=(model,)).start()
""",
}
STARTS_NOT = {
    "a process that reads": """
import multiprocessing as mp
import torch

def read(queue):
    queue.put(torch.load("a.pt"))

def train(model, queue):
    model(queue.get()).backward()

p = mp.Process(target=read, args=(queue,))
p.start()
train(model, queue)
""",
    "one way of two, by hand": """
import torch.multiprocessing as mp

def train(rank):
    loss.backward()

if args.processes > 1:
    mp.Process(target=train, args=(0,)).start()
""",
    "another Process": "from game import Process\n\ndef f():\n    loss.backward()\n\nProcess(target=f)\n",
    "one way of two": "import torch.multiprocessing as mp\nif args.spawn:\n    mp.spawn(f)\nelse:\n    f(0)\n",
    "another spawn": "import torch.multiprocessing\npool.spawning()\n",
    "a game's": "import game\ngame.spawn('rpc and multiprocessing')\n",
    "rpc without processes": "import torch.distributed.rpc\n",
    "syntax error": "import torch.multiprocessing as mp\nmp.spawn(\n",
    "nothing": "",
}


@pytest.mark.parametrize("text", STARTS.values(), ids=STARTS.keys())
def test_a_script_that_starts_processes_is_found(tmp_path, text):
    (tmp_path / "s.py").write_text(text)
    assert "on line" in starts_processes(str(tmp_path / "s.py"))


@pytest.mark.parametrize("text", STARTS_NOT.values(), ids=STARTS_NOT.keys())
def test_others_are_not(tmp_path, text):
    (tmp_path / "s.py").write_text(text)
    assert starts_processes(str(tmp_path / "s.py")) is None


def test_ptrun_says_so(tmp_path):
    (tmp_path / "s.py").write_text(STARTS["rpc"])
    command = [sys.executable, "-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", "2", "s.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "rpc.init_rpc on line 3" in done.stderr


def test_the_recorder_of_verify_may_be_started_several_times():
    from ptmigrate.migrate.verify.runs import RECORDER

    assert starts_processes(str(RECORDER)) is None
