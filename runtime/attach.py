"""Before a run: the ranks meet, the data is prepared, the module is placed; the first hooks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from .callbacks.base import Callback
from .errors import ConfigurationError
from .gone import refuse_gone
from .hooks import find_hook, overridden
from .metrics import objects
from .seeding import separate_ranks
from .whole import OVER_PROCESSES, rank_zeros_draws

if TYPE_CHECKING:
    from .module import Module
    from .trainer import Trainer


def attach(trainer: Trainer, module: Module, stage: str, datamodule: Any) -> None:
    """Make `module` and `datamodule` the trainer's, and ready for `stage`."""
    check_step(module, stage)
    trainer.module, trainer.datamodule, trainer.state = module, datamodule, State.of(trainer, stage)
    module.trainer = trainer
    if datamodule is not None:
        datamodule.trainer = trainer
    add_callbacks(trainer, module)
    for owner in (module, *trainer.callbacks):
        refuse_gone(owner)
    trainer.runtime.connect()
    objects.meet(trainer.runtime)
    divides = module.divide_batches in (True, OVER_PROCESSES)
    if stage != "fit" or divides:
        separate_ranks(trainer.global_rank)
    with rank_zeros_draws(trainer.runtime, stage == "fit" and not divides):
        prepare_data(trainer, (datamodule, module))
        for setup in (getattr(datamodule, "setup", None), find_hook("setup", trainer, trainer.callbacks, module)):
            if setup is not None:
                setup(stage)
        module.configure_sharded_model()
        module.configure_model()
    trainer.runtime.precision.convert_module(module)
    trainer.runtime.models_on_cpu = trainer.runtime.on_cpu
    trainer.runtime.strategy.place(module)
    if trainer.deterministic:
        torch.use_deterministic_algorithms(True, warn_only=trainer.deterministic == "warn")
    if trainer.benchmark is not None:
        torch.backends.cudnn.benchmark = trainer.benchmark


def check_step(module: Module, stage: str) -> None:
    """Raise ConfigurationError where the module lacks the step that this stage runs, or is another package's."""
    from .module import Module as Base

    if isinstance(getattr(module, "_orig_mod", None), Base):
        raise ConfigurationError(
            f"{stage} needs the Module itself, and torch.compile has put another around it: compile what it holds, "
            "self.net = torch.compile(self.net)"
        )
    if not isinstance(module, Base):
        raise ConfigurationError(
            f"{stage} needs a Module of ptmigrate.runtime, and {type(module).__name__} is none: import it from there, "
            "under this name or as LightningModule"
        )

    name = {"fit": "training_step", "validate": "validation_step", "test": "test_step"}.get(stage)
    if name is not None and not overridden(module, name, Base):
        raise ConfigurationError(f"{stage} needs {type(module).__name__}.{name}, which is not there")


class State(str):
    """`trainer.state`: what is being done. Lightning's `state.fn` is the same word."""

    stages: Callable[[], str | None] = staticmethod(lambda: None)

    @classmethod
    def of(cls, trainer: Trainer, word: str) -> State:
        state = cls(word)
        state.stages = partial(stage_of, trainer)
        return state

    @property
    def fn(self) -> str:
        return str(self)

    @property
    def stage(self) -> str | None:
        """What runs now: "train", "validate", "test", "predict" or "sanity_check"; None between runs."""
        return self.stages()

    @property
    def status(self) -> str:
        return "finished" if self == "idle" else "running"

    @property
    def finished(self) -> bool:
        return self == "idle"


def stage_of(trainer: Trainer) -> str | None:
    if trainer.sanity_checking:
        return "sanity_check"
    words = {"train": trainer.training, "validate": trainer.validating}
    within = next((word for word, now in words.items() if now), None)
    return within or (str(trainer.state) if trainer.testing or trainer.predicting else None)


def add_callbacks(trainer: Trainer, module: Module) -> None:
    """The module's own callbacks; one takes the place of the trainer's of the same type."""
    own = module.configure_callbacks()
    own = list(own) if isinstance(own, (list, tuple)) else [own]
    for callback in own:
        if not isinstance(callback, Callback):
            raise ConfigurationError(f"configure_callbacks gave a {type(callback).__name__}: a Callback is needed")
    kinds = {type(callback) for callback in own}
    trainer.callbacks = [cb for cb in trainer.callbacks if type(cb) not in kinds] + own
    for callback in trainer.callbacks:  # Lightning's callbacks say self.log(...), too
        for name in ("log", "log_dict"):
            if not hasattr(type(callback), name):
                setattr(callback, name, getattr(module, name))


def prepare_data(trainer: Trainer, owners: tuple[Any, ...]) -> None:
    """On one process a node, or of all where the owner says so; the others wait."""
    for owner in filter(None, owners):
        if (
            trainer.local_rank == 0
            if trainer.prepare_data_per_node and getattr(owner, "prepare_data_per_node", True)
            else trainer.is_global_zero
        ):
            owner.prepare_data()
    trainer.runtime.barrier()


def given_data(stage: str, loaders: Any, datamodule: Any) -> tuple[Any, Any]:
    """(loaders, datamodule); one that was given in the loaders' place is recognised."""
    if hasattr(loaders, "prepare_data") and hasattr(loaders, f"{stage}_dataloader"):
        loaders, datamodule = None, loaders
    if loaders is not None and datamodule is not None:
        raise ConfigurationError("give loaders or a datamodule, not both")
    return loaders, datamodule
