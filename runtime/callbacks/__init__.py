"""Callbacks, by Lightning's names."""

from .base import Callback
from .early_stopping import EarlyStopping
from .lr_monitor import LearningRateMonitor
from .model_checkpoint import ModelCheckpoint

__all__ = ["Callback", "EarlyStopping", "LearningRateMonitor", "ModelCheckpoint"]
