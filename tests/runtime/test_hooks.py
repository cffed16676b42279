"""No hook is silently idle: all of Lightning's are here, and what it once had is refused with its successor."""

import pytest
import torch
from ptmigrate.runtime import Callback, Module, Trainer, gone
from ptmigrate.runtime.errors import ConfigurationError
from torch.utils.data import DataLoader, TensorDataset

lightning = pytest.importorskip("lightning.pytorch")
ELSEWHERE = {"fabric", "to_onnx", "to_tensorrt", "to_torchscript", "device_mesh", "remove_ignored_hparams"}


@pytest.mark.parametrize(("ours", "theirs"), [(Module, lightning.LightningModule), (Callback, lightning.Callback)])
def test_every_name_of_lightnings_is_here(ours, theirs):
    names = {name for cls in theirs.__mro__ if cls.__module__.startswith("lightning") for name in vars(cls)}
    missing = {name for name in names if not name.startswith("_") and not name.isupper() and not hasattr(ours, name)}
    assert missing - ELSEWHERE == set()


def test_every_attribute_of_lightnings_trainer_is_here():
    names = {name for name in dir(lightning.Trainer) if not name.startswith("_")}
    trainer = Trainer(accelerator="cpu")
    there = {name for name in names if hasattr(trainer, name)}
    assert names - there == set()


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch[0]).sum()


LOADER = DataLoader(TensorDataset(torch.ones(8, 2)), 4)


@pytest.mark.parametrize("name", gone.INSTEAD)
def test_what_is_gone_is_refused(name):
    method = {name: lambda self, *args: None}
    for module, callbacks in ((type("Old", (Net,), method)(), []), (Net(), [type("Old", (Callback,), method)()])):
        with pytest.raises(ConfigurationError, match=f"Old.{name} would never be called; use "):
            Trainer(accelerator="cpu", max_epochs=1, callbacks=callbacks).fit(module, LOADER)


class Two(Net):
    """Lightning 1's automatic optimization with two optimizers."""

    def __init__(self, frequencies=None):
        super().__init__()
        self.other, self.frequencies, self.calls = torch.nn.Linear(2, 1), frequencies, []

    def configure_optimizers(self):
        pair = [torch.optim.SGD(part.parameters(), 0.1) for part in (self.layer, self.other)]
        if self.frequencies is None:
            return pair
        return [{"optimizer": o, "frequency": f} for o, f in zip(pair, self.frequencies, strict=True)]

    def training_step(self, batch, batch_idx, optimizer_idx):
        wanted = [self.layer.weight.requires_grad, self.other.weight.requires_grad]
        self.calls.append((batch_idx, optimizer_idx, wanted))
        return (self.layer(batch[0]) + self.other(batch[0])).sum()

    def optimizer_zero_grad(self, epoch, batch_idx, optimizer, optimizer_idx):
        optimizer.zero_grad()


def test_each_optimizer_in_its_turn():
    module = Two()
    trainer = Trainer(accelerator="cpu", max_epochs=1)
    trainer.fit(module, LOADER)
    assert module.calls == [(b, o, [o == 0, o == 1]) for b in (0, 1) for o in (0, 1)]
    assert trainer.global_step == 4 and module.layer.weight.requires_grad and module.other.weight.requires_grad
    assert torch.allclose(module.layer.weight.grad, torch.full((1, 2), 4.0))


def test_frequencies():
    module = Two((1, 2))
    Trainer(accelerator="cpu", max_epochs=3).fit(module, LOADER)
    assert [o for _, o, _ in module.calls] == [0, 1, 1, 0, 1, 1]


def test_several_optimizers_without_optimizer_idx():
    class Pair(Two):
        def training_step(self, batch, batch_idx):
            return self.layer(batch[0]).sum()

    with pytest.raises(ConfigurationError, match="optimizer_idx, or set automatic_optimization = False"):
        Trainer(accelerator="cpu", max_epochs=1).fit(Pair(), LOADER)


def test_log_where_nothing_is_collected():
    class Logs(Net):
        def on_train_end(self):
            self.log("late", 1.0)

    with pytest.raises(ConfigurationError, match="log\\('late'\\): nothing is collected here"):
        Trainer(accelerator="cpu", max_epochs=1).fit(Logs(), LOADER)


@pytest.mark.parametrize(("stage", "step"), [("fit", "training"), ("validate", "validation"), ("test", "test")])
def test_a_missing_step_is_named(stage, step):
    class Empty(Module):
        """No steps."""

    with pytest.raises(ConfigurationError, match=f"{stage} needs Empty.{step}_step"):
        getattr(Trainer(accelerator="cpu"), stage)(Empty(), LOADER)
