"""PTM4xx beyond the rules' own examples: where they must be quiet, and harder places where they must not."""

from __future__ import annotations

import pytest
from checking import found

DIST = "import torch\nimport torch.distributed as dist\ndist.init_process_group('gloo')\n"
LOOP = "for x, y in loader:\n    criterion(model(x), y).backward()\n"


def check(code, source, prelude="import torch\n"):
    return [int(f.split()[1]) for f in found(prelude + source, code)]


@pytest.mark.parametrize(
    ("code", "source"),
    [
        (
            "PTM406",
            "s = torch.utils.data.DistributedSampler(d)\nloader(s)\nfor epoch in e:\n    fit(loader, sampler=s)\n",
        ),
        ("PTM406", "s = torch.utils.data.DistributedSampler(d)\n"),
        ("PTM406", "val_sampler = torch.utils.data.DistributedSampler(d)\nfor epoch in e:\n    f()\n"),
        ("PTM406", "s = torch.utils.data.DistributedSampler(d, **options)\nfor epoch in e:\n    f()\n"),
        ("PTM404", "loader = torch.utils.data.DataLoader(test_set, shuffle=not evaluating)\n"),
        ("PTM404", "train_loader = torch.utils.data.DataLoader(test_like, shuffle=True)\n"),
        ("PTM404", "latest_loader = torch.utils.data.DataLoader(d, shuffle=True)\n"),
        ("PTM404", "test_loader = mine.DataLoader(d, shuffle=True)\n"),
        ("PTM409", "if dist.get_rank() == 0:\n    dist.all_reduce(x, group=first)\n"),
        ("PTM409", "if args.local_rank >= 0:\n    torch.distributed.barrier()\n"),
        ("PTM409", "if rank == 0:\n    torch.distributed.send(x, 1)\nelse:\n    torch.distributed.recv(x, 0)\n"),
        ("PTM409", "if rank == 0:\n    functools.reduce(f, x)\n    pool.gather(x)\n"),
        ("PTM409", "if world_size > 1:\n    torch.distributed.all_reduce(x)\n"),
        ("PTM412", "model = apex.parallel.DataParallel(model)\n"),
        ("PTM414", "a, b = torch.utils.data.random_split(d, [1, 2], torch.Generator())\n"),
        ("PTM414", "set_seed(0)\na, b = torch.utils.data.random_split(d, [1, 2])\n"),
        ("PTM416", "works.append(torch.distributed.isend(x, 1))\n"),
        ("PTM416", "_ = torch.distributed.all_reduce(x, async_op=True)\n"),
        ("PTM416", "torch.distributed.isend(x, 1).wait()\n"),
        ("PTM403", "torch.distributed.init_process_group('nccl', init_method=f'tcp://{host}:{port}')\n"),
        ("PTM403", "environment['MASTER_PORT'] = '1'\n"),
        ("PTM418", "steps = len(data) // (batch_size * world_size)\n"),
        ("PTM418", "total = batch_size * world_size\n"),
        ("PTM418", "share = sizes['train'] // cards['world_size']\nmean = loss / cfg[0] * lr[rank]\n"),
    ],
)
def test_quiet(code, source):
    assert check(code, source) == []


@pytest.mark.parametrize(
    ("code", "source", "lines"),
    [
        ("PTM404", "def val_dataloader():\n    return torch.utils.data.DataLoader(d, 32, True)\n", [3]),
        ("PTM409", "def f():\n    if rank:\n        return\n    torch.distributed.barrier()\n", [5]),
        ("PTM409", "main = torch.distributed.get_rank() == 0\nif main:\n    torch.distributed.all_gather(a, b)\n", [4]),
        ("PTM416", "torch.distributed.irecv(x, src=0)\n", [2]),
        ("PTM403", "import os\nos.environ['MASTER_ADDR'] = '127.0.0.1'\n", [3]),
        ("PTM418", "args.workers = 1\nargs.lr = args.lr * float(hvd.size())\nlr = base_lr * world_size\n", [4]),
        ("PTM418", "load(data, batch_size=4 * torch.cuda.device_count() if cuda else 4)\n", [2]),
        ("PTM418", "load(data, batch_size=4 * torch.cuda.device_count())\nseen = 4 * torch.cuda.device_count()\n", [2]),
        (
            "PTM418",
            "lr = cfg['lr'] * cfg['nprocs']\nload(batch_size=cfg['train']['batch'] // dc['world_size'])\n",
            [2, 3],
        ),
        ("PTM418", "lr = args.lr * args.world_size\nbatch = args.batch_size // torch.cuda.device_count()\n", [2, 3]),
    ],
)
def test_found(code, source, lines):
    assert check(code, source) == lines


@pytest.mark.parametrize(
    "source",
    [
        "def save():\n    torch.save(x, 'a.pt')\nif dist.get_rank() == 0:\n    save()\n",
        "class T:\n    def _save(self):\n        torch.save(x, 'a.pt')\n"
        "    def fit(self):\n        if self.gpu_id == 0:\n            self._save()\n",
        "torch.save(x, f'part-{rank}.pt')\n",
        "buffer = io.BytesIO()\ntorch.save(x, buffer)\n",
        "def f():\n    if not is_main_process():\n        return\n    torch.save(x, 'a.pt')\n",
        "print('started once, which is no flood')\n" + LOOP,
        "for epoch in range(3):\n    print(f'[rank {rank}] epoch {epoch}')\n" + LOOP,
        "def print(*a):\n    pass\nfor epoch in range(3):\n    print(epoch)\n" + LOOP,
    ],
)
def test_written_by_one_rank(source):
    assert check("PTM410", source, DIST) == []


def test_written_by_every_rank():
    source = "for epoch in range(3):\n    for x, y in loader:\n        model(x).backward()\n        print(epoch)\n"
    assert check("PTM410", source + "torch.save(x, 'a.pt')\n", DIST) == [7, 8]
    assert check("PTM410", source) == []  # one process


NET = """import pytorch_lightning as pl
class Net(pl.LightningModule):
    def {method}(self, batch, batch_idx):
        loss = self.loss(batch)
        {line}
"""


@pytest.mark.parametrize(
    ("code", "method", "line", "lines"),
    [
        ("PTM402", "validation_step", "self.log('a', loss)", [5]),
        ("PTM402", "test_step", "self.log_dict({'a': loss}, sync_dist=False)", [5]),
        ("PTM402", "test_step", "self.log('a', loss, False, True, False, True, 'mean', False, False)", [5]),
        ("PTM402", "test_step", "self.log('a', loss, False, True, False, True, 'mean', False, True)", []),
        ("PTM402", "test_step", "self.log_dict({'a': loss}, False, True, False, True, 'mean', False, True)", []),
        ("PTM402", "training_step", "self.log('a', loss)", []),
        ("PTM402", "validation_step", "self.log('a', loss, **self.how)", []),
        ("PTM402", "validation_step", "self.log('a', self.f1.compute())", []),
        ("PTM402", "validation_step", "self.logger.log('a', loss)", []),
        ("PTM407", "training_step", "self.log('a', loss, on_epoch=True, sync_dist=True)", [5]),
        ("PTM407", "validation_step", "self.log('a', loss, sync_dist=True)", []),
        ("PTM408", "training_step", "self.log('a', loss) if self.trainer.is_global_zero else None", [5]),
        ("PTM408", "training_step", "if batch_idx % 10 == 0: self.log('a', loss, sync_dist=True)", []),
    ],
)
def test_lightning(code, method, line, lines):
    assert check(code, NET.format(method=method, line=line), "") == lines


def test_a_class_that_is_no_lightning_module():
    source = NET.format(method="validation_step", line="self.log('a', loss)").replace("pl.LightningModule", "Base")
    assert check("PTM402", source, "import torch\n") == []


def test_batch_norm_is_looked_for_in_the_model_that_is_wrapped():
    source = """
class A(torch.nn.Module):
    def __init__(self):
        self.norm = torch.nn.BatchNorm2d(3)
class B(torch.nn.Module):
    pass
model = {}().cuda()
model = torch.nn.parallel.DistributedDataParallel(model)
"""
    assert check("PTM413", source.format("A")) == [9]
    assert check("PTM413", source.format("B")) == []


def test_numpy_in_a_helper_of_getitem():
    source = """
import numpy as np
class D(torch.utils.data.Dataset):
    def __getitem__(self, i):
        return self.crop(i)
    def crop(self, i):
        return np.random.rand()
    def summary(self):
        return np.random.rand()
"""
    assert check("PTM415", source) == [8]
    assert check("PTM415", source.replace("torch.utils.data.Dataset", "object")) == []


def test_state_of_a_wrapped_model_in_a_dictionary():
    source = """
def main(model):
    model = torch.nn.parallel.DistributedDataParallel(model)
    state = {"model": model.state_dict()}
    torch.save(state, "a.pt")
    copy.load_state_dict(model.state_dict())
def other(model):
    torch.save(model.state_dict(), "b.pt")
"""
    assert check("PTM411", source) == [5]
