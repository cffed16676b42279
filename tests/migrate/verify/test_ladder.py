"""The proof, with real runs: a true migration climbs, an untrue one is caught, what an original lacks is told apart."""

import json
import subprocess
import sys
import time

import pytest
from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.render import render_ladder
from ptmigrate.migrate.verify.ladder import Ladder, Rung, climb, drifts_as_far, refused
from ptmigrate.migrate.verify.reasons import lack
from ptmigrate.migrate.verify.runs import Run, python, run

SMALL = """
import os, sys, time
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.3), torch.nn.BatchNorm1d(4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(44, 3), torch.randint(0, 2, (44,))), batch_size=8, shuffle=True)
for epoch in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""


def migrated(folder, text=SMALL):
    (folder / "out").mkdir()
    (folder / "original.py").write_text(text, encoding="utf-8")
    (folder / "out" / "original.py").write_text(migrate_text(text).text, encoding="utf-8")
    return folder / "original.py", folder / "out" / "original.py"


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def results(ladder):
    return {r.name: r.result for r in ladder.rungs}


def verify(folder, *arguments):
    command = [sys.executable, "-m", "ptmigrate.migrate.cli", "--verify", "--format", "json", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280)


@pytest.mark.slow
def test_the_whole_ladder_from_the_command_line(tmp_path):
    """With dropout and batch norm in the model: two processes draw and measure what one does."""
    migrated(tmp_path)
    done = verify(tmp_path, "--devices", "2", "original.py", "--", "2")
    assert done.returncode == 1, done.stdout + done.stderr  # proven, and one thing to know
    report = json.loads(done.stdout)
    assert ["batch norm measures a share" in a["message"] for a in report["files"][0]["attention"]] == [True]
    proof = report["verify"]
    assert proof["proven"] and proof["original_runs"] == "yes" and "missing" not in proof
    names = [r["name"] for r in proof["rungs"]]
    assert names == ["parses", "runs", "same losses", "runs on 2", "same losses on 2"]
    assert all(r["result"] == "yes" for r in proof["rungs"])
    assert "12 losses and 4 parameters, bit for bit" in proof["rungs"][2]["detail"]  # `-- 2`: two epochs
    assert "12 losses" in proof["rungs"][4]["detail"] and "without" not in proof["rungs"][4]["detail"]
    assert (tmp_path / "migrated" / "original.py").exists()


def test_a_result_that_trains_differently_is_caught(tmp_path, capsys):
    original, result = migrated(tmp_path)
    change(result, "lr=0.1", "lr=0.2")
    ladder = climb(original, result, [])
    assert results(ladder) == {"parses": "yes", "runs": "yes", "same losses": "no"} and not ladder.proven
    assert "at step 1" in ladder.rungs[-1].detail
    render_ladder(ladder)
    assert "not proven" in capsys.readouterr().out


@pytest.mark.slow
def test_a_loss_that_the_script_scales_is_compared_unscaled(tmp_path):
    """A GradScaler scales on the CPU too; the Trainer's bf16-mixed, which takes its place, does not. Two processes
    round their shares otherwise than one rounds the whole, which is no reason to allow for more.
    """
    step = """        with torch.autocast(device.type):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
    begun = "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
    begun += "scaler = torch.amp.GradScaler(device.type)\nfor epoch"
    text = SMALL[: SMALL.index("        loss =")].replace("for epoch", begun) + step
    original, result = migrated(tmp_path, text)
    assert "scaler" not in result.read_text(encoding="utf-8")
    ladder = climb(original, result, [], 2)
    assert ladder.proven and "without" in ladder.rungs[-1].detail and "rounding to bfloat16" in ladder.rungs[-1].detail


@pytest.mark.slow
def test_a_result_whose_losses_agree_but_whose_parameters_do_not_is_caught(tmp_path):
    original, result = migrated(tmp_path)
    result.write_text(result.read_text(encoding="utf-8") + "\ntorch.nn.init.ones_(model[0].bias)\n", encoding="utf-8")
    ladder = climb(original, result, [])
    assert results(ladder)["same losses"] == "no" and "final parameters" in ladder.rungs[-1].detail


@pytest.mark.slow
def test_a_result_that_divides_its_data_wrongly_is_caught_for_all_its_dropout(tmp_path):
    """Each process on half of the data set, as a DistributedSampler would give it: another run."""
    original, result = migrated(tmp_path)
    change(result, "torch.randn(44, 3)", "torch.randn(44, 3)[int(os.environ.get('RANK', 0)) :]")
    change(result, "torch.randint(0, 2, (44,))", "torch.randint(0, 2, (44,))[int(os.environ.get('RANK', 0)) :]")
    ladder = climb(original, result, [], 2)
    assert results(ladder)["same losses"] == "yes" and results(ladder)["same losses on 2"] != "yes"


@pytest.mark.parametrize(
    ("got", "alone", "far"),
    [
        ([1, 1, 1 + 1e-4, 1], [1, 1, 1 + 5e-5, 1], True),
        ([1, 1, 1, 1 + 1e-4], [1, 1 + 5e-5, 1, 1], True),  # what it has reached once it may reach again
        ([1, 1, 1, 1 + 1e-6], [1, 1, 1, 1], True),
        ([1, 1 + 1e-4, 1, 1], [1, 1, 1, 1 + 5e-5], False),  # earlier
        ([1, 1, 1, 1 + 1e-3], [1, 1, 1, 1 + 5e-5], False),  # further
        ([1, 1, 1, float("nan")], [1, 1, 1, 1 + 5e-5], False),
    ],
)
def test_how_far_a_rounding_goes(got, alone, far):
    assert drifts_as_far([1.0] * 4, got, alone) == far


def test_a_run_whose_weights_change_by_their_last_bit(tmp_path):
    original, _ = migrated(tmp_path)
    first, nudged = (run(python(), original, [], tmp_path / f"{n}", 60, nudged=n) for n in (False, True))
    off = [abs(a - b) for a, b in zip(first.mean_losses(), nudged.mean_losses(), strict=True)]
    assert 0 < max(off) < 1e-5


def test_a_result_that_fails_says_why(tmp_path):
    original, result = migrated(tmp_path)
    result.write_text("raise RuntimeError('broken')\n", encoding="utf-8")
    ladder = climb(original, result, [])
    assert results(ladder)["runs"] == "no" and "broken" in ladder.rungs[1].detail and ladder.missing is None


def test_a_result_that_hangs_is_ended(tmp_path):
    _, result = migrated(tmp_path)
    result.write_text("import time\nwhile True:\n    time.sleep(1)\n", encoding="utf-8")
    ran = run(python(), result, [], tmp_path / "log", 3)
    assert ran.timed_out and not ran.ok and "had not ended after" in ran.reason


@pytest.mark.slow
def test_what_a_run_started_ends_with_it(tmp_path):
    mark = tmp_path / "alive"
    child = f"import time\\nwhile True:\\n    open({str(mark)!r}, 'w').close()\\n    time.sleep(0.1)"
    text = f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', \"{child}\"])\ntime.sleep(100)\n"
    (tmp_path / "s.py").write_text(text, encoding="utf-8")
    assert run(python(), tmp_path / "s.py", [], tmp_path / "log", 20).timed_out
    assert mark.exists()
    time.sleep(0.5)
    mark.unlink()
    time.sleep(1)
    assert not mark.exists()


def test_missing_data_is_told_apart_with_the_way_out(tmp_path, capsys):
    original, result = migrated(tmp_path, SMALL.replace("torch.manual_seed(1)", "open('data/train.csv')"))
    ladder = climb(original, result, [], 2)
    assert not ladder.proven and "No such file" in ladder.original and ladder.as_json()["missing"]["kind"] == "data"
    assert set(results(ladder).values()) == {"yes", "not tried"}
    render_ladder(ladder)
    out = capsys.readouterr().out
    assert "the original does not run here" in out and "after `--`" in " ".join(out.split())


@pytest.mark.slow
def test_data_beside_the_original_are_found(tmp_path):
    """The result lies in another folder; it is run among the original's files, and the report says so."""
    text = SMALL.replace(
        "torch.manual_seed(1)", "torch.manual_seed(len(open(os.path.dirname(__file__) + '/d/x').read()))"
    )
    original, result = migrated(tmp_path, text)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").write_text("12345", encoding="utf-8")
    ladder = climb(original, result, [], root=tmp_path)
    assert ladder.proven and "among the files that lie beside the original" in ladder.rungs[1].detail
    assert climb(original, result, []).rungs[1].result == "no"


@pytest.mark.slow
def test_a_script_for_a_launcher_is_run_as_one_process_of_it(tmp_path):
    joins = "rank = int(os.environ['RANK'])\ntorch.distributed.init_process_group('gloo')"
    text = SMALL.replace("torch.manual_seed(1)", joins)
    original, result = migrated(tmp_path, text)
    shown = []
    ladder = climb(original, result, [], show=lambda what, part: shown.append((what, part)))
    assert ladder.missing is None and ladder.proven
    assert {what for what, _ in shown} == {"the original", "the result"} and all(0 <= part <= 1 for _, part in shown)


SPAWNS = """
import torch
import torch.multiprocessing as mp

def work(rank, lr):
    torch.manual_seed(3)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(3):
        loss = model(torch.ones(1, 2)).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

if __name__ == "__main__":
    mp.spawn(work, args=(0.1,), nprocs=1)
"""


@pytest.mark.slow
def test_processes_that_a_script_spawns_are_recorded(tmp_path):
    (tmp_path / "s.py").write_text(SPAWNS, encoding="utf-8")
    ran = run(python(), tmp_path / "s.py", [], tmp_path / "log", 200)
    assert ran.ok, ran.output
    assert list(ran.losses) == [0] and len(ran.losses[0]) == 3 and len(ran.parameters) == 2


def test_a_script_that_is_not_migrated_climbs_nothing(tmp_path):
    (tmp_path / "s.py").write_text(
        "import torch, deepspeed\nnet = deepspeed.initialize(model=net)[0]\n", encoding="utf-8"
    )
    done = verify(tmp_path, "s.py")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["files"][0]["plan"] == "refused" and not report["verify"]["proven"]
    assert {r["result"] for r in report["verify"]["rungs"]} == {"not tried"}
    assert not refused("why", 2).proven and len(refused("why", 2).rungs) == 5


@pytest.mark.parametrize(
    "output, kind",
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: 'data'", "data"),
        ("RuntimeError: Dataset not found or corrupted. You can use download=True to download it", "data"),
        ("urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>", "data"),
        ("ModuleNotFoundError: No module named 'timm'", "package"),
        ("usage: s.py [-h] DIR\ns.py: error: the following arguments are required: DIR", "arguments"),
        ("AssertionError: Torch not compiled with CUDA enabled", "device"),
        ("RuntimeError: No CUDA GPUs are available", "device"),
        ("ValueError: environment variable RANK expected, but not set", "launcher"),
        ("    raise KeyError(key) from None\nKeyError: 'LOCAL_RANK'", "launcher"),
        ("ValueError: shapes do not match", "error"),
        ("KeyError: 'label'", "error"),
    ],
)
def test_what_an_original_lacks_has_a_kind(output, kind):
    found = lack(Run(1, f"Traceback (most recent call last):\n{output}\n"), 600)
    assert found.kind == kind and found.way_out and "exit code 1" in found.reason


def test_training_nothing_and_taking_too_long_are_no_errors():
    assert lack(Run(0, "done"), 600).kind == "training"
    assert lack(Run(-9, "", seconds=5, timed_out=True), 5).kind == "time"


def test_the_table_tells_every_rung(capsys):
    render_ladder(
        Ladder([Rung("parses", "yes"), Rung("runs", "no", "exit code 1: why"), Rung("same losses", "not tried")])
    )
    out = capsys.readouterr().out
    assert all(word in out for word in ("parses", "yes", "runs", "no", "exit code 1: why", "not tried", "not proven"))
