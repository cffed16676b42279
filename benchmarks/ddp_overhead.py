"""Two processes under DistributedDataParallel: `Trainer` against a loop written by hand, taking turns in one run.

    ptrun --accelerator cpu --devices 2 benchmarks/ddp_overhead.py [--steps 40] [--rounds 41] [--width 512]

Short blocks take turns in the same processes, so that what else the machine does meets both alike; the first steps of
a block, in which DDP learns its buckets and the Trainer what is used, are not counted. Prints, over all blocks,
milliseconds a step at best and in the median, processor time a step (its median, of rank 0), and the ratios.
Budget: 1.02 on wall time; of the three ratios the processor's holds on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ptmigrate.runtime import Module, Trainer
from torch.nn.parallel import DistributedDataParallel

BUDGET = 1.02
BATCH = 64
WARM = 4  # batches


def model(width: int) -> torch.nn.Module:
    torch.manual_seed(0)
    layers = (torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU())
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 10))


class Net(Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.net = model(width)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)

    def training_step(self, batch: tuple, batch_idx: int) -> torch.Tensor:
        x, y = batch
        return F.cross_entropy(self.net(x), y)


class Clocked(list):
    """Batches that note the clocks where they are drawn, so that a loop which draws one ahead is timed over as many."""

    def __iter__(self) -> Iterator:
        for number, batch in enumerate(super().__iter__()):
            if number == WARM:
                self.started = clocks()
            yield batch
        self.ended = clocks()

    def taken(self) -> tuple[float, float]:
        """(wall, processor) seconds of all batches but the first WARM."""
        return self.ended[0] - self.started[0], self.ended[1] - self.started[1]


def clocks() -> tuple[float, float]:
    """Wall time and this process's processor time, in seconds."""
    return time.perf_counter(), time.process_time()


def by_trainer(batches: Clocked, width: int) -> None:
    Trainer(accelerator="cpu", max_epochs=1, use_distributed_sampler=False).fit(Net(width), batches)


def by_hand(batches: Clocked, width: int) -> None:
    net = DistributedDataParallel(model(width))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for x, y in batches:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--width", type=int, default=512)
    args = parser.parse_args()
    torch.set_num_threads(1)
    steps = range(WARM + args.steps)
    batches = Clocked((torch.randn(BATCH, args.width), torch.randint(0, 10, (BATCH,))) for _ in steps)
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  the line that every fit says
    by_trainer(batches, args.width)  # meets the other process
    times: dict[Callable, list[tuple[float, float]]] = {by_hand: [], by_trainer: []}
    for number in range(args.rounds):
        for run in (by_hand, by_trainer) if number % 2 else (by_trainer, by_hand):
            dist.barrier()
            run(batches, args.width)
            times[run].append(batches.taken())
    if dist.get_rank() == 0:
        report(times, args.steps)


def report(times: dict[Callable, list[tuple[float, float]]], steps: int) -> None:
    columns = []
    for run in (by_hand, by_trainer):
        wall, processor = ([seconds / steps * 1e3 for seconds in each] for each in zip(*times[run], strict=True))
        columns.append((min(wall), statistics.median(wall), statistics.median(processor)))
    for name, values in zip(("by hand", "Trainer"), columns, strict=True):
        print(f"{name}  best {values[0]:7.3f} ms  median {values[1]:7.3f} ms  processor {values[2]:7.3f} ms")
    best, median, processor = (ours / hand for hand, ours in zip(*columns, strict=True))
    print(f"ratio    best {best:7.3f}     median {median:7.3f}     processor {processor:7.3f}     (budget {BUDGET})")


if __name__ == "__main__":
    main()
