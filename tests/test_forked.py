"""Scripts in forks are scripts: their arguments, their ranks, their ends, and nothing of one is left for the next."""

import time

import pytest

from tests import forked

TWO = ("--accelerator", "cpu", "--devices", "2", "--global-batch")


def script(folder, text):
    (folder / "script.py").write_text(text)
    return folder / "script.py"


def test_a_script_is_the_main_program(tmp_path):
    text = "import sys\nprint(__name__, sys.argv[1:], sys.modules['__main__'].__file__ == sys.argv[0])"
    assert forked.run(script(tmp_path, text), "-x", "3").stdout == "__main__ ['-x', '3'] True\n"


MEETS = """
from ptmigrate.runtime import Runtime
runtime = Runtime()
runtime.connect()
print(f'{runtime.rank} {runtime.all_reduce(runtime.rank + 1)}')
"""


def test_ranks_have_their_places_and_meet(tmp_path):
    done = forked.ptrun(*TWO, script(tmp_path, MEETS))
    assert sorted(done.stdout.splitlines())[:2] == ["0 3", "1 3"], done.stderr


def test_the_first_that_fails_ends_the_others(tmp_path):
    text = "import os, time\nif os.environ['RANK'] == '1':\n    raise ValueError('first')\ntime.sleep(100)"
    began = time.monotonic()
    done = forked.ptrun(*TWO, script(tmp_path, text))
    assert done.returncode == 1 and "ValueError: first" in done.stderr and time.monotonic() - began < 60


def test_one_that_takes_too_long_is_ended_and_the_next_one_runs(tmp_path):
    with pytest.raises(pytest.fail.Exception, match="took more than 1 s"):
        forked.run(script(tmp_path, "import time\ntime.sleep(100)"), limit=1)
    assert forked.run(script(tmp_path, "print('next')")).stdout == "next\n"
