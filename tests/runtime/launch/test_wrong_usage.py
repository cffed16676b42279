"""What ptrun is asked for that cannot go well: said before anything starts, and how a rank ended in words."""

import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner
from launching import SCRIPTS, ptrun, run
from ptmigrate.runtime.cli import command
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.launch.ended import how_it_ended
from ptmigrate.runtime.launch.nodes import check_meeting
from ptmigrate.runtime.launch.unmigrated import trains_alone

LOOP = "import torch\nfor x, y in loader:\n    loss = criterion(net(x), y)\n    loss.backward()\n"


@pytest.mark.parametrize("rank", [2, 5])
def test_a_machine_of_a_number_that_there_is_not(rank):
    with pytest.raises(ConfigurationError, match=f"--node-rank {rank}: 2 machines have the numbers 0 to 1"):
        check_meeting(2, 2, "head:29400", None, rank)


@pytest.mark.parametrize("rdzv", ["head:99999", "head:x", "head:0", "head:-1", "[::1]:70000"])
def test_a_port_that_there_is_not(rdzv):
    with pytest.raises(ConfigurationError, match="give HOST:PORT"):
        check_meeting(2, 2, rdzv, None, 0)


@pytest.mark.parametrize(
    ("nodes", "rdzv", "rank"),
    [
        (1, None, None),
        (1, None, 0),
        (2, "head:29400", 0),
        (2, "head:29400", 1),
        (2, "head", None),
        (2, "[::1]:29400", 1),
    ],
)
def test_machines_that_can_meet(nodes, rdzv, rank):
    check_meeting(nodes, nodes, rdzv, None, rank)


def test_a_folder_is_no_script(tmp_path):
    with pytest.raises(ConfigurationError, match="is a folder"):
        CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (3, "rank 1 ended with exit code 3"),
        (-signal.SIGKILL, "rank 1 was ended by SIGKILL (as the system does where memory runs out)"),
        (-signal.SIGSEGV, "rank 1 was ended by SIGSEGV"),
        (-250, "rank 1 was ended by signal 250"),
    ],
)
def test_how_a_rank_ended(code, says):
    assert how_it_ended(1, code) == says


@pytest.mark.parametrize("text", [LOOP, LOOP.replace("torch", "torch, numpy"), "# train\n" + LOOP])
def test_a_script_that_was_never_migrated(tmp_path, text):
    (tmp_path / "train.py").write_text(text)
    assert trains_alone(str(tmp_path / "train.py"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "import torch\n",
        "from engine import train\ntrain()\n",
        "from ptmigrate.runtime import Runtime\nruntime = Runtime.shared()\n" + LOOP,
        "import torch.distributed as dist\n" + LOOP,
        "import lightning as L\n" + LOOP,
        "import os\nworld = os.environ['WORLD_SIZE']\n" + LOOP,
    ],
)
def test_scripts_that_share_their_work_or_train_nothing(tmp_path, text):
    (tmp_path / "train.py").write_text(text)
    assert not trains_alone(str(tmp_path / "train.py"))


def test_processes_that_each_train_all_of_it_are_told_of(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("x = None\nif x:\n    x.backward()\nprint('ran')\n")
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(script))
    assert done.returncode == 0 and done.stdout.count("ran") == 2
    assert done.stderr.startswith(f"note: {script} ") and "each of the 2 processes trains all of it" in done.stderr
    assert done.stderr.count("\n") == 1 and f"`ptmigrate {script}`" in done.stderr
    assert ptrun("--accelerator", "cpu", "--devices", "1", str(script)).stderr == ""


REFUSES = ("--accelerator", "cpu", "--devices", "2", str(SCRIPTS / "refuses.py"))


def test_what_an_engine_refuses_when_the_ranks_have_met_is_told():
    done = ptrun(*REFUSES)
    assert (done.returncode, done.stderr) == (2, "error: the ranks have met, and cannot go on\n")


def test_so_is_wrong_usage_in_a_script_that_makes_its_own_group(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import torch.distributed as dist\nfrom ptmigrate.runtime import Trainer\n"
        "dist.init_process_group('gloo')\nTrainer(strategy='no such one')\n"
    )
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(script))
    assert done.returncode == 2 and done.stderr.startswith("error: unknown strategy 'no such one'"), done.stderr


def test_ranks_whose_engine_refused_leave_in_order():
    """A process that left while gloo's threads still ran was ended by SIGABRT, and the other machine waited for it."""
    done = ptrun(*REFUSES, "caught")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} left in order: True" for rank in (0, 1)]


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("gone", [True, False])
def test_a_rank_whose_launcher_ended_while_it_was_imported_ends_too(tmp_path, gone):
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    script = tmp_path / "rank.py"
    script.write_text(
        "import sys\nfrom ptmigrate.runtime.launch.watch import watch\nwatch(0, sys.excepthook)\nprint('goes on')\n"
    )
    pid = process.pid if gone else os.getpid()
    done = run(str(script), PTMIGRATE_LAUNCHER="ptrun", PTMIGRATE_LAUNCHER_PID=str(pid))
    assert (done.returncode, done.stdout) == ((1, "") if gone else (0, "goes on\n"))
