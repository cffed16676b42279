"""What a logger is: Lightning's names, so that its loggers work here and ours there."""

from __future__ import annotations

import os
import re
from typing import Any

from ..checkpoint.write import write_atomically
from ..hparams import as_yaml


class Logger:
    """Subclasses write; `log_metrics` gets plain numbers. The trainer calls all of this on rank 0 only: `save` at the
    start of a fit, and after `log_metrics` where the logger does not say `saves_itself`.
    """

    saves_itself = False

    def __init__(self, save_dir: Any, name: str | None = "lightning_logs", version: int | str | None = None):
        self.save_dir = os.fspath(save_dir)
        self.name = name or ""
        self._version = version

    @property
    def root_dir(self) -> str:
        return os.path.join(self.save_dir, self.name)

    @property
    def version(self) -> int | str:
        """Given, or the first number that no run has taken in this folder."""
        if self._version is None:
            there = os.listdir(self.root_dir) if os.path.isdir(self.root_dir) else []
            taken = [int(match[1]) for match in (re.fullmatch(r"version_(\d+)", name) for name in there) if match]
            self._version = max(taken, default=-1) + 1
        return self._version

    @property
    def log_dir(self) -> str:
        version = self.version if isinstance(self.version, str) else f"version_{self.version}"
        return os.path.join(self.root_dir, version)

    @property
    def experiment(self) -> Any:
        return None

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        raise NotImplementedError

    def write_hyperparams(self, params: Any) -> None:
        """As hparams.yaml, beside the values."""
        os.makedirs(self.log_dir, exist_ok=True)
        text = as_yaml(dict(params)).encode()
        write_atomically(os.path.join(self.log_dir, "hparams.yaml"), lambda file: file.write(text))

    def log_hyperparams(self, params: Any, *args: Any) -> None: ...
    def log_graph(self, model: Any) -> None: ...
    def after_save_checkpoint(self, checkpoint_callback: Any) -> None: ...
    def save(self) -> None: ...
    def finalize(self, status: str) -> None: ...
