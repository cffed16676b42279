"""Callbacks, by Lightning's names; those that are not here are refused with what to use instead."""

from typing import Any

from ..gone import missing
from .averaging import EMAWeightAveraging, WeightAveraging
from .base import Callback
from .device_stats import DeviceStatsMonitor
from .early_stopping import EarlyStopping
from .finetuning import BackboneFinetuning, BaseFinetuning
from .lr_monitor import LearningRateMonitor
from .model_checkpoint import ModelCheckpoint
from .prediction_writer import BasePredictionWriter
from .small import GradientAccumulationScheduler, LambdaCallback, ModelSummary, ProgressBar
from .stochastic_averaging import StochasticWeightAveraging
from .timer import Timer

RichModelSummary = ModelSummary
RichProgressBar = TQDMProgressBar = ProgressBar

__all__ = [
    "BackboneFinetuning",
    "BaseFinetuning",
    "BasePredictionWriter",
    "Callback",
    "DeviceStatsMonitor",
    "EMAWeightAveraging",
    "EarlyStopping",
    "GradientAccumulationScheduler",
    "LambdaCallback",
    "LearningRateMonitor",
    "ModelCheckpoint",
    "ModelSummary",
    "ProgressBar",
    "RichModelSummary",
    "RichProgressBar",
    "StochasticWeightAveraging",
    "TQDMProgressBar",
    "Timer",
    "WeightAveraging",
]


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
