"""What the device and the processor do, to the loggers."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import ConfigurationError
from ..installed import installed
from .base import Callback


class DeviceStatsMonitor(Callback):
    """Before and after a training batch, every `log_every_n_steps`: this rank's GPU memory (torch.cuda's statistics, in
    bytes) or, on the CPU and with `cpu_stats=True`, the use of processor and memory in percent (psutil).
    """

    def __init__(self, cpu_stats: bool | None = None):
        self.cpu_stats = cpu_stats

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        if stage != "fit":
            return
        if not trainer.loggers and not trainer.fast_dev_run:  # which takes the loggers away
            raise ConfigurationError("DeviceStatsMonitor needs a logger: Trainer(logger=True)")
        on_cpu = trainer.runtime.on_cpu and self.cpu_stats is not False
        self.reads_cpu = bool(self.cpu_stats) or on_cpu
        if self.reads_cpu and not installed("psutil"):
            raise ConfigurationError("DeviceStatsMonitor needs psutil on the CPU: pip install psutil")

    def on_train_batch_start(self, trainer: Any, module: Any, *_: Any) -> None:
        self._send(trainer, "on_train_batch_start")

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        self._send(trainer, "on_train_batch_end")

    def _send(self, trainer: Any, moment: str) -> None:
        steps, every = trainer.fit_loop.logged_steps, trainer.log_every_n_steps
        if every and (steps + (moment == "on_train_batch_start")) % every == 0:
            found = self.read(trainer.runtime.device)
            named = {f"DeviceStatsMonitor.{moment}/{name}": value for name, value in found.items()}
            trainer.metrics.to_loggers(named, steps)

    def read(self, device: torch.device) -> dict[str, float]:
        found: dict[str, float] = {}
        if device.type == "cuda":
            found.update(torch.cuda.memory_stats(device))
        if self.reads_cpu:
            import psutil

            found["cpu_percent"] = psutil.cpu_percent()
            found["cpu_vm_percent"] = psutil.virtual_memory().percent
            found["cpu_swap_percent"] = psutil.swap_memory().percent
        return found
