"""The hook with the real pre-commit, in a throw-away repository, its environment built from a clone of this one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BAD = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\n"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
]


def git(folder, *arguments, home=None):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    env = {**os.environ, "PRE_COMMIT_HOME": str(home)} if home else None
    subprocess.run(["git", *identity, *arguments], cwd=folder, env=env, check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def hooks(tmp_path_factory):
    """This package as a repository: what is in the work tree, not only what is committed."""
    folder = tmp_path_factory.mktemp("hooks") / "repository"
    folder.mkdir()
    for name in ("pyproject.toml", ".pre-commit-hooks.yaml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("lint_rules", "migrate", "runtime"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all")
    git(folder, "tag", "v1")
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def project(tmp_path, hooks):
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "good.py").write_text("import torch\n")
    (folder / "notes.txt").write_text(BAD)
    (folder / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {hooks}\n  rev: v1\n  hooks:\n  - id: ptlint\n  - id: ptlint-fix\n    stages: [manual]\n"
    )
    return folder


def run_hook(project, home, *arguments, staging=True):
    pytest.importorskip("pre_commit")
    if staging:
        git(project, "add", "-A")
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", *(arguments or ("run", "ptlint"))],
        cwd=project,
        env={**os.environ, "PRE_COMMIT_HOME": str(home), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )


def test_staged_files_are_checked(project, home):
    done = run_hook(project, home)
    assert done.returncode == 0, done.stdout + done.stderr
    (project / "bad.py").write_text(BAD)
    done = run_hook(project, home)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "bad.py:3:9: PTM101" in done.stdout
    assert "good.py" not in done.stdout.partition("ptlint...")[2]
    assert "exit code: 1" in done.stdout


def test_a_broken_file_is_told(project, home):
    (project / "broken.py").write_text("import torch\ndef f(:\n")
    done = run_hook(project, home)
    assert "exit code: 2" in done.stdout
    assert "broken.py:2:7: syntax error" in done.stdout


def test_a_commit_is_stopped(project, home):
    assert run_hook(project, home, "install").returncode == 0
    (project / "bad.py").write_text(BAD)
    git(project, "add", "-A")
    with pytest.raises(subprocess.CalledProcessError) as stopped:
        git(project, "commit", "-m", "bad", home=home)
    assert "PTM101" in stopped.value.stdout + stopped.value.stderr


def test_the_fixing_variant_changes_files(project, home):
    old = "import torch\nfrom torch.autograd import Variable\n\nx = Variable(torch.zeros(1))  # kept\n"
    (project / "old.py").write_text(old)
    (project / "unstaged.py").write_text(old)
    git(project, "add", "old.py")
    done = run_hook(project, home, "run", "ptlint-fix", "--hook-stage", "manual", staging=False)
    assert done.returncode == 1 and "files were modified by this hook" in done.stdout, done.stdout + done.stderr
    assert (project / "old.py").read_text() == old.replace("Variable(torch.zeros(1))", "torch.zeros(1)")
    assert (project / "unstaged.py").read_text() == old
    done = run_hook(project, home, "run", "ptlint-fix", "--hook-stage", "manual")
    assert (project / "unstaged.py").read_text() != old
    assert run_hook(project, home, "run", "ptlint-fix", "--hook-stage", "manual").returncode == 0
    (project / "bad.py").write_text(BAD)  # what only an unsafe fix settles stays, and is told
    done = run_hook(project, home, "run", "ptlint-fix", "--hook-stage", "manual")
    assert "bad.py:3:9: PTM101" in done.stdout and (project / "bad.py").read_text() == BAD


def test_the_environment_holds_no_torch(project, home):
    assert run_hook(project, home).returncode == 0
    installed = {path.name for path in home.glob("repo*/py_env*/lib/python3*/site-packages/*")}
    assert "ptmigrate" in installed
    assert "torch" not in installed
