"""`Trainer(logger=...)`: none, the usual one, one, or several."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigurationError
from ..installed import installed
from .csv import CSVLogger
from .tensorboard import TensorBoardLogger


def choose_loggers(logger: Any, folder: str) -> list[Any]:
    """None and False: none. True: TensorBoard where it is installed, else a table. Raises ConfigurationError."""
    if logger is None or logger is False:
        return []
    if logger is True:
        there = installed("tensorboard")
        return [TensorBoardLogger(folder) if there else CSVLogger(folder)]
    chosen = list(logger) if isinstance(logger, (list, tuple)) else [logger]
    for item in chosen:
        if not hasattr(item, "log_metrics"):
            raise ConfigurationError(f"logger={item!r}: True, False, a logger, or a list of loggers is needed")
    return chosen
