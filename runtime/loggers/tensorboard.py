"""Values to TensorBoard's event files."""

from __future__ import annotations

import os
from typing import Any

from ..errors import ConfigurationError
from .base import Logger


class TensorBoardLogger(Logger):
    """torch's SummaryWriter, opened when the first value comes; `experiment` is the writer."""

    def __init__(
        self,
        save_dir: Any,
        name: str | None = "lightning_logs",
        version: int | str | None = None,
        log_graph: bool = False,
        default_hp_metric: bool = True,
        prefix: str = "",
        **writer_options: Any,
    ):
        super().__init__(save_dir, name, version)
        self.prefix, self.writer_options = prefix, writer_options
        self._writer: Any = None

    @property
    def experiment(self) -> Any:
        if self._writer is None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise ConfigurationError("TensorBoardLogger needs tensorboard: pip install tensorboard") from None
            self._writer = SummaryWriter(log_dir=self.log_dir, **self.writer_options)
        return self._writer

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        for name, value in metrics.items():
            self.experiment.add_scalar(f"{self.prefix}-{name}" if self.prefix else name, value, step)

    def log_hyperparams(self, params: Any, *args: Any) -> None:
        self.write_hyperparams(params)
        if params:
            text = "\n".join(f"    {name}: {value!r}" for name, value in dict(params).items())
            self.experiment.add_text("hyper-parameters", text, 0)

    def save(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def finalize(self, status: str) -> None:
        if not os.path.exists(os.path.join(self.log_dir, "hparams.yaml")):
            self.write_hyperparams({})
        if self._writer is not None:
            self._writer.close()
            self._writer = None
