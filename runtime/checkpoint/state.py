"""What a Trainer's checkpoint holds, under Lightning's keys where it has them.

`progress` says how to go on: the epoch, how many of the script's batches it has used up, and the generators as they
were when the epoch began (to draw the same batches again) and as they are now (for everything after).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..collectives import gather_objects
from ..errors import ConfigurationError
from ..hparams import to_checkpoint
from .write import write_atomically

if TYPE_CHECKING:
    from ..trainer import Trainer

FORMAT = 1


def collect(trainer: Trainer, weights_only: bool = False) -> dict[str, Any]:
    """The checkpoint as plain values and tensors. All ranks call this; rank 0's answer is the whole one."""
    module, loop, strategy = trainer.module, trainer.fit_loop, trainer.runtime.strategy
    assert module is not None
    checkpoint: dict[str, Any] = {
        "ptmigrate_format": FORMAT,
        "epoch": loop.epoch,
        "global_step": loop.global_step,
        "state_dict": strategy.state_dict(module),
    }
    checkpoint.update(to_checkpoint(module, ""))
    if trainer.datamodule is not None:
        checkpoint[type(trainer.datamodule).__qualname__] = trainer.datamodule.state_dict()
        checkpoint.update(to_checkpoint(trainer.datamodule, "datamodule_"))
    if not weights_only:
        checkpoint["optimizer_states"] = [
            strategy.optimizer_state(module, optimizer) for optimizer in trainer.optimizers
        ]
        checkpoint["lr_schedulers"] = [config.scheduler.state_dict() for config in trainer.lr_scheduler_configs]
        checkpoint["callbacks"] = {key: callback.state_dict() for key, callback in named(trainer.callbacks)}
        checkpoint["progress"] = _progress(trainer)
        if trainer.runtime.precision.scaler is not None:
            checkpoint["scaler"] = trainer.runtime.precision.scaler_state()
        trainer.call("on_save_checkpoint", checkpoint)
    else:
        module.on_save_checkpoint(checkpoint)
    return checkpoint


def named(callbacks: list[Any]) -> Iterator[tuple[str, Any]]:
    """(the name of its state, callback): its state_key, with a number where another has the same one before it."""
    seen: Counter[str] = Counter()
    for callback in callbacks:
        if hasattr(callback, "state_key"):
            key = callback.state_key
            yield (f"{key}#{seen[key]}" if seen[key] else key), callback
            seen[key] += 1


def _progress(trainer: Trainer) -> dict[str, Any]:
    runtime = trainer.runtime
    position = trainer.fit_loop.position
    own = (position.now(), (position.at_epoch_start or {}).get("all"))
    every = [own]
    if runtime.world_size > 1:
        every = gather_objects(own, runtime.group, runtime.world_size, "its part of a checkpoint (save_checkpoint)")
    return position.state([now for now, _ in every], [start for _, start in every])


def save(trainer: Trainer, path: Any, weights_only: bool = False) -> None:
    """Write a checkpoint: gathered on all ranks, written by rank 0, and there for all when this returns."""
    import torch

    checkpoint = trainer.runtime.strategy.checkpoint(trainer, weights_only)
    if trainer.is_global_zero:
        import os

        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        write_atomically(path, lambda file: torch.save(checkpoint, file))
    trainer.runtime.barrier()


def load_weights(trainer: Trainer, checkpoint: dict[str, Any]) -> None:
    """The module's weights."""
    assert trainer.module is not None
    strategy = trainer.runtime.strategy
    strategy.load_state_dict(trainer.module, checkpoint["state_dict"], trainer.module.strict_loading)


def resume_data(trainer: Trainer, checkpoint: dict[str, Any]) -> None:
    """What loaders and optimizers may be made by: the module's and the data module's own states, epoch and step."""
    assert trainer.module is not None
    trainer.module.on_load_checkpoint(checkpoint)
    trainer.fit_loop.epoch = progress_of(checkpoint)["epoch"]
    trainer.fit_loop.global_step = checkpoint.get("global_step", 0)
    load_datamodule(trainer, checkpoint)


def load_datamodule(trainer: Trainer, checkpoint: dict[str, Any]) -> None:
    """The data module's own state, where there is one."""
    key = type(trainer.datamodule).__qualname__
    if trainer.datamodule is not None and key in checkpoint:
        trainer.datamodule.load_state_dict(checkpoint[key])


def load_callbacks(trainer: Trainer, checkpoint: dict[str, Any]) -> None:
    """What callbacks have kept of themselves; nothing of a checkpoint of weights alone, or of who kept nothing."""
    if "callbacks" not in checkpoint:
        return
    for callback in trainer.callbacks:
        callback.on_load_checkpoint(trainer, trainer.module, checkpoint)
    for key, callback in named(trainer.callbacks):
        if checkpoint["callbacks"].get(key):
            callback.load_state_dict(checkpoint["callbacks"][key])


def load_to_evaluate(trainer: Trainer, checkpoint: dict[str, Any]) -> None:
    """What an evaluation has of a checkpoint, before its loaders are made; as in Lightning, all but the progress."""
    assert trainer.module is not None
    trainer.module.on_load_checkpoint(checkpoint)
    load_weights(trainer, checkpoint)
    load_datamodule(trainer, checkpoint)
    load_callbacks(trainer, checkpoint)


def progress_of(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Where the run stood; a checkpoint of Lightning's tells the epoch that it had ended."""
    return checkpoint.get("progress") or {"epoch": checkpoint.get("epoch", -1) + 1, "batches": 0}


def resume(trainer: Trainer, checkpoint: dict[str, Any]) -> None:
    """Everything as it was; optimizers and schedulers must have been made by now. Raises ConfigurationError for a
    checkpoint of weights alone, and for one of an epoch that this fit will not reach.
    """
    load_weights(trainer, checkpoint)
    path, progress = trainer.ckpt_path, progress_of(checkpoint)
    if "optimizer_states" not in checkpoint:
        raise ConfigurationError(f"ckpt_path={str(path)!r} holds weights only; load them with load_from_checkpoint")
    if -1 < trainer.max_epochs < progress["epoch"]:
        raise ConfigurationError(
            f"ckpt_path={str(path)!r} stands at epoch {progress['epoch']}, beyond max_epochs={trainer.max_epochs}"
        )
    load_callbacks(trainer, checkpoint)
    for optimizer, state in zip(trainer.optimizers, checkpoint.get("optimizer_states", ()), strict=True):
        trainer.runtime.strategy.load_optimizer_state(trainer.module, optimizer, state)  # type: ignore[arg-type]
    for config, state in zip(trainer.lr_scheduler_configs, checkpoint.get("lr_schedulers", ()), strict=True):
        config.scheduler.load_state_dict(state)
    if "scaler" in checkpoint and trainer.runtime.precision.scaler is not None:
        trainer.runtime.precision.load_scaler_state(checkpoint["scaler"])
    trainer.fit_loop.global_step = checkpoint["global_step"]
    trainer.fit_loop.logged_steps = progress.get("logged_steps", checkpoint["global_step"])
    trainer.fit_loop.before_epoch, trainer.fit_loop.batch_idx = progress.get("before_epoch", 0), -1
    trainer.fit_loop.position.load(progress)
