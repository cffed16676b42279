"""Steps and data that draw at random from every generator; prints the losses of global batches, and the weights."""

import json
import random
import sys

import numpy as np
import torch
import torch.nn.functional as F
from ptmigrate.runtime import Module, Trainer, rank_zero_print
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    default_collate,
    get_worker_info,
    random_split,
)

CASES = [
    *"step late manual validated validation unsaid dry split flips".split(),
    *"samples collated masked lazy streamed together hooks workers persistent".split(),
    "masking workers",
    "flipping workers",
]
SAMPLES, QUIET = 103, {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}


class Net(Module):
    def __init__(self, manual=False, late=False):
        super().__init__()
        dropout = 0.0 if late else 0.5
        layers = (torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(16, 3))
        self.net = torch.nn.Sequential(*layers)
        self.automatic_optimization = not manual
        self.late, self.losses = late, []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    def training_step(self, batch, batch_idx):
        x, y = batch["long"] if isinstance(batch, dict) else batch
        if not self.late or batch_idx % 5 == 3:  # in some steps only, and not in an epoch's first
            x = x + torch.randn_like(x) + torch.as_tensor(np.random.normal(0, 0.1, (len(x), 6)), dtype=x.dtype)
            x = x * 2 if random.random() < 0.5 else x
        loss = F.cross_entropy(self.net(x), y)
        if not self.automatic_optimization:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        self.losses.append(float(self.batch_mean(loss.detach())))
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("loss", F.cross_entropy(self.net(batch[0]), batch[1]), sync_dist=True)


class Tested(Net):
    def on_validation_epoch_end(self):
        self.losses.append(float(self.trainer.callback_metrics["loss"]))

    def test_step(self, batch, batch_idx):
        self.validation_step(batch, batch_idx)


class Hooks(Net):
    def on_after_batch_transfer(self, batch, dataloader_idx):
        return [batch[0] + torch.randn_like(batch[0]), batch[1]] if self.trainer.training else batch

    def on_train_batch_start(self, batch, batch_idx):
        batch[0].mul_(torch.rand(len(batch[0]), 1))

    def on_train_batch_end(self, outputs, batch, batch_idx):
        torch.randn(5, 7)  # pictures, now and then: the next step goes on behind them


class OneByOne(Net):
    def training_step(self, batch, batch_idx):
        x = torch.stack([row.roll(int(torch.randint(0, 6, ()))) for row in batch[0]])
        return super().training_step((x, batch[1]), batch_idx)


def blurred(x):
    return x + torch.randn_like(x)


class Unsaid(Net):
    """Says nothing of it; `drawing`: in which epochs."""

    def __init__(self, drawing=(0, 1)):
        super().__init__()
        self.drawing = drawing

    def validation_step(self, batch, batch_idx):
        x = blurred(batch[0]) if self.current_epoch in self.drawing else batch[0]
        self.log("loss", F.cross_entropy(self.net(x), batch[1]), sync_dist=True)

    def on_validation_epoch_end(self):
        self.losses.append(float(self.trainer.callback_metrics["loss"]))


class DrawsInValidation(Unsaid):
    validation_draws = True


class Counted(Dataset):
    """Draws nothing."""

    def __init__(self, data):
        self.data, self.loads = data, 0

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        self.loads += 1
        return self.data[index]


class Flipped(Counted):
    """Draws for each sample."""

    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        x = x.flip(0) if random.random() < 0.5 else x
        return x + torch.rand(1) + float(np.random.rand()), y


class Stream(IterableDataset):
    def __init__(self, data):
        self.data = data

    def __iter__(self):
        return (self.data[index] for index in range(SAMPLES))


class Lazy:
    """A sampler that draws as it goes."""

    def __len__(self):
        return SAMPLES

    def __iter__(self):
        return (int(torch.randint(0, SAMPLES, ())) for _ in range(SAMPLES))


def masked(samples):
    """Draws for each batch."""
    x, y = default_collate(samples)
    return x * torch.bernoulli(torch.full(x.shape, 0.7)), y


def knows_its_data(worker):
    """What the documentation of torch lets a worker_init_fn do."""
    assert isinstance(get_worker_info().dataset, Flipped)


def cases(data):
    loader = DataLoader(data, 8, shuffle=True)
    flipped = Flipped(data)
    return {
        "step": lambda: (Net(), loader),
        "late": lambda: (Net(late=True), loader),
        "manual": lambda: (Net(manual=True), loader),
        "validated": lambda: (Net(), loader, DataLoader(data, 16, shuffle=True)),
        "validation": lambda: (DrawsInValidation(), loader, DataLoader(data, 16)),
        "unsaid": lambda: (Unsaid(), loader, DataLoader(data, 16, shuffle=True)),
        "dry": lambda: (Unsaid(drawing=()), loader, DataLoader(data, 16, shuffle=True)),
        "late validation": lambda: (Unsaid(drawing=(1,)), loader, DataLoader(data, 16)),
        "split": lambda: (Tested(), *(DataLoader(half, 8, shuffle=True) for half in random_split(flipped, [70, 33]))),
        "flips": lambda: (Tested(), loader, DataLoader(flipped, 60, collate_fn=masked)),
        "flipping workers": lambda: (Tested(), loader, DataLoader(flipped, 12, collate_fn=masked, num_workers=2)),
        "samples": lambda: (Net(), DataLoader(flipped, 8, shuffle=True)),
        "collated": lambda: (Net(), DataLoader(flipped, 8, shuffle=True, collate_fn=masked)),
        "masked": lambda: (Net(), DataLoader(data, 8, shuffle=True, collate_fn=masked)),
        "workers": lambda: (Net(), DataLoader(flipped, 8, shuffle=True, num_workers=2)),
        "persistent": lambda: (
            Net(),
            DataLoader(
                flipped,
                8,
                True,
                num_workers=2,
                persistent_workers=True,
                worker_init_fn=knows_its_data,
                generator=torch.Generator().manual_seed(7),
                multiprocessing_context="spawn",
            ),
        ),
        "masking workers": lambda: (Net(), DataLoader(data, 8, shuffle=True, collate_fn=masked, num_workers=2)),
        "lazy": lambda: (Net(), DataLoader(flipped, 8, sampler=Lazy())),
        "together": lambda: (Net(), {"long": loader, "short": DataLoader(data, 40, shuffle=True)}),
        "hooks": lambda: (Hooks(), loader),
        "told": lambda: (OneByOne(), loader),
        "few": lambda: (Net(), DataLoader(Subset(data, range(10)), 8)),
        "streamed": lambda: (Net(), DataLoader(Stream(flipped), 8)),
    }


def main(names):
    answers = {}
    for name in names or CASES:
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        data = Counted(TensorDataset(torch.randn(SAMPLES, 6), torch.randint(0, 3, (SAMPLES,))))
        net, *loaders = cases(data)[name]()
        trainer = Trainer(max_epochs=2, num_sanity_val_steps=0, **QUIET)
        trainer.fit(net, *loaders)
        if isinstance(net, Tested):
            net.losses += [trainer.test(net, loaders[1], verbose=False)[0]["loss"] for _ in range(2)]
        weights = torch.cat([parameter.detach().flatten() for parameter in net.parameters()])
        drawn = [torch.rand(()).item(), random.random(), np.random.rand()] if net.global_rank == 0 else []
        loads = net.trainer.runtime.all_reduce(data.loads)
        answers[name] = {"losses": net.losses, "weights": weights.tolist(), "drawn": drawn, "loads": loads}
    rank_zero_print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
