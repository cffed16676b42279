"""Unseeded scripts: what the ranks draw before they meet is rank 0's, and one process draws what the script would."""

import json

import pytest

from tests.runtime.launching import ptrun, run

SCRIPT = """
import json, random, sys
{before}
import torch
import ptmigrate.runtime
import numpy
drawn = [random.random(), torch.rand(1).item(), numpy.random.rand()]
print(json.dumps([drawn, list({{"one", "two", "three", "four", "five", "six"}})]))
"""
OWN = """
from ptmigrate.runtime import Module, Trainer

class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

Trainer(max_epochs=1, accelerator="cpu", devices=2, strategy="ddp", barebones=True).fit(Net(), [torch.ones(2, 1)])
"""


def drawn(tmp_path, start, before="", after=""):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(before=before) + after)
    done = start(str(script))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")]


def two(script, *options, **where):
    return ptrun("--accelerator", "cpu", "--devices", "2", *options, script, **where)


@pytest.mark.parametrize("options", [(), ("--max-restarts", "1")], ids=["agent", "restarts"])
def test_ranks_draw_what_rank_0_draws(tmp_path, options):
    first, second = drawn(tmp_path, lambda script: two(script, *options))
    assert first == second


def test_two_runs_draw_differently(tmp_path):
    assert drawn(tmp_path, two) != drawn(tmp_path, two)


def test_a_seed_of_the_script_stays(tmp_path):
    """Also one that was given before the runtime was imported."""
    seeds = "import numpy; numpy.random.seed(3); random.seed(4); import torch; torch.manual_seed(5)"
    [[one, _]] = drawn(tmp_path, run, seeds)
    (first, _), (second, _) = drawn(tmp_path, two, seeds)
    assert first == second == one


def test_other_launchers(tmp_path):
    command = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
    (first, _), (second, _) = drawn(tmp_path, lambda script: run(*command, script))
    assert first == second


def test_a_script_that_starts_its_own_peers(tmp_path):
    (first, _), (second, _) = drawn(tmp_path, run, after=OWN)
    assert first == second


def test_hash_seeds_of_the_user_win(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import os; print(f\"seed {os.environ['PYTHONHASHSEED']}\\n\", end='')")
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(script), PYTHONHASHSEED="7")
    assert done.stdout.split() == ["seed", "7"] * 2, done.stderr


SAVES = """
import os, shutil, tempfile, time
import torch
from ptmigrate.runtime import rank_zero_file, rank_zero_save

def slowly(source, to):
    time.sleep(0.5)
    shutil.copyfile(source, to)

rank = os.environ.get("RANK", "0")
with tempfile.TemporaryDirectory() as folder:
    for step in range(2):
        rank_zero_save({"step": step}, os.path.join(folder, "best.pt"))
        print("saved", torch.load(os.path.join(folder, "best.pt"))["step"])
rank_zero_save({"rank": int(rank)}, "one.pt")
rank_zero_save({"rank": int(rank)}, f"at_{rank}_o_clock.pt")
print("saved", torch.load("one.pt")["rank"], torch.load(f"at_{rank}_o_clock.pt")["rank"] == int(rank))
rank_zero_save(obj={"rank": 5}, f="best.pt")
rank_zero_file(slowly)("one.pt", "best.pt")
print("copied", torch.load("best.pt")["rank"])
rank_zero_file(os.replace)(f"at_{rank}_o_clock.pt", f"at_{rank}.pt")
"""

REMOVED = """
import os, time
import torch
from ptmigrate.runtime import Runtime, rank_zero_file, rank_zero_save

runtime = Runtime()
rank_zero_save({"step": 1}, "last.pt")
time.sleep(0.5 * (runtime.rank != 0))
print("loaded", torch.load("last.pt")["step"])
rank_zero_file(os.remove)("last.pt")
"""


@pytest.mark.parametrize("start", [two, run], ids=["two", "one"])
def test_a_file_is_removed_when_all_ranks_have_come(tmp_path, start):
    script = tmp_path / "script.py"
    script.write_text(REMOVED)
    done = start(str(script), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["loaded 1"] * (2 if start is two else 1)
    assert not (tmp_path / "last.pt").exists()


@pytest.mark.parametrize("start", [two, run], ids=["two", "one"])
def test_a_rank_with_a_path_of_its_own_finds_its_file(tmp_path, start):
    """Rank 0 writes what has one path on all ranks; a temporary folder is another on each."""
    script = tmp_path / "script.py"
    script.write_text(SAVES)
    done = start(str(script), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    ranks = 2 if start is two else 1
    assert sorted(lines) == sorted(["saved 0", "saved 1", "saved 0 True", "copied 0"] * ranks)
    assert sorted(p.name for p in tmp_path.glob("at_*.pt")) == [f"at_{rank}.pt" for rank in range(ranks)]


TURNS = """
import os, time
import torch
from ptmigrate.runtime import rank_zero_first, rank_zero_save, rank_zero_value

rank = int(os.environ.get("RANK", "0"))
for name in ("a.pt", "b.pt"):
    with rank_zero_first({option}):
        if not rank_zero_value(os.path.exists(name)):
            time.sleep(0.5)
            rank_zero_save([rank], name)
        print(name, torch.load(name))
with rank_zero_first({option}), rank_zero_first({option}):
    pass
with rank_zero_first(when=False):
    pass
print("agreed", rank_zero_value(5 + rank))
"""
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")


@pytest.mark.parametrize(
    ("start", "option", "after"),
    [
        (two, "per_node=True", ""),
        (lambda script, **where: run(*TORCHRUN, script, **where), "", ""),
        (run, "per_node=True", OWN),
        (run, "", ""),
    ],
    ids=["two", "torchrun", "starts its own peers", "one"],
)
def test_rank_0_first(tmp_path, start, option, after):
    """What rank 0 has prepared the others find, whoever has started them."""
    script = tmp_path / "script.py"
    script.write_text(TURNS.format(option=option) + after)
    done = start(str(script), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "[" in line or "agreed" in line]
    ranks = 1 if start is run and not after else 2
    assert sorted(lines) == sorted(["a.pt [0]", "b.pt [0]", "agreed 5"] * ranks)
