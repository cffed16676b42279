"""Train to the end, or until a step at which a checkpoint is written, or on from there; once with each of the loaders
that are named. Prints losses by step.
"""

import json
import random
import sys

import numpy
import recording
import torch
import torch.nn.functional as F
from ptmigrate.runtime import Callback, Module, Trainer, rank_zero_print
from samplers import loaders
from torch.utils.data import DataLoader, Dataset, TensorDataset

_, names, what, folder, dropout = sys.argv
STOP = 17  # in the middle of the second epoch


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.Dropout(float(dropout)), torch.nn.Tanh(), torch.nn.Linear(8, 3)
        )

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)]

    def training_step(self, batch, batch_idx):
        return F.cross_entropy(self.layers(batch[0]), batch[1])


class StopHere(Callback):
    def __init__(self, path):
        self.path = path

    def on_train_batch_end(self, trainer, module, *_):
        if trainer.global_step == STOP:
            trainer.save_checkpoint(self.path)
            trainer.should_stop = True


class Noisy(Dataset):
    """Draws in its workers, from each library's generator."""

    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        x, y = self.data[index]
        return x + torch.randn(4) + random.random() + float(numpy.random.rand()), y


def train(name):
    random.seed(3)
    numpy.random.seed(3)
    torch.manual_seed(3)
    data = TensorDataset(torch.randn(103, 4), torch.randint(0, 3, (103,)))
    if what == "resume":
        random.seed(99)
        numpy.random.seed(99)
        torch.manual_seed(99)  # whatever the second run begins with must not matter
    noisy = {"shuffle": True, "num_workers": 2}
    every = {
        **loaders(data),
        "noisy workers": lambda: DataLoader(Noisy(data), 8, **noisy),
        "noisy": lambda: DataLoader(Noisy(data), 8, shuffle=True),
        "own generator": lambda: DataLoader(Noisy(data), 8, generator=torch.Generator().manual_seed(5), **noisy),
    }
    net, losses, path = Net(), recording.record(), f"{folder}/{name}.ckpt"
    trainer = Trainer(max_epochs=3, callbacks=[StopHere(path)] if what == "stop" else [])
    trainer.fit(net, every[name](), ckpt_path=path if what == "resume" else None)
    weights = [p.double().sum().item() for p in net.parameters()]
    ended = {"steps": trainer.global_step, "epoch": trainer.current_epoch}
    return {"losses": net.all_reduce(losses, "mean"), "weights": weights, **ended}


rank_zero_print(json.dumps({name: train(name) for name in names.split(",")}))
