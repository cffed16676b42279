"""What a run says where another would be silent."""

import pytest
import torch
from ptmigrate.runtime import Module, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from torch.utils.data import DataLoader, TensorDataset


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch[0]).mean()

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        self.log("size", float(len(batch[0])))

    def test_step(self, batch, batch_idx): ...

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def loader(samples=4):
    return DataLoader(TensorDataset(torch.ones(samples, 2)), 2)


def fit(module, batches=None):
    Trainer(max_epochs=1, accelerator="cpu").fit(module, batches or loader())


def test_the_metrics_of_an_evaluation(capsys):
    trainer, module = Trainer(accelerator="cpu"), Net()
    trainer.validate(module, [loader(), loader(6)])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["validate", "metric", "loader", "0", "loader", "1"] in lines and ["size/dataloader_idx_1", "2"] in lines
    trainer.validate(module, loader(), verbose=False)
    trainer.test(module, loader())
    assert capsys.readouterr().out == ""


def test_no_optimizer(capsys):
    module = Net()
    module.configure_optimizers = lambda: None
    fit(module)
    assert "no optimizer steps in this fit" in capsys.readouterr().err


@pytest.mark.parametrize("empty", [[], ([], [])])
def test_an_empty_list_of_optimizers_is_refused(empty):
    module = Net()
    module.configure_optimizers = lambda: empty
    with pytest.raises(ConfigurationError, match="return None to run the steps without one"):
        fit(module)
    module.automatic_optimization = False
    fit(module)


class Samples:
    def __init__(self, rows):
        self.x = torch.stack([row[0] for row in rows])


@pytest.mark.parametrize("size", [None, 2])
def test_a_batch_that_does_not_tell_its_size(size, recwarn):
    class Logs(Net):
        def training_step(self, batch, batch_idx):
            loss = self.layer(batch.x).mean()
            self.log("loss", loss, on_epoch=True, batch_size=size)
            return loss

    fit(Logs(), DataLoader(TensorDataset(torch.ones(4, 2)), 2, collate_fn=Samples))
    told = [warning for warning in recwarn if "Samples does not tell how many samples" in str(warning.message)]
    assert bool(told) == (size is None)


def test_a_compiled_module():
    with pytest.raises(ConfigurationError, match=r"self\.net = torch\.compile"):
        fit(torch.compile(Net(), backend="eager"))


def test_a_checkpoint_that_is_not_there():
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        Net.load_from_checkpoint("nowhere.ckpt")
