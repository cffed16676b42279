"""Where logged values go. Only rank 0 writes."""

from typing import Any

from ..gone import missing
from .base import Logger
from .choose import choose_loggers
from .csv import CSVLogger
from .tensorboard import TensorBoardLogger

__all__ = ["CSVLogger", "Logger", "TensorBoardLogger", "choose_loggers"]


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
