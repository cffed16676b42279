"""The results of fixtures/plain on a card: all is where it has to be, and the losses are those of the CPU.

The card is a simulated one (tests/simulated_card.py), which raises where tensors of two places meet.
"""

from pathlib import Path

import pytest
from click.testing import CliRunner
from ptmigrate.migrate.cli import command

from tests import forked
from tests.migrate.verify.test_fixtures import FIXTURES, SCRIPTS

CARD = Path(__file__).parents[2] / "simulated_card.py"

OF_THE_CARD = "there is a GPU here"  # what dcgan.py says where there is one


def run(folder, *command):
    done = forked.run(*command, cwd=folder, limit=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_same_on_a_card(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(command, ["--output", "new", str(FIXTURES / name)]).exit_code in (0, 1)
    (result,) = (tmp_path / "new").rglob(Path(name).name)
    (tmp_path / "cpu").mkdir()
    (tmp_path / "card").mkdir()
    on_cpu = run(tmp_path / "cpu", result)
    on_card = run(tmp_path / "card", CARD, result)
    lines = [line for line in on_card.splitlines() if not line.startswith(OF_THE_CARD)]
    assert [line.replace("cuda:0", "cpu") for line in lines] == on_cpu.splitlines()


MADE = "torch.tensor([1.0, 2.0], device=y.device)"
NEW = ["new_zeros(2)", "new_ones(2)", "new_empty(2)", "new_full((2,), 1.0)", "new_tensor([1.0, 2.0])"]
MIXED = [
    "x + y",
    "y.numpy()",
    "x[torch.tensor([0]).cuda()]",
    "torch.nn.Linear(2, 1)(y)",
    f"x + {MADE}",
    *(f"x + y.{made}" for made in NEW),
    "y + y.new_zeros(2, device='cpu')",
    "y + x.new_ones(2)",
    "torch.tensor(0.0).add_(y.sum())",
]
APART = [
    *(f"y + y.{made}; x + x.{made}" for made in NEW),
    "x + y.new_zeros(2, device='cpu')",
    "y + x.new_zeros(2, device='cuda')",
    "x + y.cpu()",
    "y + 1.0",
    "y + torch.tensor(1.0)",
    "y[torch.tensor([0])]",
    "x.type_as(y) + y",
    "x.type_as(y.double()) + y",
    f"y + {MADE}",
    "torch.as_tensor(x) + x",
    "torch.nn.functional.one_hot(y.long(), 2) + y[0]",
    "torch.nn.functional.pad(y.view(1, 1, 2), (1, 1), mode='circular') + y[0]",  # torch itself makes a new one
]


def test_two_places_do_not_mix(tmp_path):
    script = tmp_path / "script.py"
    told = "try:\n    {}\n    print('silent')\nexcept (RuntimeError, TypeError):\n    print('told')\n"
    head = "import torch\nx, y = torch.ones(2), torch.ones(2).cuda()\nassert y.is_cuda and not x.is_cuda\n"
    script.write_text(head + "".join(map(told.format, MIXED)) + "\n".join(APART))
    assert run(tmp_path, CARD, script) == "told\n" * len(MIXED)


PACKED = """
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
net, x = torch.nn.GRU(3, 4, batch_first=True).cuda(), torch.randn(2, 5, 3).cuda()
out, _ = net(pack_padded_sequence(x, torch.tensor([5, 3]), batch_first=True))
out, lengths = pad_packed_sequence(out, batch_first=True)
assert out.is_cuda and not lengths.is_cuda
out[torch.arange(2), 1].sum().backward()
assert net.weight_ih_l0.grad.is_cuda
try:
    pack_padded_sequence(x, torch.tensor([5, 3]).cuda(), batch_first=True)
except RuntimeError as told:
    assert "CPU" in str(told)
    print("told")
"""


def test_lengths_are_on_the_cpu_and_what_backward_makes_is_on_the_card(tmp_path):
    (tmp_path / "packed.py").write_text(PACKED)
    assert run(tmp_path, CARD, "packed.py") == "told\n"
