"""Folders that every rank of a script asks for are made once, as by one process."""

import subprocess
import sys

import pytest

MAKES = """
import os
from pathlib import Path
import torch
from ptmigrate.runtime import Module, Trainer
from ptmigrate.runtime.environment import place
for i in range(30):
    os.makedirs(f'out/a{i}/b')
    Path(f'out/p{i}/q/r').mkdir(parents=True, exist_ok=False)
    if not os.path.exists(f'out/c{i}'):
        os.mkdir(f'out/c{i}')
os.mkdir('out/d')
for again in ('out/d', 'before'):
    try:
        os.mkdir(again)
    except FileExistsError:
        Path(f'{again}/there_{place().rank}').touch()
os.rmdir('out/c3')
os.mkdir('out/c3')
"""
TRAINS = """
class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


trainer = Trainer(max_epochs=1, accelerator='cpu', devices=2, strategy='ddp')
trainer.fit(Net(), torch.utils.data.DataLoader(torch.ones(8, 2), batch_size=2))
Path(f'out/through_{trainer.global_rank}').touch()
"""
PTRUN = [sys.executable, "-m", "ptmigrate.runtime.cli", "--accelerator", "cpu", "--devices", "2"]


def ran(folder, text, *command):
    (folder / "before").mkdir()
    (folder / "script.py").write_text(text)
    done = subprocess.run([*command, "script.py"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("there_*"))


def test_ranks_of_ptrun(tmp_path):
    text = MAKES.replace("os.rmdir('out/c3')\nos.mkdir('out/c3')\n", "")
    there = ran(tmp_path, text, *PTRUN)
    assert there == ["before/there_0", "before/there_1", "out/d/there_0", "out/d/there_1"]
    assert len(list((tmp_path / "out").iterdir())) == 91


def test_ranks_that_a_script_starts_itself(tmp_path):
    text = MAKES.replace("os.rmdir('out/c3')\nos.mkdir('out/c3')\n", "") + TRAINS
    there = ran(tmp_path, text, sys.executable)
    assert there == ["before/there_0", "before/there_1", "out/d/there_0", "out/d/there_1"]
    assert {p.name for p in (tmp_path / "out").glob("through_*")} == {"through_0", "through_1"}


def test_alone_as_ever(tmp_path):
    assert ran(tmp_path, MAKES, sys.executable) == ["before/there_0", "out/d/there_0"]


@pytest.mark.parametrize("command", [[sys.executable], PTRUN], ids=["alone", "two"])
def test_a_folder_that_was_there_is_an_error(tmp_path, command):
    (tmp_path / "script.py").write_text("import os\nimport ptmigrate.runtime\nos.makedirs('run')\n")
    (tmp_path / "run").mkdir()
    done = subprocess.run([*command, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and "FileExistsError" in done.stderr
