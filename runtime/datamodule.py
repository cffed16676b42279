"""`DataModule`: loaders in a class of their own, under Lightning's names."""

from __future__ import annotations

import inspect
from typing import Any

from .checkpoint.read import read
from .data.hooks import DataHooks
from .hparams import HasHyperparameters


class DataModule(DataHooks, HasHyperparameters):
    """Override the loaders you need; `prepare_data` runs once a node, `setup` on every rank.

    A Module has the same methods, so that one that brings its own data needs no DataModule.
    """

    prepare_data_per_node = True

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.trainer: Any = None

    def setup(self, stage: str) -> None: ...
    def teardown(self, stage: str) -> None: ...
    def on_exception(self, exception: BaseException) -> None: ...
    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: Any, weights_only: bool = True, **kwargs: Any) -> Any:
        """A new one with the hyper-parameters and the state that the checkpoint holds; `kwargs` win."""
        checkpoint = read(checkpoint_path, weights_only)
        kept = checkpoint.get("datamodule_hyper_parameters", {})
        accepted = inspect.signature(cls.__init__).parameters
        any_name = any(p.kind is p.VAR_KEYWORD for p in accepted.values())
        made = cls(**{**{k: v for k, v in kept.items() if any_name or k in accepted}, **kwargs})
        made.load_state_dict(checkpoint.get(type(made).__qualname__, {}))
        return made
