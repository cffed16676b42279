"""A seed of its own for each rank is told of where every process computes the batches that it draws."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """import os
import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
args = parse()
rank = dist.get_rank()
args.local_rank = int(os.environ["LOCAL_RANK"])
{seeds}
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
{loop}
    loss = model(x).mean()
    optimizer.zero_grad()
    loss.backward()
    {step}
"""
DRAWN = "for step in range(8):\n    x = torch.randn(4, 2)"
LOADED = "loader = DataLoader(data, 4, sampler=DistributedSampler(data))\nfor x in loader:"
STEP, KEPT = "optimizer.step()", "optimizer.step() if fetch() else leave(model, globals())"


def told(seeds, loop=DRAWN, step=STEP):
    notes = migrate_text(SCRIPT.format(seeds=seeds, loop=loop, step=step)).attention
    return [n.line for n in notes if "the ranks drew other batches" in n.message]


@pytest.mark.parametrize(
    "seeds",
    [
        "torch.manual_seed(17 + rank)",
        "torch.manual_seed(args.seed + args.local_rank)",
        "np.random.seed(rank)",
        "seed = args.seed * 100 + rank\ntorch.manual_seed(seed)",
        "args.seed += rank",
        "draws = np.random.default_rng(dist.get_rank())",
        "torch.manual_seed(7 + int(os.environ['RANK']))",
    ],
)
def test_of_batches_drawn_by_hand(seeds):
    assert told(seeds) == [11]


@pytest.mark.parametrize(
    ("seeds", "loop"),
    [
        ("torch.manual_seed(17)", DRAWN),
        ("torch.manual_seed(args.seed + args.rounds)", DRAWN),
        ("print(rank)", DRAWN),
        ("torch.manual_seed(17 + rank)", LOADED),  # the runtime draws for the samples
        ("model_seed = 3 + dist.get_world_size()", DRAWN),
    ],
)
def test_nothing_is_told(seeds, loop):
    assert told(seeds, loop) == []


def test_a_kept_loop():
    assert told("torch.manual_seed(17 + rank)", step=KEPT) == [11]
    assert told("torch.manual_seed(17 + rank)", LOADED, KEPT) == []


def test_a_script_without_processes_by_hand():
    text = SCRIPT.replace('dist.init_process_group("gloo")\n', "").replace(
        "torch.nn.parallel.DistributedDataParallel", ""
    )
    notes = migrate_text(text.format(seeds="torch.manual_seed(3 + rank)", loop=DRAWN, step=STEP)).attention
    assert not [n for n in notes if "the ranks drew" in n.message]
