"""StochasticWeightAveraging as Lightning's: rates, hooks, weights, the epoch that measures batch norm; a resume."""

import pytest
import torch
from ptmigrate.runtime import ModelCheckpoint, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from sides import OURS, QUIET, check, common, data, fit, outcome, rate
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader


def classifier(side, norm=True, scheduled=False):
    class Classifier(common(side)):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            norms = [torch.nn.BatchNorm1d(8)] if norm else []
            self.net = torch.nn.Sequential(torch.nn.Linear(4, 8), *norms, torch.nn.ReLU(), torch.nn.Linear(8, 3))

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
            return ([optimizer], [StepLR(optimizer, 1, 0.5)]) if scheduled else optimizer

        def training_step(self, batch, batch_idx):
            loss = self.loss(batch)
            self.log("loss", loss, on_step=True, on_epoch=True)
            return loss

        def validation_step(self, batch, batch_idx):
            self.log("value", self.loss(batch))

        def on_train_epoch_start(self):
            self.note(self.current_epoch, self.trainer.max_epochs, list(self.parameters()))

        def on_before_zero_grad(self, optimizer):
            self.note("zero_grad")

        def on_before_backward(self, loss):
            self.note("backward")

        def on_before_optimizer_step(self, optimizer):
            self.note("step")

        def on_train_batch_end(self, outputs, batch, batch_idx):
            self.note(batch_idx, self.global_step, outputs["loss"], rate(self))

        def on_train_end(self):
            self.note(self.current_epoch, self.trainer.max_epochs)

    return Classifier


ROWS = [
    ({"swa_lrs": 0.05}, {}, False),
    ({"swa_lrs": [0.05], "swa_epoch_start": 2, "annealing_epochs": 2, "annealing_strategy": "linear"}, {}, True),
    ({"swa_lrs": 0.02, "swa_epoch_start": 0.4}, {"accumulate_grad_batches": 3, "gradient_clip_val": 0.1}, True),
    ({"swa_lrs": 0.02, "swa_epoch_start": 3}, {"max_epochs": -1, "max_steps": 40}, False),
    ({"swa_lrs": 0.02, "swa_epoch_start": 1.0, "avg_fn": lambda mean, new, count: 0.9 * mean + 0.1 * new}, {}, False),
]


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("row", range(len(ROWS)))
def test_like_lightning(row, norm, tmp_path, monkeypatch):
    asked, options, scheduled = ROWS[row]

    def case(side):
        averaging = side.callbacks.StochasticWeightAveraging(**asked)
        module, trainer = fit(
            side, classifier(side, norm, scheduled), {"callbacks": [averaging], "max_epochs": 5, **options}
        )
        return outcome(module, trainer, averaged=int(averaging.n_averaged))

    check(case, tmp_path, monkeypatch)


REFUSED = [{"swa_lrs": 0.0}, {"swa_lrs": 1}, {"swa_lrs": [0.1, 2]}, {"swa_epoch_start": 0}, {"swa_epoch_start": 1.5}]


@pytest.mark.parametrize("asked", REFUSED)
def test_what_is_refused_there_too(asked, tmp_path, monkeypatch):
    check(lambda side: side.callbacks.StochasticWeightAveraging(**{"swa_lrs": 0.1, **asked}), tmp_path, monkeypatch)


def test_an_epoch_that_never_comes_is_refused():
    """Lightning gives the module the weights that it began with."""
    averaging = OURS.callbacks.StochasticWeightAveraging(0.1, swa_epoch_start=9)
    with pytest.raises(ConfigurationError, match="beyond max_epochs=3"):
        fit(OURS, classifier(OURS), {"callbacks": [averaging]})


def test_measuring_batch_norm_changes_no_weight():
    """Lightning steps once more with the last gradients, where no validation has cleared them."""
    begins = []

    class Keeps(classifier(OURS)):
        def on_train_epoch_start(self):
            begins.append([p.detach().clone() for p in self.parameters()])

    averaging = OURS.callbacks.StochasticWeightAveraging(0.05, swa_epoch_start=3)
    module, _ = fit(OURS, Keeps, {"callbacks": [averaging], "max_epochs": 5, "limit_val_batches": 0})
    for index, parameter in enumerate(module.parameters()):
        mean = sum(begins[epoch][index] for epoch in (2, 3, 4)) / 3
        torch.testing.assert_close(parameter.data, mean)


MEASURING = 99  # in the epoch after the last, which steps no more


@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("steps", [33, 37, 44, MEASURING])
def test_a_run_that_goes_on_is_the_same_run(steps, scheduled, tmp_path):
    class Measures(OURS.Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            if trainer.current_epoch == 5 and batch_idx == 3:
                trainer.save_checkpoint(tmp_path / f"step={MEASURING}.ckpt")

    def train(**given):
        module = classifier(OURS, scheduled=scheduled)()
        averaging = OURS.callbacks.StochasticWeightAveraging(0.02, swa_epoch_start=3, annealing_epochs=2)
        keeps = ModelCheckpoint(tmp_path, "{step}", save_top_k=-1, every_n_train_steps=1)
        trainer = Trainer(**{**QUIET, "callbacks": [averaging, keeps, Measures()], "max_epochs": 5})
        torch.manual_seed(6)
        trainer.fit(module, DataLoader(data(), 8, shuffle=True), **given)
        return module.state_dict(), trainer.max_epochs

    whole, epochs = train()
    if steps == MEASURING:
        assert torch.load(tmp_path / f"step={steps}.ckpt", weights_only=True)["epoch"] == 5
    rest, same = train(ckpt_path=tmp_path / f"step={steps}.ckpt")
    torch.testing.assert_close(rest, whole, rtol=0, atol=0)
    assert (epochs, same) == (5, 5)
