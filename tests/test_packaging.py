"""The distribution: every subfolder is named, and the commands start without what they do not need."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("migrate", "lint_rules", "runtime")


def test_every_package_folder_is_named_in_pyproject():
    tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = set(project["tool"]["setuptools"]["packages"])
    there = {
        "ptmigrate." + ".".join(path.parent.relative_to(ROOT).parts)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("__init__.py")
    }
    assert there == named


def imported(code: str, *names: str) -> set[str]:
    """Which of the names a fresh interpreter has imported after running the code."""
    program = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\n"
    program += f"print(*[n for n in {names!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.splitlines()[-1].split()) & set(names)


def test_the_version_of_ptmigrate_imports_neither_torch_nor_libcst_nor_rich():
    code = "sys.argv = ['ptmigrate', '--version']; from ptmigrate.migrate.cli import main; main()"
    assert imported(code, "torch", "libcst", "rich") == set()


def test_the_help_of_ptrun_imports_no_torch():
    code = "sys.argv = ['ptrun', '--help']; from ptmigrate.runtime.cli import main; main()"
    assert imported(code, "torch") == set()


def test_the_runtime_imports_neither_of_the_others():
    for path in (ROOT / "runtime").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "ptmigrate.migrate" not in text and "ptmigrate.lint_rules" not in text, path
