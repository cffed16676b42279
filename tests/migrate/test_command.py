"""The command ptmigrate: what it writes, what it says, how it ends."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from ptmigrate.migrate import one_file
from ptmigrate.migrate.cli import command

DIGITS = Path(__file__).parents[2] / "fixtures" / "plain" / "digits.py"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits.py").write_bytes(DIGITS.read_bytes())
    return tmp_path


def run(*args):
    return CliRunner().invoke(command, list(args))


def test_a_script_is_written_to_the_folder_migrated_and_the_original_is_untouched(folder):
    done = run("digits.py")
    assert done.exit_code == 0, done.output
    assert "plan: module" in done.stdout and "PTM700" in done.stdout
    assert (folder / "digits.py").read_bytes() == DIGITS.read_bytes()
    assert "class NetModule(Module):" in (folder / "migrated" / "digits.py").read_text()


def test_json_has_plan_edits_and_attention(folder):
    report = json.loads(run("--format", "json", "digits.py").stdout)
    assert report["version"] == 1
    (entry,) = report["files"]
    assert (
        entry["path"] == "digits.py"
        and entry["plan"] == "module"
        and entry["output"] == os.path.join("migrated", "digits.py")
    )
    assert {"code", "line", "column", "message", "safe"} <= set(entry["edits"][0])
    assert entry["attention"] == []
    assert report["summary"]["changed"] == 1


def test_an_existing_output_is_refused_and_kept_unless_forced(folder):
    (folder / "migrated").mkdir()
    (folder / "migrated" / "digits.py").write_text("mine")
    done = run("digits.py")
    assert done.exit_code == 2 and "--force" in done.stderr and "migrated" in done.stderr
    assert (folder / "migrated" / "digits.py").read_text() == "mine"
    assert run("--force", "digits.py").exit_code == 0
    assert (folder / "migrated" / "digits.py").read_text() != "mine"


def test_check_and_diff_write_nothing(folder):
    assert run("--check", "digits.py").exit_code == 1
    done = run("--diff", "digits.py")
    assert done.exit_code == 0 and "+class NetModule(Module):" in done.stdout
    assert not (folder / "migrated").exists()


def test_dash_prints_one_file_and_nothing_else(folder):
    done = run("-o", "-", "digits.py")
    compile(done.stdout, "result", "exec")
    assert "PTM700" in done.stderr


def test_in_place_keeps_the_mode_and_a_second_run_changes_nothing(folder):
    (folder / "digits.py").chmod(0o750)
    assert run("--in-place", "digits.py").exit_code == 0
    once = (folder / "digits.py").read_bytes()
    assert stat.S_IMODE((folder / "digits.py").stat().st_mode) == 0o750
    assert run("--in-place", "digits.py").exit_code == 0
    assert (folder / "digits.py").read_bytes() == once
    assert run("--check", "digits.py").exit_code == 0


def test_in_place_refuses_uncommitted_changes_in_git(folder):
    subprocess.run(["git", "init", "-q"], check=True)
    done = run("--in-place", "digits.py")
    assert done.exit_code == 2 and "not committed" in done.stderr
    assert (folder / "digits.py").read_bytes() == DIGITS.read_bytes()
    assert run("--in-place", "--force", "digits.py").exit_code == 0


def test_a_file_without_torch_is_untouched_and_said_so(folder):
    (folder / "plain.py").write_bytes(b"print('hello')\r\n")
    done = run("plain.py")
    assert done.exit_code == 0 and "no torch" in done.output
    assert (folder / "migrated" / "plain.py").read_bytes() == b"print('hello')\r\n"


@pytest.mark.parametrize(
    "content",
    [
        b"import torch\ndef f(:\n",
        b"import torch\nprint 'hello'\n",
        b"# coding: nonsense\nimport torch\n",
        b"import torch\n\0",
    ],
)
def test_a_bad_file_is_one_line_with_its_place_and_the_others_go_on(folder, content):
    (folder / "bad.py").write_bytes(content)
    done = run("bad.py", "digits.py")
    assert done.exit_code == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("bad.py:")]
    assert len(lines) == 1
    assert (folder / "migrated" / "digits.py").exists() and not (folder / "migrated" / "bad.py").exists()


def test_a_fault_of_ours_in_one_file_is_its_line_and_the_others_go_on(folder, monkeypatch):
    whole = one_file.migrate_text

    def faulty(text, *args):
        return None.text if text.startswith("# this one") else whole(text, *args)

    monkeypatch.setattr(one_file, "migrate_text", faulty)
    (folder / "bad.py").write_text("# this one\nimport torch\n")
    done = run("bad.py", "digits.py")
    assert done.exit_code == 2 and "Traceback" not in done.output
    assert "bad.py:1:1: migrating it failed (AttributeError: 'NoneType'" in done.output
    assert (folder / "migrated" / "digits.py").exists() and not (folder / "migrated" / "bad.py").exists()


def test_async_is_mended_before_parsing(folder):
    (folder / "old.py").write_text("import torch\n\n\ndef f(x, y):\n    return x.copy_(y, async=True)\n")
    done = run("old.py")
    assert done.exit_code == 0, done.output
    assert "non_blocking=True" in (folder / "migrated" / "old.py").read_text() and "PTM603" in done.stdout


def test_a_path_that_is_not_there(folder):
    done = run("nothing.py")
    assert done.exit_code == 2 and "nothing.py" in done.stderr


def test_local_modules_come_along(folder):
    (folder / "train.py").write_text("import torch\nimport nets.small\nfrom helpers import f\n")
    (folder / "nets").mkdir()
    (folder / "nets" / "__init__.py").write_text("")
    (folder / "nets" / "small.py").write_text("import torch\n\n\ndef g(x):\n    x = x.cuda()\n    return x\n")
    (folder / "helpers.py").write_text("def f():\n    pass\n")
    done = run("train.py")
    assert done.exit_code == 0, done.output
    written = sorted(str(p.relative_to(folder / "migrated")) for p in (folder / "migrated").rglob("*.py"))
    assert written == ["helpers.py", os.path.join("nets", "__init__.py"), os.path.join("nets", "small.py"), "train.py"]
    assert "cuda" not in (folder / "migrated" / "nets" / "small.py").read_text()


def test_arguments_after_a_bare_dash_dash_need_verify(folder):
    done = subprocess.run(
        [sys.executable, "-c", "from ptmigrate.migrate.cli import main; main()", "digits.py", "--", "--epochs", "1"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and "--verify" in done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes by name")
@pytest.mark.parametrize(("given", "code"), [(".", 2), ("net.py", 2), ("train.py", 1)])
def test_a_pipe_is_told_of_and_not_waited_for(tmp_path, given, code):
    os.mkfifo(tmp_path / "net.py")
    (tmp_path / "train.py").write_text("import torch\nimport net\nloss.backward()\nx = x.cuda()\n")
    command = [sys.executable, "-m", "ptmigrate.migrate.cli", "--check", given]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert ("net.py:1:1: cannot be read: not a regular file" in done.stderr) is (code == 2)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["-o", "digits.py"], "digits.py is a file"),
        (["-o", os.path.join("digits.py", "out")], "digits.py is a file"),
        (["--report", os.path.join("nowhere", "report.txt")], "there is no folder nowhere"),
        (["--check", "--report", "."], "it is a folder"),
        (["-o", "-", "other.py"], "prints one file"),
    ],
)
def test_places_that_cannot_be_written_are_told_before_anything_starts(folder, args, says):
    done = run(*args, "digits.py")
    assert done.exit_code == 2 and says in done.stderr
    assert sorted(p.name for p in folder.iterdir()) == ["digits.py"]


def test_what_fails_while_writing_is_one_line(folder, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device", "migrated/digits.py")

    monkeypatch.setattr("ptmigrate.migrate.outputs.write_whole", full)
    done = run("digits.py")
    assert done.exit_code == 2
    assert "error: migrated/digits.py cannot be written: No space left on device" in done.stderr


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_git_applies_the_diff(folder, end):
    source = "import torch\n\x0c\n# a\u2028b\nx = x.cuda()\ny = '\x0c'\n\x0c\nx = x.cuda()\nz = y\nx = x.cuda()  # end"
    (folder / "page.py").write_text(source.replace("\n", end), encoding="utf-8", newline="")
    command = [sys.executable, "-c", "from ptmigrate.migrate.cli import main; main()"]
    done = subprocess.run([*command, "--diff", "page.py"], capture_output=True, timeout=60)
    expected = subprocess.run([*command, "-o", "-", "page.py"], capture_output=True, timeout=60).stdout
    (folder / "page.diff").write_bytes(done.stdout)
    subprocess.run(["git", "apply", "-p0", "--whitespace=nowarn", "page.diff"], check=True, cwd=folder)
    assert (folder / "page.py").read_bytes() == expected and b"cuda" not in expected


@pytest.mark.parametrize("option", ["--select=PTM201,PTM101", "--ignore=PTM7,PTM1,PTM4"])
def test_codes_that_are_not_asked_for_leave_a_loop_as_it_is(folder, option):
    head = "import torch\nfrom torch.utils.data import DataLoader\n"
    loop = "for x in loader:\n    x = x.cuda()\n    loss = net(x).sum()\n    loss.backward()\n    optimizer.step()\n"
    made = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    (folder / "loop.py").write_text(head + "loader = DataLoader(data, collate_fn=lambda b: b)\n" + made + loop)
    done = run("-o", "-", option, "loop.py")
    function = "\n\ndef _collate_fn(b):\n    return b\n\n\n"
    assert done.stdout == head + function + "loader = DataLoader(data, collate_fn=_collate_fn)\n" + made + loop


def test_the_results_of_an_earlier_run_are_no_part_of_the_folder(folder):
    assert run(".").exit_code == 0
    written = sorted(folder.rglob("*.py"))
    assert run(".", "--force").exit_code == 0 and sorted(folder.rglob("*.py")) == written
    assert run("migrated", "-o", "again").exit_code == 0 and (folder / "again" / "digits.py").exists()
    (folder / "digits.py").unlink()
    assert run("again", "-o", ".").exit_code == 0 and (folder / "digits.py").exists()


@pytest.mark.parametrize("code", ["PTM107", "PTM403"])
def test_a_code_that_only_tells_is_explained_listed_and_left_out(folder, code):
    assert f"ptlint --explain {code}" in run("--explain", code).output
    assert f"\n{code}  " in run("--list").output
    (folder / "net.py").write_text(
        "import os\nimport torch\nos.environ['MASTER_PORT'] = '1234'\n"
        "os.environ['CUDA_VISIBLE_DEVICES'] = '0'\nclass Net(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x + torch.load('x.pt').cuda()\n"
    )
    assert code in run("--check", "net.py").output
    assert code not in run("--check", "--ignore", code, "net.py").output


def test_a_folder_without_python_is_said_so(folder):
    (folder / "nothing").mkdir()
    done = run("nothing")
    assert done.exit_code == 0 and "nothing: no Python file there" in done.stderr
