"""Iterable data sets of many kinds, trained and evaluated in the processes that are there: losses, weights, metrics and
samples, which have to be those of one process.
"""

import itertools
import json
import os
import random
import tempfile

import recording
import torch
import torch.nn.functional as F
from ptmigrate.runtime import ModelCheckpoint, Module, Trainer
from torch.utils.data import ChainDataset, DataLoader, IterableDataset, get_worker_info

SAMPLES, BATCH = 103, 8


def samples():
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(SAMPLES, 4, generator=generator), torch.randint(0, 3, (SAMPLES,), generator=generator)
    return list(zip(x, y, torch.arange(SAMPLES), strict=True))


class Stream(IterableDataset):
    def __init__(self, first=0, last=SAMPLES):
        self.items = samples()[first:last]

    def __iter__(self):
        return iter(self.items)


class Shuffled(Stream):
    """Draws the order from the generator that everything draws from."""

    def __iter__(self):
        return (self.items[i] for i in torch.randperm(len(self.items)).tolist())


class DrawsAsItGoes(Stream):
    def __iter__(self):
        return ((x + 0.1 * torch.randn(4), y, number) for x, y, number in self.items)


class Sharded(Stream):
    """What the documentation of torch shows: each worker has its own part."""

    def __iter__(self):
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        return itertools.islice(iter(self.items), first, None, step)


class Buffer(Stream):
    """A pipeline of generators, as of web data sets: shards, samples, a buffer that shuffles, batches."""

    def __iter__(self):
        return self.batched(self.mixed(self.read(self.shards())))

    def shards(self):
        worker = get_worker_info()
        every = list(range(0, SAMPLES, 20))
        random.Random(5).shuffle(every)
        return every[worker.id :: worker.num_workers] if worker is not None else every

    def read(self, shards):
        for first in shards:
            yield from self.items[first : first + 20]

    def mixed(self, stream):
        held = []
        for item in stream:
            held.append(item)
            if len(held) > 10:
                yield held.pop(random.randrange(len(held)))
        random.shuffle(held)
        yield from held

    def batched(self, stream):
        while batch := list(itertools.islice(stream, 7)):
            yield tuple(torch.stack(field) for field in zip(*batch, strict=True))


class Endless(Stream):
    def __iter__(self):
        return itertools.cycle(self.items)


class WithLength(Stream):
    def __len__(self):
        return len(self.items)


class Net(Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
        self.seen, self.ends = [], []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    def training_step(self, batch, batch_idx):
        x, y, numbers = batch
        if self.share:
            self.seen += numbers.tolist()
        loss = F.cross_entropy(self.layers(x), y)
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y, _ = batch
        out = self.layers(x)
        self.log("value", F.cross_entropy(out, y), sync_dist=True)
        self.log("count", float(len(y)), reduce_fx="sum", sync_dist=True)

    def predict_step(self, batch, batch_idx):
        return batch[2]


class Asks(Net):
    def training_step(self, batch, batch_idx):
        if self.trainer.is_last_batch:
            self.ends.append(batch_idx)
        return super().training_step(batch, batch_idx)


def loaders():
    return {
        "stream": lambda: DataLoader(Stream(), BATCH),
        "shuffled": lambda: DataLoader(Shuffled(), BATCH),
        "draws": lambda: DataLoader(DrawsAsItGoes(), BATCH),
        "dropped": lambda: DataLoader(Stream(), BATCH, drop_last=True),
        "sharded": lambda: DataLoader(Sharded(), BATCH, num_workers=2),
        "persistent": lambda: DataLoader(Sharded(), BATCH, num_workers=2, persistent_workers=True),
        "drawing workers": lambda: DataLoader(DrawsAsItGoes(), BATCH, num_workers=2),
        "buffer": lambda: DataLoader(Buffer(), None),
        "buffer in workers": lambda: DataLoader(Buffer(), None, num_workers=2),
        "endless": lambda: DataLoader(Endless(), BATCH),
        "with a length": lambda: DataLoader(WithLength(), BATCH),
        "chained": lambda: DataLoader(ChainDataset([Stream(0, 50), Shuffled(50, 103)]), BATCH),
        "few": lambda: DataLoader(Stream(0, 9), BATCH),
        "batches": lambda: list(Buffer()),
    }


def train(name, kind=Net, **options):
    random.seed(4)
    net, losses = kind(), recording.record()
    torch.manual_seed(4)
    trainer = Trainer(max_epochs=2, accelerator="cpu", **options)
    trainer.fit(net, loaders()[name](), loaders()[name]() if name != "endless" else None)
    weights = [p.double().sum().item() for p in net.parameters()]
    metrics = {key: float(value) for key, value in trainer.callback_metrics.items()}
    after = torch.rand(()).item() if net.global_rank == 0 else 0.0
    return {
        "losses": net.all_reduce(losses, "mean"),
        "weights": weights,
        "metrics": metrics,
        "seen": net.all_reduce([net.seen.count(number) for number in range(SAMPLES)]),
        "ends": net.ends,
        "random": net.all_reduce(after),
    }


def kept(name):
    """Checkpoints of steps, by a value that each epoch's last batch waits for."""
    with tempfile.TemporaryDirectory() as folder:
        keeper = ModelCheckpoint(folder, monitor="value", every_n_train_steps=13, save_top_k=-1)
        answer = train(name, callbacks=[keeper])
        return {**answer, "ends": sorted(os.path.basename(path) for path in keeper.best_k_models)}


def main():
    answers = {name: train(name, limit_train_batches=10 if name == "endless" else 1.0) for name in loaders()}
    for name in ("stream", "few", "buffer in workers"):
        answers[f"{name}, accumulated"] = train(name, accumulate_grad_batches=3)
        answers[f"{name}, asked for its end"] = train(name, Asks)
    answers["stream, kept every few steps"] = kept("stream")
    predicting = Trainer(accelerator="cpu")
    for name in ("stream", "sharded"):
        answers[f"{name}, predicted"] = [part.tolist() for part in predicting.predict(Net(), loaders()[name]())]
    predicting.print(json.dumps(answers))


if __name__ == "__main__":
    main()
