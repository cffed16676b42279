"""`on_train_batches_end`: once an epoch, when its batches are over and before the validation at its end."""

import numpy as np
import pytest
import torch
from ptmigrate.runtime import Module, Trainer
from ptmigrate.runtime.handle import _weighed


class Told(Module):
    def __init__(self, stops_at=None):
        super().__init__()
        self.layer, self.told, self.stops_at = torch.nn.Linear(2, 1), [], stops_at

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, batch, batch_idx):
        self.told.append(batch_idx)
        if batch_idx == self.stops_at:
            self.trainer.stop_epoch()
        return self.layer(batch).sum()

    def on_train_batches_end(self):
        assert self.layer.training and torch.is_grad_enabled()
        self.told.append("over")

    def validation_step(self, batch, batch_idx):
        self.told.append("val")

    def on_train_epoch_end(self):
        self.told.append("end")


BATCHES = [torch.ones(3, 2)] * 3


def fit(module, train, **options):
    Trainer(accelerator="cpu", enable_progress_bar=False, num_sanity_val_steps=0, **options).fit(
        module, train, BATCHES[:1]
    )
    return module.told


@pytest.mark.parametrize("train", [BATCHES, type("Stream", (), {"__iter__": lambda self: iter(BATCHES)})()])
def test_it_comes_after_the_batches_whether_their_number_is_known_or_not(train):
    assert fit(Told(), train, max_epochs=2) == [0, 1, 2, "over", "val", "end"] * 2


def test_it_comes_in_an_epoch_that_is_left_early():
    assert fit(Told(stops_at=1), BATCHES, max_epochs=2) == [0, 1, "over", "val", "end"] * 2


def test_it_comes_once_where_nothing_or_more_is_validated():
    assert fit(Told(), BATCHES, max_epochs=1, limit_val_batches=0) == [0, 1, 2, "over", "end"]
    often = fit(Told(), BATCHES, max_epochs=1, val_check_interval=1)
    assert often == [0, "val", 1, "val", 2, "over", "val", "end"]
    assert fit(Told(), BATCHES, max_epochs=2, check_val_every_n_epoch=2).count("over") == 2


def test_the_mean_over_a_batch_is_the_very_object_in_one_process():
    module, value = Told(), torch.ones(2)
    assert module.batch_mean(value) is value
    fit(module, BATCHES, max_epochs=1)
    assert module.batch_mean(value) is value


@pytest.mark.parametrize(
    ("leaf", "weighed"),
    [
        (3.0, 1.5),
        (3, 1.5),
        (np.float32(3.0), 1.5),
        (np.int64(3), 1.5),
        (torch.tensor(3.0), 1.5),
        (True, True),
        ("three", "three"),
        (None, None),
    ],
)
def test_each_rank_weighs_what_it_brings(leaf, weighed):
    """NumPy's float32 is no float: two ranks gave twice the mean."""
    assert _weighed(leaf, 0.5) == weighed
