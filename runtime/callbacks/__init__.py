"""Callbacks, by Lightning's names; those that are not here are refused with what to use instead."""

from typing import Any

from .averaging import EMAWeightAveraging, WeightAveraging
from .base import Callback
from .device_stats import DeviceStatsMonitor
from .early_stopping import EarlyStopping
from .finetuning import BackboneFinetuning, BaseFinetuning
from .lr_monitor import LearningRateMonitor
from .model_checkpoint import ModelCheckpoint
from .prediction_writer import BasePredictionWriter
from .small import GradientAccumulationScheduler, LambdaCallback, ModelSummary, ProgressBar
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
    "TQDMProgressBar",
    "Timer",
    "WeightAveraging",
]

INSTEAD = {
    "BatchSizeFinder": "try batch sizes in a loop of short fits: Trainer(max_steps=...)",
    "Checkpoint": "use ModelCheckpoint, or a Callback that calls trainer.save_checkpoint",
    "GPUStatsMonitor": "use DeviceStatsMonitor",
    "LearningRateFinder": "try learning rates in a loop of short fits: Trainer(max_steps=...)",
    "ModelPruning": "call torch.nn.utils.prune in on_train_epoch_end",
    "OnExceptionCheckpoint": "use ModelCheckpoint(save_on_exception=True)",
    "QuantizationAwareTraining": "prepare and convert the model with torch.ao.quantization",
    "SpikeDetection": "return None from training_step to skip a batch",
    "StochasticWeightAveraging": "use WeightAveraging, and torch.optim.swa_utils.SWALR as the scheduler",
    "ThroughputMonitor": "start the script with ptrun --monitor",
    "XLAStatsMonitor": "use DeviceStatsMonitor",
}


class NoSuchCallback(ImportError):
    """A callback of Lightning's that is not here, with what to use instead."""


def __getattr__(name: str) -> Any:
    if name in INSTEAD:
        raise NoSuchCallback(f"callback {name!r} is not here: {INSTEAD[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
