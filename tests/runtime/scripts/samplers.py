"""One model, many loaders: losses, weights and counts with `--global-batch`. Argument `plain`: a loop written by
hand.
"""

import json
import random
import sys

import recording
import torch
import torch.nn.functional as F
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

SAMPLES, BATCH, EPOCHS = 103, 8, 2


class Buckets(Sampler):
    """A user's batch sampler: batches of changing size, drawn lazily from the generator that the model uses as well."""

    def __init__(self, lazy):
        self.lazy = lazy

    def __iter__(self):
        if not self.lazy:
            order = torch.randperm(SAMPLES).tolist()
            return iter([order[i : i + 7] for i in range(0, SAMPLES, 7)])
        return self.lazily()

    def lazily(self):
        for _ in range(9):
            yield torch.randint(0, SAMPLES, (int(torch.randint(1, 9, ())),)).tolist()

    def __len__(self):
        return 9 if self.lazy else 15


class Stream(IterableDataset):
    def __init__(self, data):
        self.data = data

    def __iter__(self):
        order = list(range(50))
        random.shuffle(order)
        return (self.data[i] for i in order)


def loaders(data):
    weights = torch.arange(1.0, SAMPLES + 1)
    return {
        "sequential": lambda: DataLoader(data, BATCH),
        "shuffled": lambda: DataLoader(data, BATCH, shuffle=True),
        "dropped": lambda: DataLoader(data, BATCH, shuffle=True, drop_last=True),
        "generator": lambda: DataLoader(data, BATCH, shuffle=True, generator=torch.Generator().manual_seed(5)),
        "weighted": lambda: DataLoader(data, BATCH, sampler=WeightedRandomSampler(weights, 41)),
        "replacement": lambda: DataLoader(data, BATCH, sampler=RandomSampler(data, True, 50)),
        "subset": lambda: DataLoader(data, BATCH, sampler=SubsetRandomSampler(range(60))),
        "eager": lambda: DataLoader(data, batch_sampler=Buckets(lazy=False)),
        "lazy": lambda: DataLoader(data, batch_sampler=Buckets(lazy=True)),
        "tiny": lambda: DataLoader(data, 1, sampler=range(5)),
        "workers": lambda: DataLoader(data, BATCH, shuffle=True, num_workers=2, persistent_workers=True),
        "stream": lambda: DataLoader(Stream(data), BATCH),
        "unbatched": lambda: DataLoader(data, None, sampler=BatchSampler(SequentialSampler(data), 10, False)),
        "list": lambda: [data[i : i + 9] for i in range(0, 60, 9)],
        "several": lambda: {
            "one": DataLoader(data, BATCH, shuffle=True),
            "two": DataLoader(data, BATCH, sampler=WeightedRandomSampler(weights, SAMPLES)),
            "three": DataLoader(Stream(data), BATCH, drop_last=True),
        },
    }


class Net(Module):
    def __init__(self, reduction):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
        self.loss_reduction = reduction
        self.seen = 0

    def forward(self, x):
        return self.layers(x)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1 if self.loss_reduction == "mean" else 0.01, momentum=0.9)

    def training_step(self, batch, batch_idx):
        if isinstance(batch, dict):
            return sum(self.training_step(each, batch_idx) for each in batch.values())
        x, y = batch
        self.seen += len(x) * (self.share > 0)
        return F.cross_entropy(self(x), y, reduction=self.loss_reduction)


def by_hand(net, loader):
    optimizer = net.configure_optimizers()
    for _ in range(EPOCHS):
        batches = zip(*loader.values(), strict=False) if isinstance(loader, dict) else loader
        for batch_idx, batch in enumerate(batches):
            if isinstance(loader, dict):
                batch = dict(zip(loader, batch, strict=True))
            optimizer.zero_grad()
            loss = net.training_step(batch, batch_idx)
            loss.backward()
            optimizer.step()


def main(plain):
    torch.manual_seed(3)
    data = TensorDataset(torch.randn(SAMPLES, 4), torch.randint(0, 3, (SAMPLES,)))
    answers = {}
    cases = [(name, "mean") for name in loaders(data)] + [("shuffled", "sum"), ("tiny", "sum")]
    for name, reduction in cases:
        random.seed(7)
        torch.manual_seed(7)
        net, loader = Net(reduction), loaders(data)[name]()
        losses = recording.record()
        if plain:
            by_hand(net, loader)
            total = losses
        else:
            Trainer(max_epochs=EPOCHS, multiple_trainloader_mode="min_size").fit(net, loader)
            total = net.all_reduce(losses, "mean")
        after = torch.rand(()).item() if net.global_rank == 0 else 0.0
        weights = [p.double().sum().item() for p in net.parameters()]
        answers[f"{name}-{reduction}"] = {
            "losses": total,
            "weights": weights,
            "seen": net.all_reduce(net.seen),
            "random": net.all_reduce(after),
        }
    net.print(json.dumps(answers))


if __name__ == "__main__":
    main(plain="plain" in sys.argv)
