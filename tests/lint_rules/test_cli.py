"""The command as its users call it."""

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "rich", "libcst", "click", "numpy", "dataclasses", "json", "multiprocessing", "tomllib"}
BAD = "import torch\nmodel = torch.nn.Linear(2, 2).cuda()\n"


def ptlint(*arguments, cwd, **options):
    command = [sys.executable, "-c", "from ptmigrate.lint_rules.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, **options)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "good.py").write_text("import torch\n")
    (tmp_path / "other.py").write_text("this is not Python, and no one asks\n")
    return tmp_path


def test_concise(folder):
    done = ptlint(cwd=folder)
    assert done.returncode == 1
    assert done.stdout == "bad.py:2:9: PTM101 `torch.nn.Linear(2, 2).cuda()` places by hand, and on CUDA only\n"
    assert done.stderr == ""


def test_clean(folder):
    done = ptlint("good.py", "other.py", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_json(folder):
    done = ptlint("--output-format", "json", ".", cwd=folder)
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert document["version"] == 1
    assert document["errors"] == []
    assert document["findings"] == [
        {
            "path": "bad.py",
            "code": "PTM101",
            "name": "hard-coded-device",
            "line": 2,
            "column": 9,
            "end_line": 2,
            "end_column": 37,
            "message": "`torch.nn.Linear(2, 2).cuda()` places by hand, and on CUDA only",
            "fix": "unsafe",
        }
    ]
    summary = {"files": 3, "findings": 1, "errors": 0, "fixed": 0, "by_code": {"PTM101": 1}, "lesser": {}}
    assert document["summary"] == summary


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("syntax.py", b"import torch\nx = (\n", "syntax.py:2:5: syntax error"),
        ("two.py", b"import torch\nprint 'loss'\n", "two.py:2:1: Python 2"),
        ("nul.py", b"import torch\n\x00\n", "nul.py:2:1: NUL byte"),
        ("binary.py", bytes(range(256)), "binary.py:1:1: NUL byte"),
        ("latin.py", b"import torch\ns = '\xe9'\n", "latin.py:2:6: not valid utf-8"),
        ("klingon.py", b"# coding: klingon\nimport torch\n", "klingon.py:1:1: unknown encoding 'klingon'"),
        ("deep.py", b"import torch\n" + b"(" * 500 + b")" * 500, "deep.py:2:"),
        ("chain.py", b"import torch\nx" + b".a" * 5000, "chain.py:1:1: nested too deep"),
    ],
)
def test_a_bad_file_never_stops_the_others(folder, name, data, said):
    (folder / name).write_bytes(data)
    done = ptlint(cwd=folder)
    assert done.returncode == 2
    assert done.stdout.startswith("bad.py:2:9: PTM101")
    assert done.stderr.startswith(f"error: {said}")
    document = json.loads(ptlint("--output-format=json", cwd=folder).stdout)
    assert [f["path"] for f in document["findings"]] == ["bad.py"]
    assert [e["path"] for e in document["errors"]] == [name]


def test_what_is_not_there(folder):
    done = ptlint("gone.py", "bad.py", cwd=folder)
    assert done.returncode == 2
    assert "gone.py:1:1: no such file or directory" in done.stderr
    assert "PTM101" in done.stdout


def test_links_that_lead_back(folder):
    (folder / "self.py").symlink_to("self.py")
    (folder / "up").symlink_to(folder)
    done = ptlint(cwd=folder)
    assert done.returncode == 2
    assert done.stdout.count("PTM101") == 1
    assert "self.py:1:1: a symbolic link that leads back to itself" in done.stderr
    assert "up:1:1: a symbolic link back to" in done.stderr


def test_skipped_folders(folder):
    for name in (".venv", "build", "env"):
        (folder / name).mkdir()
        (folder / name / "bad.py").write_text(BAD)
    (folder / "env" / "pyvenv.cfg").write_text("")
    assert ptlint(cwd=folder).stdout.count("PTM101") == 1
    assert ptlint("build", cwd=folder).stdout.count("PTM101") == 1  # named, so wanted


def test_noqa(folder):
    for comment in ("# noqa", "# noqa: PTM101", "# noqa: E501, PTM101 - one machine only", "# NOQA:PTM101"):
        (folder / "bad.py").write_text(BAD.rstrip() + f"  {comment}\n")
        assert ptlint("bad.py", cwd=folder).returncode == 0, comment
    for comment in ("# noqa: E501", "# noqaPTM", "# no qa"):
        (folder / "bad.py").write_text(BAD.rstrip() + f"  {comment}\n")
        assert ptlint("bad.py", cwd=folder).returncode == 1, comment


def test_wrong_usage(folder):
    assert ptlint("--output-format", "xml", cwd=folder).returncode == 2
    assert ptlint("--nonsense", cwd=folder).returncode == 2


@pytest.mark.parametrize("arguments", ["'good.py'", "'bad.py'", "'--version'"])
def test_imports_little(folder, arguments):
    """A hook that runs on every commit must not load what it does not need."""
    script = (
        "import sys\nfrom ptmigrate.lint_rules.cli import main\n"
        f"sys.argv = ['ptlint', {arguments}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"heavy = {HEAVY} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
