"""`ptrun -m package.train`: a module is run as `python -m` runs it, on one process and on two."""

import sys

import pytest
from launching import ptrun
from ptmigrate.runtime.cli import _file_of
from ptmigrate.runtime.errors import ConfigurationError

TRAIN = """import sys
import torch
from ptmigrate.runtime import Trainer, rank_zero_print
from .net import Net

torch.manual_seed(0)
loader = torch.utils.data.DataLoader(torch.randn(12, 3), batch_size=4)
trainer = Trainer(max_epochs=1)
trainer.fit(Net(), loader)
rank_zero_print("trained", trainer.world_size, __name__, __package__, sys.argv[1:])
"""
NET = """import torch
from ptmigrate.runtime import Module


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("")
    (tmp_path / "mine" / "net.py").write_text(NET)
    (tmp_path / "mine" / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    return tmp_path / "mine"


@pytest.mark.parametrize(("devices", "option"), [("1", "-m"), ("2", "--module")])
def test_a_module_of_a_package_trains(package, devices, option):
    done = ptrun("--accelerator", "cpu", "--devices", devices, option, "mine.train", "-m", "3", cwd=package.parent)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"trained {devices} __main__ mine ['-m', '3']"


def test_the_file_of_a_package_is_its_main(package):
    (package / "__main__.py").write_text("from . import train\n")
    assert _file_of("mine").endswith("__main__.py") and _file_of("mine.train").endswith("train.py")


@pytest.mark.parametrize("name", ["yours", "mine", "mine.other", "mine/train.py", ".train", "json"])
def test_what_is_no_such_module(package, name):
    with pytest.raises(ConfigurationError, match="was not found: name it as in `python -m`"):
        _file_of(name)
