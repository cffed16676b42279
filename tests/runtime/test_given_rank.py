"""A launcher's `--local_rank` reaches the scripts that have the option, and no others."""

import subprocess
import sys

import pytest
from ptmigrate.runtime import is_global_zero, is_local_zero
from ptmigrate.runtime.given_rank import without

PLAIN = """
import argparse
from ptmigrate.runtime import Trainer
parser = argparse.ArgumentParser()
parser.add_argument('--lr', type=float)
OPTION
print(parser.parse_args())
"""


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["--local_rank", "1", "--lr", "2"], ["--lr", "2"]),
        (["--lr", "2", "--local-rank=1"], ["--lr", "2"]),
        (["--local_rank_x", "1"], ["--local_rank_x", "1"]),
        ([], []),
    ],
)
def test_the_option_and_its_value_go(given, kept):
    assert without(given) == kept


@pytest.mark.parametrize("argument", [["--local_rank", "1"], ["--local-rank=1"]])
@pytest.mark.parametrize("option", ["", "parser.add_argument('--local_rank', '--local-rank', type=int)"])
def test_a_script_sees_it_where_it_has_it(tmp_path, argument, option):
    script = tmp_path / "script.py"
    script.write_text(PLAIN.replace("OPTION", option))
    command = [sys.executable, str(script), *argument, "--lr", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == ("Namespace(lr=2.0, local_rank=1)\n" if option else "Namespace(lr=2.0)\n"), done.stderr


def test_a_script_of_another_kind_keeps_its_arguments(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import importlib, sys\nimportlib.import_module('ptmigrate.' + 'runtime')\nprint(sys.argv[1:])\n")
    done = subprocess.run(
        [sys.executable, str(script), "--local_rank", "1"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "['--local_rank', '1']\n", done.stderr


def test_the_first_of_each_machine(monkeypatch):
    place = {"RANK": "4", "LOCAL_RANK": "0", "WORLD_SIZE": "8", "MASTER_ADDR": "a", "MASTER_PORT": "1"}
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    assert is_local_zero() and not is_global_zero()
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert not is_local_zero()
