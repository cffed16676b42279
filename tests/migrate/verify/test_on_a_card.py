"""The results of fixtures/plain on a card: all is where it has to be, and the losses are those of the CPU.

The card is a simulated one (tests/simulated_card.py), which raises where tensors of two places meet.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.migrate.verify.test_fixtures import FIXTURES, SCRIPTS

CARD = Path(__file__).parents[2] / "simulated_card.py"

# what the simulation cannot do, and why
BEYOND_IT = {
    "karate_gcn.py": "autograd makes the gradient of an index where it takes the CPU's memory to be",
}
OF_THE_CARD = "there is a GPU here"  # what dcgan.py says where there is one


def run(folder, *command, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in BEYOND_IT])
def test_the_same_on_a_card(tmp_path, name):
    command = [sys.executable, "-m", "ptmigrate.migrate.cli", "--output", str(tmp_path / "new"), str(FIXTURES / name)]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60).returncode in (0, 1)
    (result,) = (tmp_path / "new").rglob(Path(name).name)
    (tmp_path / "cpu").mkdir()
    (tmp_path / "card").mkdir()
    on_cpu = run(tmp_path / "cpu", result)
    on_card = run(tmp_path / "card", CARD, result)
    lines = [line for line in on_card.splitlines() if not line.startswith(OF_THE_CARD)]
    assert [line.replace("cuda:0", "cpu") for line in lines] == on_cpu.splitlines()


MADE = "torch.tensor([1.0, 2.0], device=y.device)"
MIXED = [
    "x + y",
    "y.numpy()",
    "x[torch.tensor([0]).cuda()]",
    "torch.nn.Linear(2, 1)(y)",
    f"x + {MADE}",
    "x + y.new_tensor(0)",
]
APART = [
    "x + y.cpu()",
    "y + 1.0",
    "y + torch.tensor(1.0)",
    "y[torch.tensor([0])]",
    "x.type_as(y) + y",
    f"y + {MADE}",
    "torch.as_tensor(x) + x",
]


def test_two_places_do_not_mix(tmp_path):
    script = tmp_path / "script.py"
    told = "try:\n    {}\n    print('silent')\nexcept (RuntimeError, TypeError):\n    print('told')\n"
    head = "import torch\nx, y = torch.ones(2), torch.ones(2).cuda()\nassert y.is_cuda and not x.is_cuda\n"
    script.write_text(head + "".join(map(told.format, MIXED)) + "\n".join(APART))
    assert run(tmp_path, CARD, script) == "told\n" * len(MIXED)
