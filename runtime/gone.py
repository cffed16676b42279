"""Names of Lightning's that are not here, and what to use instead: hooks that are not called, so that filling one is
refused and none is silently idle; classes.
"""

from __future__ import annotations

from typing import Any

from .errors import ConfigurationError

EPOCH = "on_train_epoch_{0}, on_validation_epoch_{0} and on_test_epoch_{0}"
INSTEAD = {
    "add_to_queue": "attributes of the module: they come back from spawned processes",
    "get_from_queue": "attributes of the module: they come back from spawned processes",
    "get_progress_bar_dict": "self.log(..., prog_bar=True)",
    "on_batch_end": "on_train_batch_end",
    "on_batch_start": "on_train_batch_start",
    "on_before_accelerator_backend_setup": "setup",
    "on_configure_sharded_model": "setup",
    "on_epoch_end": EPOCH.format("end"),
    "on_epoch_start": EPOCH.format("start"),
    "on_hpc_load": "on_load_checkpoint",
    "on_hpc_save": "on_save_checkpoint",
    "on_init_end": "setup",
    "on_init_start": "setup",
    "on_keyboard_interrupt": "on_exception",
    "on_post_move_to_device": "on_fit_start",
    "on_predict_dataloader": "predict_dataloader",
    "on_pretrain_routine_end": "on_fit_start",
    "on_pretrain_routine_start": "on_fit_start",
    "on_test_dataloader": "test_dataloader",
    "on_train_dataloader": "train_dataloader",
    "on_val_dataloader": "val_dataloader",
    "tbptt_split_batch": "training_step, and manual optimization",
    "test_end": "test_epoch_end",
    "training_end": "training_step_end",
    "validation_end": "validation_epoch_end",
}

LOGGER = (
    "give Trainer Lightning's own, which works here, or an object with log_metrics, log_hyperparams, save, finalize"
)
CLASSES = {
    "BatchSizeFinder": "try batch sizes in a loop of short fits: Trainer(max_steps=...)",
    "Checkpoint": "use ModelCheckpoint, or a Callback that calls trainer.save_checkpoint",
    "CometLogger": LOGGER,
    "Fabric": "use Runtime",
    "GPUStatsMonitor": "use DeviceStatsMonitor",
    "LearningRateFinder": "try learning rates in a loop of short fits: Trainer(max_steps=...)",
    "LightningCLI": "parse the arguments with argparse, and make the Module and the Trainer of them",
    "LitLogger": LOGGER,
    "MLFlowLogger": LOGGER,
    "ModelPruning": "call torch.nn.utils.prune in on_train_epoch_end",
    "NeptuneLogger": LOGGER,
    "OnExceptionCheckpoint": "use ModelCheckpoint(save_on_exception=True)",
    "PyTorchProfiler": "use torch.profiler around trainer.fit",
    "QuantizationAwareTraining": "prepare and convert the model with torch.ao.quantization",
    "SpikeDetection": "return None from training_step to skip a batch",
    "ThroughputMonitor": "start the script with ptrun --monitor",
    "Tuner": "try learning rates and batch sizes in a loop of short fits: Trainer(max_steps=...)",
    "WandbLogger": LOGGER,
    "XLAProfiler": "use torch_xla.debug.profiler around trainer.fit",
    "XLAStatsMonitor": "use DeviceStatsMonitor",
}


class NotHere(ImportError):
    """A class of Lightning's that is not here, with what to use instead."""


def missing(module: str, name: str) -> Exception:
    """For a module's `__getattr__`."""
    if name in CLASSES:
        return NotHere(f"{name!r} is not here: {CLASSES[name]}")
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def refuse_gone(owner: Any) -> None:
    """Raise ConfigurationError where a module or callback has a method that would never be called."""
    for name, instead in INSTEAD.items():
        if callable(getattr(type(owner), name, None)):
            raise ConfigurationError(f"{type(owner).__name__}.{name} would never be called; use {instead}")
