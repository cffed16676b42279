"""What a step costs over a loop written by hand: a tiny model on one CPU thread, side by side in one run.

    python benchmarks/step_overhead.py [--steps 500] [--rounds 25]

Accelerate and Lightning's Fabric and Trainer are measured where they are installed.

Prints microseconds of processor time a step for each, the median over rounds that take turns, and the median of what
each took over the loop by hand of its own round: rounds are short, since a shared machine changes its speed between
long ones. Whoever is not installed is left out.
Budgets: Trainer at most 25 above the hand-written loop, with self.log(on_step, on_epoch, prog_bar) at most 40.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

BUDGETS = {"Trainer": 25.0, "Trainer with log": 40.0}
QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}


class Batches:
    """Ready batches: what loading costs is not measured."""

    def __init__(self, steps: int):
        self.all = [(torch.randn(8, 4), torch.randint(0, 3, (8,))) for _ in range(steps)]

    def __len__(self) -> int:
        return len(self.all)

    def __iter__(self) -> Iterator:
        return iter(self.all)


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Linear(4, 3)


def by_hand(data: Batches) -> float:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    start = time.process_time()
    for x, y in data:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.process_time() - start


def module_of(base: Any, log: bool) -> Any:
    class Net(base):
        def __init__(self) -> None:
            super().__init__()
            self.net = model()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01)

        def training_step(self, batch: tuple, batch_idx: int) -> torch.Tensor:
            x, y = batch
            loss = F.cross_entropy(self.net(x), y)
            if log:
                self.log("loss", loss, on_step=True, on_epoch=True, prog_bar=True)
            return loss

        def on_train_start(self) -> None:
            self.started = time.process_time()

        def on_train_end(self) -> None:
            self.ended = time.process_time()

    return Net()


def with_trainer(trainer_class: Any, base: type, data: Batches, log: bool = False, **options: Any) -> float:
    net = module_of(base, log)
    trainer_class(max_epochs=1, accelerator="cpu", devices=1, **QUIET, **options).fit(net, data)
    return net.ended - net.started


def with_runtime(data: Batches) -> float:
    from ptmigrate.runtime import Runtime

    runtime = Runtime(accelerator="cpu")
    net = model()
    net, optimizer = runtime.setup(net, torch.optim.SGD(net.parameters(), lr=0.01))
    start = time.process_time()
    for x, y in runtime.setup_dataloaders(data):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        runtime.backward(loss)
        optimizer.step()
    return time.process_time() - start


def with_fabric(data: Batches) -> float:
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1)
    net = model()
    net, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.01))
    start = time.process_time()
    for x, y in data:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
    return time.process_time() - start


def with_accelerate(data: Batches) -> float:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    net = model()
    net, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.01))
    start = time.process_time()
    for x, y in data:
        with accelerator.accumulate(net):
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
    return time.process_time() - start


def contenders() -> dict[str, Callable[[Batches], float]]:
    from ptmigrate.runtime import Module, Trainer

    found: dict[str, Callable[[Batches], float]] = {
        "by hand": by_hand,
        "Runtime": with_runtime,
        "Trainer": lambda data: with_trainer(Trainer, Module, data),
        "Trainer with log": lambda data: with_trainer(Trainer, Module, data, log=True),
    }
    try:
        import lightning

        options: dict[str, Any] = {"enable_model_summary": False, "default_root_dir": tempfile.mkdtemp()}
        lit: tuple[Any, Any] = (lightning.Trainer, lightning.LightningModule)
        found["Fabric"] = with_fabric
        found["Lightning"] = lambda data: with_trainer(*lit, data, **options)
        found["Lightning with log"] = lambda data: with_trainer(*lit, data, log=True, **options)
    except ImportError:
        pass
    try:
        import accelerate  # noqa: F401

        found["Accelerate"] = with_accelerate
    except ImportError:
        pass
    return found


def measure(steps: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Microseconds a step, and those over the loop by hand: medians over rounds in which all take turns."""
    data, everyone = Batches(steps), contenders()
    times: dict[str, list[float]] = {name: [] for name in everyone}
    for _ in range(rounds):
        for name, run in everyone.items():
            times[name].append(run(data) / steps * 1e6)
    by_hand = times["by hand"]
    return {
        name: (statistics.median(values), statistics.median(a - b for a, b in zip(values, by_hand, strict=True)))
        for name, values in times.items()
    }


def main() -> int:
    """Prints the table; exit code 1 when a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=25)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    found = measure(args.steps, args.rounds)
    failed = False
    for name, (value, over) in found.items():
        budget = BUDGETS.get(name)
        failed |= budget is not None and over > budget
        print(f"{name:20} {value:8.1f} µs   {over:+8.1f} µs" + (f"   (budget +{budget:.0f})" if budget else ""))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
