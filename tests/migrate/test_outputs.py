"""Where results go: never over a script, nor two in one place; and what is told where none can be written."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from click.testing import CliRunner
from ptmigrate.migrate.cli import command

SCRIPT = "import torch\nx = torch.zeros(1).cuda()\n"
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a/train.py", "b/train.py", "train.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SCRIPT + f"# {name}\n")
    return tmp_path


def run(*args):
    return CliRunner().invoke(command, list(args))


def untouched(folder):
    return all((folder / n).read_text() == SCRIPT + f"# {n}\n" for n in ("a/train.py", "b/train.py", "train.py"))


@pytest.mark.parametrize("paths", [("a/train.py", "b/train.py"), ("a", "b"), ("train.py", "a")])
def test_two_results_of_one_name_are_not_written_one_over_the_other(folder, paths):
    for more in ((), ("--force",)):
        done = run("-o", "out", *more, *paths)
        assert done.exit_code == 2 and "would both become" in done.stderr, done.output
        assert not (folder / "out").exists()


@pytest.mark.parametrize("paths", [("train.py", "./train.py"), (".",), ("a", "train.py", "b/../a")])
def test_a_script_named_twice_and_scripts_of_one_folder_have_their_places(folder, paths):
    if paths == ("a", "train.py", "b/../a"):
        os.rename("train.py", "other.py")
        paths = ("a", "other.py", "b/../a")
    assert run("-o", "out", *paths).exit_code == 0
    assert (folder / "out" / "train.py").exists()


@pytest.mark.parametrize(
    "args", [("-o", ".", "train.py"), ("-o", "a", "a"), ("-o", "", "train.py"), ("-o", "b/..", "train.py")]
)
def test_a_script_is_written_over_by_in_place_alone(folder, args):
    done = run("--force", *args)
    assert done.exit_code == 2 and "--in-place" in done.stderr, done.output
    assert untouched(folder)


@posix
def test_a_link_from_the_place_of_a_result_to_its_script(folder):
    (folder / "out").mkdir()
    (folder / "out" / "train.py").symlink_to("../train.py")
    assert run("--force", "-o", "out", "train.py").exit_code == 2
    assert untouched(folder)


def test_a_folder_in_the_place_of_a_result(folder):
    (folder / "out" / "train.py").mkdir(parents=True)
    done = run("--force", "-o", "out", "train.py")
    assert done.exit_code == 2 and "train.py is a folder" in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("--in-place", "-o", "out"),
        ("--in-place", "-o", "migrated"),
        ("--verify", "--diff"),
        ("--verify", "--check"),
        ("--check", "--report", "train.py"),
        ("--check", "--report", "a/../train.py", "--format", "json"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(folder, args):
    done = run(*args, "train.py")
    assert done.exit_code == 2 and "Error: -" in done.stderr, done.output
    assert untouched(folder) and not (folder / "out").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("format_", ["text", "json", "html"])
def test_a_report_that_cannot_be_written_is_one_line(folder, format_):
    done = run("--check", "--format", format_, "--report", "/dev/full", "train.py")
    assert done.exit_code == 2 and done.stderr.startswith("error: --report /dev/full cannot be written: ")


def test_a_script_with_nothing_to_do_is_named(folder):
    (folder / "cpu.py").write_text("import torch\nprint(torch.ones(2).sum())\n")
    done = run("--check", "cpu.py")
    assert done.exit_code == 0 and done.stdout.startswith("cpu.py: nothing to do\n")
    assert "nothing to do" not in run("--check", "train.py").output


def of_shell(folder, line):
    name = f"'{sys.executable}' -m ptmigrate"
    line = line.replace("ptmigrate", f"{name}.migrate.cli").replace("ptlint", f"{name}.lint_rules.cli --no-cache")
    return subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True)


@posix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("ptmigrate --check train.py > /dev/full", 2, "error: standard output: No space left on device"),
        ("ptmigrate --check --format json train.py > /dev/full", 2, "error: standard output: No space left on device"),
        ("ptmigrate -o - train.py > /dev/full", 2, "error: standard output: No space left on device"),
        ("ptmigrate --check train.py >&-", 1, ""),
        ("ptmigrate nowhere.py --check --format json 2>&-", 2, ""),
        ("ptlint train.py > /dev/full", 2, "error: standard output: No space left on device"),
        ("ptlint train.py >&-", 1, ""),
        ("ptlint nowhere.py 2>&-", 2, ""),
    ],
)
def test_a_standard_output_that_takes_nothing(folder, line, code, says):
    done = of_shell(folder, line)
    assert (done.returncode, done.stderr.strip()) == (code, says)
    assert "error:" not in done.stdout


@posix
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_proof_that_is_stopped_leaves_no_process(folder, sent, code):
    text = "import os, time\nopen('started', 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    (folder / "long.py").write_text(text + SCRIPT)
    command_line = [sys.executable, "-m", "ptmigrate.migrate.cli", "--verify", "long.py"]
    process = subprocess.Popen(
        command_line,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, sent, signal.SIG_DFL),  # a shell's background job ignores Ctrl-C
    )
    while not (folder / "started").exists() or not (folder / "started").read_text():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(sent)
    assert "Traceback" not in process.communicate(timeout=60)[1]
    assert process.returncode == code
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "started").read_text()), 0)
