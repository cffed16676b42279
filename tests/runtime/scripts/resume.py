"""Train to the end, or until a step at which a checkpoint is written, or on from there. Prints losses by step."""

import json
import random
import sys

import numpy
import recording
import torch
import torch.nn.functional as F
from ptmigrate.runtime import Callback, Module, Trainer
from samplers import loaders
from torch.utils.data import DataLoader, TensorDataset

_, loader_name, what, path, dropout = sys.argv
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
    def on_train_batch_end(self, trainer, module, *_):
        if trainer.global_step == STOP:
            trainer.save_checkpoint(path)
            trainer.should_stop = True


random.seed(3)
torch.manual_seed(3)
class Noisy(torch.utils.data.Dataset):
    """Draws in its workers, from each library's generator."""

    def __len__(self):
        return 103

    def __getitem__(self, index):
        x, y = data[index]
        return x + torch.randn(4) + random.random() + float(numpy.random.rand()), y


def loader():
    if loader_name == "noisy workers":
        return DataLoader(Noisy(), 8, shuffle=True, num_workers=2)
    return loaders(data)[loader_name]()


data = TensorDataset(torch.randn(103, 4), torch.randint(0, 3, (103,)))
if what == "resume":
    random.seed(99)
    torch.manual_seed(99)  # whatever the second run begins with must not matter
net, losses = Net(), recording.record()
trainer = Trainer(max_epochs=3, callbacks=[StopHere()] if what == "stop" else [])
trainer.fit(net, loader(), ckpt_path=path if what == "resume" else None)
answer = {"losses": net.all_reduce(losses, "mean"), "weights": [p.double().sum().item() for p in net.parameters()]}
answer["steps"], answer["epoch"] = trainer.global_step, trainer.current_epoch
net.print(json.dumps(answer))
