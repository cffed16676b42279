"""Promise 7, and starting: prints once, wrong usage in one line, a dead rank ends the job, nothing outlives the
launcher.
"""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from launching import SCRIPTS, environment, ptrun, run
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.launch.script import own_command

DIES = str(SCRIPTS / "dies.py")


def two_ways(what):
    """The same job, started by ptrun and by the script itself."""
    by_ptrun = ["-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", "2", DIES, what]
    return [by_ptrun, [DIES, what, "2"]]


@pytest.mark.parametrize("command", two_ways("nothing"), ids=["ptrun", "script"])
def test_prints_once(command):
    done = run(*command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == ["hello from the script", "done", ""]
    assert done.stderr == "ddp on 2 processes (cpu), batches of 4 each, 8 samples a step\n"


@pytest.mark.parametrize("command", two_ways("raise"), ids=["ptrun", "script"])
def test_first_failure_speaks_alone(command):
    done = run(*command)
    ended = time.time()
    assert done.returncode == 1
    failed = next(line for line in done.stdout.splitlines() if line.startswith("failed at "))
    assert ended - float(failed.split()[-1]) < 20  # from the failure on, whatever the start took
    assert done.stderr.count("Traceback") == 1 and "ValueError: the first failure" in done.stderr
    assert "rank 1 stopped at epoch 0, batch 3" in done.stderr
    assert done.stderr.splitlines()[-1] == "rank 1 ended with exit code 1; the other ranks were ended."


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize(("what", "says"), [("wrong", "did you mean 'max_epochs'"), ("wrong later", "needs a loader")])
def test_what_cannot_be_done_is_one_line(what, says, processes):
    done = run("-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", processes, DIES, what)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1 and says in done.stderr


@pytest.mark.parametrize("devices", ["1", "2"])
def test_a_script_on_the_cpu_finds_no_card(tmp_path, devices):
    """What it asks of CUDA by itself, `x.to("cuda" if torch.cuda.is_available() else "cpu")`, is answered alike."""
    script = tmp_path / "asks.py"
    script.write_text("import os, ptmigrate.runtime\nprint('cards:', repr(os.environ['CUDA_VISIBLE_DEVICES']))\n")
    done = ptrun("--accelerator", "cpu", "--devices", devices, str(script), CUDA_VISIBLE_DEVICES="0")
    assert done.stdout.count("cards: ''") == int(devices)


@pytest.mark.parametrize("command", two_ways("exit"), ids=["ptrun", "script"])
def test_a_rank_that_leaves(command):
    done = run(*command)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "rank 1 ended with exit code 7; the other ranks were ended."


@pytest.mark.parametrize(
    "sign", [signal.SIGINT, *(pytest.param(s, marks=pytest.mark.slow) for s in (signal.SIGTERM, signal.SIGKILL))]
)
@pytest.mark.parametrize("which", [0, 1], ids=["ptrun", "script"])
def test_nothing_outlives_the_launcher(which, sign):
    mark = f"PTMIGRATE_TEST_{os.getpid()}_{which}_{sign}"
    process = subprocess.Popen(
        [sys.executable, *two_ways("sleep")[which]],
        env={**environment(), mark: "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background inherit none
    )
    assert process.stdout is not None
    while "sleeping" not in process.stdout.readline():
        assert process.poll() is None
    assert len(marked(mark)) >= 2
    process.send_signal(sign)
    process.wait(15)
    process.stdout.close()
    assert process.returncode != 0
    deadline = time.monotonic() + 15
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert marked(mark) == []


def test_ctrl_c_reaches_a_rank_that_waits_in_a_collective():
    """Its C++ looks for no signals; the other rank does not hear of Ctrl-C."""
    mark = f"PTMIGRATE_TEST_{os.getpid()}_waits"
    process = subprocess.Popen(
        [sys.executable, *two_ways("waits")[1]],
        env={**environment(), mark: "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    while "waiting" not in process.stdout.readline():
        assert process.poll() is None
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGINT and "interrupted while it waited for other ranks" in told
    deadline = time.monotonic() + 15
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert marked(mark) == []


@pytest.mark.parametrize("which", [0, pytest.param(1, marks=pytest.mark.slow)], ids=["ptrun", "script"])
def test_workers_do_not_outlive_a_rank_that_leaves(which):
    mark = f"PTMIGRATE_TEST_{os.getpid()}_{which}_workers"
    done = run(*two_ways("workers")[which], **{mark: "1"})
    assert done.returncode == 1 and "rank 1 ended with exit code 7" in done.stderr
    time.sleep(1)  # torch's own watch looks every 5 seconds, and never inside of a data set
    assert marked(mark) == []


def test_one_node_meets_at_a_port_of_its_own():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run(*two_ways("nothing")[1], MASTER_PORT=str(taken.getsockname()[1]))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("tasks", "code"), [("4(x2)", 1), ("1(x2)", 0)])
def test_a_script_that_srun_has_started_several_times(tasks, code):
    done = run(*two_ways("nothing")[1], SLURM_STEP_TASKS_PER_NODE=tasks, SLURM_NTASKS="8", SLURM_PROCID="0")
    assert done.returncode == code, done.stderr
    assert code == 0 or ("4 times on this node" in done.stderr and "--ntasks-per-node=1" in done.stderr)


def marked(mark):
    """Living processes with this name in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--strategy", "ddpp", DIES], "unknown strategy 'ddpp'; did you mean 'ddp'?"),
        (["--precision", "bf61", DIES], "unknown precision 'bf61'; did you mean 'bf16'?"),
        (["--accelerator", "gpuu", DIES], "unknown accelerator 'gpuu'; did you mean 'gpu'?"),
        (["--accelerator", "gpu", "--devices", "99", DIES], "99"),
        ([DIES.replace("dies", "deis")], "dies.py'"),
        (["--devices", "none", DIES], "devices='none': give a count"),
        (["--devics", "2", DIES], "--devices"),
    ],
)
def test_wrong_usage(arguments, says):
    done = ptrun(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_own_failure_of_one_process(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text("raise KeyError('mine')")
    done = ptrun(str(script))
    assert done.returncode == 1 and "KeyError: 'mine'" in done.stderr


def test_what_follows_the_script_is_its_own(tmp_path):
    script = tmp_path / "shows.py"
    script.write_text("import sys; print(sys.argv[1:], __name__)")
    assert ptrun("--devices", "1", str(script), "--devices", "4", "-x").stdout == "['--devices', '4', '-x'] __main__\n"


@pytest.mark.parametrize("argv", [["-"], [""], ["-c"], ["-", "--lr", "1"]])
def test_what_is_in_no_file_cannot_be_started_again(argv, monkeypatch):
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-u", *argv])
    with pytest.raises(ConfigurationError, match="it needs a script in a file"):
        own_command()


def test_help_and_version_do_without_torch():
    call = "import sys; from ptmigrate.runtime import cli\ntry: cli.main([sys.argv[1]])\n"
    code = call + "finally: print('torch' in sys.modules)"
    for option in ("--help", "--version"):
        assert run("-c", code, option).stdout.splitlines()[-1] == "False"


def test_doctor():
    done = ptrun("--doctor")
    assert done.returncode == 0 and "accelerator auto:" in done.stdout and "torch: 2" in done.stdout
