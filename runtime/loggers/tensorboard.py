"""Values to TensorBoard's event files."""

from __future__ import annotations

import os
import warnings
from typing import Any

from ..checkpoint import randomness
from ..errors import ConfigurationError
from .base import Logger

PLAIN = (bool, int, float, str)  # what TensorBoard keeps as it is among hyper-parameters


class TensorBoardLogger(Logger):
    """torch's SummaryWriter, opened when the first value comes; `experiment` is the writer. `log_graph`: the module's
    graph too, on its `example_input_array`.
    """

    saves_itself = True

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
        self.draws_graph, self.default_hp_metric = log_graph, default_hp_metric
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

    def log_hyperparams(self, params: Any, metrics: Any = None, step: int = 0) -> None:
        """`metrics`: numbers that stand beside them among the hyper-parameters of other runs."""
        self.write_hyperparams(params)
        values = metrics if isinstance(metrics, dict) or metrics is None else {"hp_metric": metrics}
        if values is None and self.default_hp_metric:
            values = {"hp_metric": -1}
        if values:
            self.log_metrics(values, step)
            from torch.utils.tensorboard.summary import hparams

            plain = {name: value if isinstance(value, PLAIN) else str(value) for name, value in dict(params).items()}
            for summary in hparams(plain, values):
                self.experiment.file_writer.add_summary(summary, step)

    def log_graph(self, model: Any) -> None:
        if not self.draws_graph:
            return
        if model.example_input_array is None:
            warnings.warn("TensorBoardLogger(log_graph=True): the module has no example_input_array", stacklevel=2)
            return
        drawn = randomness.capture()  # training draws what it draws without the graph
        with model._as_used() as module:
            self.experiment.add_graph(module, module._example(None))
        randomness.restore(drawn)

    def save(self) -> None:
        os.makedirs(self.log_dir, exist_ok=True)
        if self._writer is not None:
            self._writer.flush()

    def finalize(self, status: str) -> None:
        if not os.path.exists(os.path.join(self.log_dir, "hparams.yaml")):
            self.write_hyperparams({})
        if self._writer is not None:
            self._writer.close()
            self._writer = None
