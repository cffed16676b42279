"""`.cuda()` above a Trainer means the rank's own card: the first that begins with CUDA finds it the current one."""

import os
import subprocess
import sys

import pytest

from tests.gpus import count, needs_gpu
from tests.gpus import run as run_on_gpus

# CUDA is begun with by hand, as there is none: what torch has queued for that is run
BEGIN = """\
import torch
from ptmigrate.runtime import Trainer
assert not torch.cuda.is_initialized()
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: {cards}
torch.cuda.set_device = lambda device: print("on", device)
for call, _ in torch.cuda._queued_calls:
    if "ptmigrate" in call.__module__:
        call()
"""
RANK_1 = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
RANK_1 |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}


def begin(cards: int, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN.format(cards=cards)],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("environment", "card"),
    [
        (RANK_1, "on cuda:1\n"),
        ({**RANK_1, "PTMIGRATE_ACCELERATOR": "cpu"}, ""),
        ({}, ""),  # a process that is alone
    ],
)
def test_a_rank_has_its_own_card(environment, card):
    assert begin(4, **environment) == card


def test_a_rank_without_a_card_is_left_for_the_trainer_to_refuse():
    assert begin(1, **RANK_1) == ""


@needs_gpu
@pytest.mark.skipif(count() < 2, reason="two GPUs are needed")
def test_what_is_placed_above_the_trainer_is_on_the_rank_s_card(tmp_path):
    script = tmp_path / "place.py"
    script.write_text(
        "import os, torch\nfrom ptmigrate.runtime import Trainer\nx = torch.ones(2).cuda()\n"
        "assert x.device.index == int(os.environ['LOCAL_RANK']), x.device\n"
    )
    command = ["-m", "ptmigrate.runtime.cli", "--accelerator", "gpu", "--devices", 2, "--strategy", "ddp"]
    assert run_on_gpus(tmp_path, *command, script).returncode == 0
