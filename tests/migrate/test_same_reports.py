"""A report is the same in every run: nothing in it follows the order of a set, which differs by process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LABELLED = str(Path(__file__).parents[1] / "lint_rules" / "labelled")
COMMANDS = {
    "ptlint": ["ptmigrate.lint_rules.cli", "--no-cache", LABELLED],
    "ptmigrate": ["ptmigrate.migrate.cli", "--check", LABELLED],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_two_runs_say_the_same(command):
    said = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-m", *command], env=environment, capture_output=True, timeout=200)
        assert done.returncode == 1, done.stderr
        said.append(done.stdout)
    assert len(said[0]) > 10_000 and said[0] == said[1]
