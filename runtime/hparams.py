"""The arguments that a module was made with, kept for checkpoints and loggers."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from types import FrameType
from typing import Any


class Hyperparameters(dict):
    """A dict whose keys are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no hyper-parameter {name!r}; there are: {', '.join(self) or 'none'}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class HasHyperparameters:
    """`save_hyperparameters` and `hparams`, for modules and data modules."""

    @property
    def hparams(self) -> Hyperparameters:
        """What `save_hyperparameters` has kept."""
        return self.__dict__.setdefault("_hparams", Hyperparameters())

    @property
    def hparams_initial(self) -> Hyperparameters:
        """As `hparams` was when it was kept."""
        return Hyperparameters(copy.deepcopy(self.__dict__.get("_hparams_initial", {})))

    def save_hyperparameters(self, *names: Any, ignore: Any = None, frame: Any = None, logger: bool = True) -> None:
        """Keep the arguments of `__init__` (all, or the named ones) in `self.hparams` and in checkpoints."""
        frame = frame or inspect.currentframe().f_back  # type: ignore[union-attr]
        self.hparams.update(chosen_arguments(frame, self, names, ignore))
        self.__dict__["_hparams_initial"] = copy.deepcopy(dict(self.hparams))


def chosen_arguments(frame: FrameType, owner: Any, names: tuple, ignore: Any) -> dict[str, Any]:
    """The arguments of the `__init__`s of `owner` running in `frame` and around it: all, the named ones, or those of
    one given object (a Namespace).
    """
    if len(names) == 1 and not isinstance(names[0], str):
        given = names[0]
        return dict(given) if isinstance(given, Mapping) else dict(vars(given))
    found: dict[str, Any] = {}
    inits = {
        cls.__dict__["__init__"].__code__: cls.__dict__["__init__"] for cls in type(owner).__mro__ if _has_init(cls)
    }
    around: FrameType | None = frame
    while around is not None and around.f_code in inits:
        found.update(_arguments(around, inits[around.f_code]))
        around = around.f_back
    left_out = {ignore} if isinstance(ignore, str) else set(ignore or ())
    return {k: v for k, v in found.items() if k not in left_out and (not names or k in names)}


def _has_init(cls: type) -> bool:
    return hasattr(cls.__dict__.get("__init__"), "__code__")


def _arguments(frame: FrameType, init: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(init).parameters.items())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            found.update(frame.f_locals.get(name, {}))
        elif name in frame.f_locals and parameter.kind is not parameter.VAR_POSITIONAL:
            found[name] = frame.f_locals[name]
    return found
