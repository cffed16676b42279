"""Manual optimization with two optimizers, accumulation and clipping, the same on any number of processes."""

import json

import recording
import torch
import torch.nn.functional as F
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader, TensorDataset


class Pair(Module):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.first, self.second = torch.nn.Linear(4, 6), torch.nn.Linear(6, 3)

    def configure_optimizers(self):
        return torch.optim.Adam(self.first.parameters(), 0.01), torch.optim.SGD(self.second.parameters(), 0.1)

    def training_step(self, batch, batch_idx):
        one, two = self.optimizers()
        x, y = batch
        self.toggle_optimizer(one)
        one.zero_grad()
        self.manual_backward(F.cross_entropy(self.second(torch.tanh(self.first(x))), y))
        self.clip_gradients(one, 0.1, "norm")
        one.step()
        self.untoggle_optimizer(one)
        self.manual_backward(F.cross_entropy(self.second(torch.tanh(self.first(x))), y) / 2)
        if batch_idx % 2:
            two.step()
            two.zero_grad()


class Automatic(Module):
    """Accumulation, clipping, a parameter that no step uses, and all of it under `self.log`."""

    def __init__(self):
        super().__init__()
        self.net, self.unused = torch.nn.Linear(4, 3), torch.nn.Linear(2, 2)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1, momentum=0.9)

    def training_step(self, batch, batch_idx):
        return F.cross_entropy(self.net(batch[0]), batch[1])


class StepEnd(Automatic):
    def training_step(self, batch, batch_idx):
        return {"out": batch[0], "y": batch[1]}

    def training_step_end(self, outputs):
        return F.cross_entropy(self.net(outputs["out"]), outputs["y"])


def same(kind):
    torch.manual_seed(3)
    return kind()


torch.manual_seed(2)
data = TensorDataset(torch.randn(103, 4), torch.randint(0, 3, (103,)))
answers = {}
for name, module, options in (
    ("manual", Pair(), {}),
    ("automatic", Automatic(), {"accumulate_grad_batches": 3, "gradient_clip_val": 0.05}),
    ("step", same(Automatic), {}),
    ("step end", same(StepEnd), {}),
    ("half", Automatic(), {"precision": "16-mixed", "gradient_clip_val": 0.05}),
):
    torch.manual_seed(4)
    losses = recording.record()
    trainer = Trainer(max_epochs=2, **options)
    trainer.fit(module, DataLoader(data, 8, shuffle=True))
    answers[name] = {
        "losses": module.all_reduce(losses, "mean"),
        "weights": [p.double().sum().item() for p in module.parameters()],
        "steps": trainer.global_step,
    }
Trainer().print(json.dumps(answers))
