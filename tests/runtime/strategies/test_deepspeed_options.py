"""DeepSpeed's offloading, configs with an optimizer, and its own checkpoint: the weights of one process."""

import importlib.util
from functools import cache

import pytest
from engine_matrix import numbers
from ptmigrate.runtime import DeepSpeedStrategy
from ptmigrate.runtime.errors import ConfigurationError

from tests.forked import answers, ptrun, run

CASES = "offload_2 offload_3 cpu_offload config_adam config_offload manual_offload whole_2 whole_3".split()
pytestmark = pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed")


@cache
def two():
    return answers("deepspeed_options.py", 2)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_processes_train_as_one(case):
    one = answers("cells.py", 1, "single", "fit")["fit"]
    assert numbers(two()[case]["weights"]) == pytest.approx(numbers(one["weights"]), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["whole_2", "whole_3"])
def test_its_own_checkpoint_has_a_file_of_optimizer_states_a_process(case):
    assert two()[case]["files"] >= 3


def test_a_folder_without_a_checkpoint_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=f"no checkpoint of DeepSpeed's in '{tmp_path}'"):
        DeepSpeedStrategy.consolidate(tmp_path, tmp_path / "whole.ckpt")


PENALTY = """
import torch
from ptmigrate.runtime import Module, Trainer

class Net(Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        x = batch.requires_grad_()
        return torch.autograd.grad(self.net(x).sum(), x, create_graph=True)[0].pow(2).mean()

loader = torch.utils.data.DataLoader(torch.ones(8, 4), 4)
Trainer(max_epochs=1, logger=False, enable_checkpointing=False).fit(Net(), loader)
"""


@pytest.mark.slow
@pytest.mark.parametrize("stage", [2, 3])
def test_gradients_of_gradients_in_stage_3_name_the_way_out(stage, tmp_path):
    (tmp_path / "penalty.py").write_text(PENALTY)
    strategy = f"deepspeed_stage_{stage}"
    done = ptrun("--accelerator", "cpu", "--devices", "2", "--strategy", strategy, str(tmp_path / "penalty.py"))
    assert (done.returncode == 0) == (stage == 2), done.stderr[-4000:]
    assert ("use 'deepspeed_stage_2'" in done.stderr) == (stage == 3)


SAVED_AT_THE_END = """
import torch
from ptmigrate.runtime import Module, Trainer

class Net(Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        return self.net(batch).pow(2).mean()

    def on_train_end(self):
        self.trainer.save_checkpoint("end.ckpt")

net = Net()
loader = torch.utils.data.DataLoader(torch.ones(8, 4), 4)
Trainer(max_epochs=1, logger=False, enable_checkpointing=False).fit(net, loader)
saved = torch.load("end.ckpt")["state_dict"]
print(all(value.equal(saved[name]) for name, value in net.state_dict().items()), [p.numel() for p in net.parameters()])
"""


@pytest.mark.slow
def test_a_checkpoint_at_the_end_of_training_leaves_the_weights_whole_in_stage_3(tmp_path):
    (tmp_path / "end.py").write_text(SAVED_AT_THE_END)
    options = ("--accelerator", "cpu", "--devices", "1", "--strategy", "deepspeed_stage_3")
    done = ptrun(*options, str(tmp_path / "end.py"), cwd=tmp_path)
    assert done.stdout.splitlines()[-1:] == ["True [4, 1]"], done.stderr[-4000:]


HARD_LAYERS = """
import sys
import torch
from ptmigrate.runtime import Module, Trainer

class Net(Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
        self.lstm = torch.nn.LSTM(4, 4, batch_first=True)
        self.last = torch.nn.Linear(4, 1)
        self.norms = []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        x = self.attention(batch, batch, batch)[0]  # which takes the parameters of a layer in it
        out = torch.nn.functional.linear(self.lstm(x)[0], self.last.weight, self.last.bias)
        return out.pow(2).mean()

class Manual(Net):
    automatic_optimization = False

    def training_step(self, batch, batch_idx):
        for _ in range(2):
            self.optimizers().zero_grad()
            self.manual_backward(super().training_step(batch, batch_idx))
            self.optimizers().step()

class Hooked(Net):
    def on_after_backward(self):
        self.norms.append(sum(float(p.grad.norm()) for p in self.parameters()))

generator = torch.Generator().manual_seed(2)
loader = torch.utils.data.DataLoader(torch.randn(8, 3, 4, generator=generator), 4)
for kind in (Manual, Hooked):
    found = []
    for strategy in ("single", "deepspeed_stage_3"):
        net, fits = kind(), 2 if kind is Hooked else 1
        for _ in range(fits):
            options = {"logger": False, "enable_checkpointing": False, "accelerator": "cpu", "devices": 1}
            Trainer(max_epochs=1, strategy=strategy, **options).fit(net, loader)
        found.append([*net.norms, *(float(p.detach().abs().sum()) for p in net.parameters())])
    print(torch.tensor(found[0]).allclose(torch.tensor(found[1]), atol=1e-5))
"""


AGAIN = """
import copy
import sys
import torch
from ptmigrate.runtime import Module, Trainer

class Net(Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        return self.net(batch).pow(2).mean()

class Manual(Net):
    automatic_optimization = False

    def training_step(self, batch, batch_idx):
        self.optimizers().zero_grad()
        self.manual_backward(super().training_step(batch, batch_idx))
        self.optimizers().step()

loader = torch.utils.data.DataLoader(torch.randn(12, 4, generator=torch.Generator().manual_seed(2)), 4)
for kind in (Net, Manual):
    found = []
    for strategy in ("single", sys.argv[1]):
        net = kind()
        for _ in range(2):
            options = {"logger": False, "enable_checkpointing": False, "accelerator": "cpu", "devices": 1}
            Trainer(max_epochs=1, strategy=strategy, **options).fit(net, loader)
            with torch.no_grad():
                for parameter in net.parameters():
                    parameter.mul_(0.5)
        found.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    torch.save(copy.deepcopy(net), "net.pt")
    print(found[0].allclose(found[1], atol=1e-5), [list(vars(p)) for p in net.parameters() if vars(p)])
"""


@pytest.mark.slow
@pytest.mark.parametrize("stage", [1, 3])
def test_weights_that_are_changed_between_two_fits(stage, tmp_path):
    (tmp_path / "again.py").write_text(AGAIN)
    done = run(str(tmp_path / "again.py"), f"deepspeed_stage_{stage}", cwd=tmp_path)
    assert done.stdout.splitlines().count("True []") == 2, done.stdout + done.stderr[-4000:]


@pytest.mark.slow
def test_layers_that_take_parameters_of_others_and_a_second_fit_in_stage_3(tmp_path):
    (tmp_path / "layers.py").write_text(HARD_LAYERS)
    done = run(str(tmp_path / "layers.py"))
    assert done.stdout.splitlines().count("True") == 2, done.stderr[-4000:]
