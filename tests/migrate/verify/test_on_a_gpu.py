"""Every plain script of fixtures/plain on a GPU: the result prints what the original prints, on one process and on two
that share the GPU.
"""

import re
import subprocess
import sys

import pytest

from tests.gpus import needs_gpu, on_two_nodes, run
from tests.migrate.verify.test_fixtures import FIXTURES, RUNGS, SCRIPTS

NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
SUMS_IN_ONE_ORDER = """
import runpy, sys, torch
torch.backends.cudnn.deterministic = True
torch.use_deterministic_algorithms(True, warn_only=True)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
OWN = ("ptmigrate:", "ddp on ")  # lines of the runtime's


def numbers(text):
    lines = [line for line in text.splitlines() if not line.startswith(OWN)]
    return [float(number) for line in lines for number in re.findall(NUMBER, line)]


@needs_gpu
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name in SCRIPTS if "/" not in name and not name.startswith("ddp_")])
def test_the_same_on_a_gpu(tmp_path, name):
    command = [sys.executable, "-m", "ptmigrate.migrate.cli", "--output", str(tmp_path / "new"), str(FIXTURES / name)]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60).returncode in (0, 1)
    (result,) = (tmp_path / "new").rglob(name)
    folders = [tmp_path / folder for folder in ("original", "one", "two")]
    for folder in folders:
        folder.mkdir()
    started = ("-W", "ignore", "-c", SUMS_IN_ONE_ORDER)
    original, one = run(folders[0], *started, FIXTURES / name), run(folders[1], *started, result)
    assert original.returncode == 0, original.stderr
    assert one.returncode == 0, one.stderr
    assert [line for line in one.stdout.splitlines() if not line.startswith(OWN)] == original.stdout.splitlines()
    if RUNGS[-1] not in SCRIPTS[name][1]:
        two = on_two_nodes(folders[2], result)
        assert two.returncode == 0, two.stderr
        assert numbers(two.stdout) == pytest.approx(numbers(original.stdout), rel=2e-3, abs=1e-3)
