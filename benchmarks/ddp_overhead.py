"""Two processes under DistributedDataParallel: `Trainer` against a loop written by hand, taking turns in one run.

    ptrun --accelerator cpu --devices 2 benchmarks/ddp_overhead.py [--steps 200] [--rounds 9]

Prints milliseconds a step for each (the median over rounds), and the median of the ratios of neighbours. Budget: 1.02.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ptmigrate.runtime import Module, Trainer
from torch.nn.parallel import DistributedDataParallel

BUDGET = 1.02
WIDTH, BATCH = 512, 64


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    layers = (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())
    return torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 10))


class Net(Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = model()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)

    def training_step(self, batch: tuple, batch_idx: int) -> torch.Tensor:
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def on_train_start(self) -> None:
        dist.barrier()
        self.started = time.perf_counter()

    def on_train_end(self) -> None:
        self.ended = time.perf_counter()


def by_trainer(batches: list) -> float:
    net = Net()
    options = {"accelerator": "cpu", "max_epochs": 1, "use_distributed_sampler": False}
    Trainer(**options).fit(net, batches)
    return net.ended - net.started


def by_hand(batches: list) -> float:
    net = DistributedDataParallel(model())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    dist.barrier()
    started = time.perf_counter()
    for x, y in batches:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    torch.set_num_threads(1)
    batches = [(torch.randn(BATCH, WIDTH), torch.randint(0, 10, (BATCH,))) for _ in range(args.steps)]
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  the line that every fit says
    by_trainer(batches[:5])  # meets the other process
    rounds = []
    for number in range(args.rounds):
        pair = (by_hand, by_trainer) if number % 2 else (by_trainer, by_hand)
        taken = {run: run(batches) / args.steps * 1e3 for run in pair}
        rounds.append((taken[by_hand], taken[by_trainer]))
    ratio = statistics.median(ours / hand for hand, ours in rounds)
    if dist.get_rank() == 0:
        hand, ours = (statistics.median(times) for times in zip(*rounds, strict=True))
        print(f"by hand {hand:8.3f} ms\nTrainer {ours:8.3f} ms   ratio {ratio:.3f}   (budget {BUDGET})")


if __name__ == "__main__":
    main()
