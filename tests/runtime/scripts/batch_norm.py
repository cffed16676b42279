"""Models with batch norm, trained with the global batch divided: losses, weights and running statistics.

Arguments: names of cases; none: all. `alone`: each rank's own statistics, which a share of one sample has not.
"""

import json
import sys

import recording
import torch
import torch.nn.functional as F
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Flat(Module):
    def __init__(self):
        super().__init__()
        norm = torch.nn.BatchNorm1d(8)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 8), norm, torch.nn.Tanh(), torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8, momentum=None)
        )
        self.last = torch.nn.Linear(8, 3)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1, momentum=0.9)

    def training_step(self, batch, batch_idx):
        return F.cross_entropy(self.last(self.layers(batch[0])), batch[1])

    def validation_step(self, batch, batch_idx):
        self.log("val", F.cross_entropy(self.last(self.layers(batch[0])), batch[1]), sync_dist=True)


class Images(Flat):
    """Two dimensions more, no running statistics in one layer, no weights in the other, and a frozen one."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Unflatten(1, (1, 2, 2)),
            torch.nn.Conv2d(1, 4, 1),
            torch.nn.BatchNorm2d(4, track_running_stats=False),
            torch.nn.ReLU(),
            torch.nn.Conv2d(4, 2, 1),
            torch.nn.BatchNorm2d(2, affine=False),
            torch.nn.Flatten(),
            torch.nn.BatchNorm1d(8),
        )
        self.layers[-1].eval()

    def on_train_epoch_start(self):
        self.layers[-1].eval()


class Penalty(Flat):
    """The gradient's gradient, through batch norm."""

    def training_step(self, batch, batch_idx):
        x = batch[0].clone().requires_grad_()
        out = self.layers(x)
        (slope,) = torch.autograd.grad(out.square().mean(), x, create_graph=True)
        # slopes carry 1 / samples; where shares are equal the penalty of a share is that of its samples
        return F.cross_entropy(self.last(out), batch[1]) + (slope * len(x)).square().sum(1).mean() / 10


class Manual(Flat):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        for part in (1.0, 0.5):
            optimizer.zero_grad()
            self.manual_backward(super().training_step(batch, batch_idx) * part)
            optimizer.step()


class Hooked(Flat):
    """Batches that every rank has whole, in training mode, between the divided ones; then by rank 0 alone."""

    def look(self, rows):
        with torch.no_grad():
            self.last(self.layers(torch.linspace(-1, 1, 4 * rows).view(rows, 4)))

    def on_train_epoch_start(self):
        self.look(6)

    def on_train_epoch_end(self):
        self.look(5)
        if self.global_rank == 0:
            before = {k: v.clone() for k, v in self.state_dict().items()}
            self.look(3)
            self.load_state_dict(before)


class Skips(Flat):
    """One rank has no loss for one batch, after the layers that all ranks share."""

    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch, batch_idx)
        skips = batch_idx == 2 and self.global_rank == self.trainer.world_size - 1
        return None if skips and self.trainer.world_size > 1 else loss


def train(kind, size, **options):
    torch.manual_seed(5)
    data = TensorDataset(torch.randn(44, 4), torch.randint(0, 3, (44,)))
    module, losses = kind(), recording.record()
    trainer = Trainer(accelerator="cpu", max_epochs=2, **options)
    trainer.fit(module, DataLoader(data, size, shuffle=True), DataLoader(data, 10))
    module.calls = len(losses)
    if kind is Skips:
        losses = []
    return {
        "losses": module.all_reduce(losses, "mean"),
        "weights": [v.double().sum().item() for v in module.state_dict().values()],
        "val": float(trainer.callback_metrics["val"]),
        "classes": sorted({type(part).__name__ for part in module.modules()}),
    }


if __name__ == "__main__":
    if "alone" in sys.argv:
        train(Flat, 3, sync_batchnorm=False)
    cases = {
        "flat": (Flat, 8, {}),
        "images": (Images, 7, {}),
        "few": (Flat, 3, {}),  # with four ranks, one has an empty share, the others one sample each
        "hooked": (Hooked, 8, {}),
        "accumulated": (Flat, 5, {"accumulate_grad_batches": 2}),
        "manual": (Manual, 8, {}),
        "skips": (Skips, 8, {}),
        "penalty": (Penalty, 4, {}),
        "asked": (Flat, 8, {"sync_batchnorm": True}),
    }
    answers = {}
    for name in sys.argv[1:] or cases:
        kind, size, options = cases[name]
        answers[name] = train(kind, size, **options)
    Trainer(accelerator="cpu").print(json.dumps(answers))
