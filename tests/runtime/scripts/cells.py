"""Every kind of run on one engine, in the processes that are there: `cells.py NAME [CELL ...]` prints, as JSON, what
each cell came to, or the reason for which it was refused.

The numbers must be those of one process: `cells.py single`. A cell may have an argument: `save:PATH` writes a
checkpoint after one epoch, `adopt:PATH` goes on from one, `fail` ends the job by an error of rank 1.
"""

import json
import sys
import tempfile

import torch
import torch.nn.functional as F
from ptmigrate.runtime import Module, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from torch.utils.data import DataLoader, TensorDataset

SAMPLES, BATCH = 52, 8  # the last batch has 4


class Net(Module):
    """Two layers, and what the cells look at."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.sequential_module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))

    def forward(self, x):
        return self.sequential_module(x)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)

    def loss(self, batch):
        return F.cross_entropy(self(batch[0]), batch[1])

    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        self.log("train_loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        out = self(batch[0])
        self.log("val_loss", F.cross_entropy(out, batch[1]), sync_dist=True)
        self.log("right", (out.argmax(1) == batch[1]).sum(), reduce_fx="sum", sync_dist=True)

    def predict_step(self, batch, batch_idx):
        return self(batch[0])


class Cut(Net):
    """The loss needs all samples of the batch: it is taken in training_step_end."""

    def training_step(self, batch, batch_idx):
        return {"out": self(batch[0]), "y": batch[1]}

    def training_step_end(self, outputs):
        return F.cross_entropy(outputs["out"], outputs["y"])


class Failing(Net):
    def training_step(self, batch, batch_idx):
        if batch_idx == 2 and self.trainer.global_rank == self.trainer.world_size - 1:
            raise ValueError("the first failure")
        return super().training_step(batch, batch_idx)


class Manual(Net):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(self.loss(batch))
        optimizer.step()


class TwoOptimizers(Net):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def configure_optimizers(self):
        first, _, last = self.sequential_module
        return torch.optim.Adam(first.parameters(), lr=0.01), torch.optim.SGD(last.parameters(), lr=0.1)

    def training_step(self, batch, batch_idx):
        optimizers = self.optimizers()
        for optimizer in optimizers:
            optimizer.zero_grad()
        self.manual_backward(self.loss(batch))
        for optimizer in optimizers:
            optimizer.step()


def data():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(SAMPLES, 6, generator=generator)
    return TensorDataset(x, torch.randint(0, 3, (SAMPLES,), generator=generator))


def loader(shuffle=True):
    return DataLoader(data(), BATCH, shuffle=shuffle)


def weights(module):
    return [p.detach().double().cpu().flatten().tolist() for p in module.parameters()]


class Cells:
    """`strategy` and `options`: what every Trainer gets."""

    def __init__(self, strategy, **options):
        self.strategy, self.options = strategy, options

    def trainer(self, **options):
        torch.manual_seed(7)
        return Trainer(accelerator="cpu", strategy=self.strategy, **{"max_epochs": 2, **self.options, **options})

    def trained(self, module, **options):
        trainer = self.trainer(**options)
        trainer.fit(module, loader())
        loss = trainer.callback_metrics.get("train_loss")
        return {"weights": weights(module), "loss": None if loss is None else float(loss), "steps": trainer.global_step}

    def fit(self):
        return self.trained(Net())

    def step_end(self):
        return self.trained(Cut())

    def clip(self):
        return self.trained(Net(), gradient_clip_val=0.1)

    def accumulate(self):
        return self.trained(Net(), accumulate_grad_batches=3)

    def bf16(self):
        return self.trained(Net(), precision="bf16")

    def manual(self):
        return self.trained(Manual())

    def optimizers(self):
        return self.trained(TwoOptimizers())

    def validate(self):
        return self.trainer().validate(Net(), loader(shuffle=False))[0]

    def predict(self):
        return [part.tolist() for part in self.trainer().predict(Net(), loader(shuffle=False))]

    def save(self, path):
        trainer, module = self.trainer(max_epochs=1), Net()
        trainer.fit(module, loader())
        trainer.save_checkpoint(path)
        return {"weights": weights(module), "steps": trainer.global_step}

    def adopt(self, path):
        trainer, module = self.trainer(max_epochs=2), Net()
        trainer.fit(module, loader(), ckpt_path=path)
        return {"weights": weights(module), "steps": trainer.global_step}

    def resume(self):
        """One epoch, a checkpoint, a new module that goes on: all on this engine."""
        path = self.trainer().runtime.broadcast(tempfile.mkdtemp()) + "/half.ckpt"
        self.save(path)
        return self.adopt(path)

    def fail(self):
        self.trainer().fit(Failing(), loader())

    def run(self, names):
        answers = {}
        for name in names:
            cell, _, argument = name.partition(":")
            try:
                answers[cell] = getattr(self, cell)(*([argument] if argument else []))
            except ConfigurationError as error:
                answers[cell] = {"refused": str(error)}
        return answers


CELLS = "fit validate predict resume clip accumulate bf16 manual optimizers step_end".split()

if __name__ == "__main__":
    names = sys.argv[2:] or CELLS
    cells = Cells(sys.argv[1])
    answers = cells.run([name for name in names if name != "fail"])
    if cells.trainer().is_global_zero:
        print(json.dumps(answers), flush=True)
    if "fail" in names:
        cells.fail()
