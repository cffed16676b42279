"""The arguments that a module was made with, kept for checkpoints and loggers."""

from __future__ import annotations

import ast
import copy
import csv
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from .errors import ConfigurationError


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

    logs_hyperparameters = True  # to the loggers, when a fit begins
    _hparams_name: str | None = None  # the one argument that was kept whole, or "kwargs"

    @property
    def hparams(self) -> Hyperparameters:
        """What `save_hyperparameters` has kept."""
        return self.__dict__.setdefault("_hparams", Hyperparameters())

    @property
    def hparams_initial(self) -> Hyperparameters:
        """As `hparams` was when it was kept."""
        return Hyperparameters(copy.deepcopy(self.__dict__.get("_hparams_initial", {})))

    def save_hyperparameters(self, *names: Any, ignore: Any = None, frame: Any = None, logger: bool = True) -> None:
        """Keep the arguments of `__init__` (all, or the named ones) in `self.hparams` and in checkpoints; `logger`
        sends them to the loggers, too. What a base class has kept and `ignore` names is dropped.
        """
        frame = frame or inspect.currentframe().f_back  # type: ignore[union-attr]
        self.logs_hyperparameters = logger
        left_out = {ignore} if isinstance(ignore, str) else set(ignore or ())
        arguments = {k: v for k, v in init_arguments(frame, self).items() if k not in left_out}
        whole = next((name for name in names if not isinstance(name, str)), None)
        if whole is not None:
            chosen = dict(whole) if isinstance(whole, Mapping) else dict(vars(whole))
            self._hparams_name = next((k for k, v in arguments.items() if v is whole), None)
        else:
            chosen = {k: v for k, v in arguments.items() if not names or k in names}
            self._hparams_name = "kwargs"
        self.hparams.update(chosen)
        for name in left_out & set(self.hparams):
            del self.hparams[name]
        self.__dict__["_hparams_initial"] = copy.deepcopy(dict(self.hparams))


def init_arguments(frame: FrameType, owner: Any) -> dict[str, Any]:
    """The arguments of the `__init__`s of `owner` running in `frame` and around it."""
    found: dict[str, Any] = {}
    inits = {
        cls.__dict__["__init__"].__code__: cls.__dict__["__init__"] for cls in type(owner).__mro__ if _has_init(cls)
    }
    around: FrameType | None = frame
    while around is not None and around.f_code in inits:
        found.update(_arguments(around, inits[around.f_code]))
        around = around.f_back
    return found


def made_again(cls: type, checkpoint: dict[str, Any], prefix: str, given: dict[str, Any], file: Any = None) -> Any:
    """A new `cls` from the hyper-parameters in a checkpoint (or in `file`, which then takes their place), among which
    `given` wins, there too. Names that `__init__` does not take are left out.
    """
    if file is not None:
        checkpoint[f"{prefix}hyper_parameters"] = from_file(Path(file))
    checkpoint[f"{prefix}hyper_parameters"] = {**checkpoint.get(f"{prefix}hyper_parameters", {}), **given}
    accepted = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    kept = Hyperparameters(checkpoint[f"{prefix}hyper_parameters"])
    name = checkpoint.get(f"{prefix}hparams_name")
    if name != "kwargs" and name in accepted:
        kept = Hyperparameters({name: kept})
    any_name = any(p.kind is p.VAR_KEYWORD for p in accepted.values())
    return cls(**{k: v for k, v in {**kept, **given}.items() if any_name or k in accepted})


def to_checkpoint(owner: HasHyperparameters, prefix: str) -> dict[str, Any]:
    """What `made_again` reads, under Lightning's keys."""
    if not owner.hparams:
        return {}
    return {f"{prefix}hyper_parameters": dict(owner.hparams), f"{prefix}hparams_name": owner._hparams_name}


def from_file(path: Path) -> dict[str, Any]:
    """Hyper-parameters from a logger's hparams.yaml, or from a table of keys and values. Raises ConfigurationError."""
    if path.suffix.lower() == ".csv":
        with path.open(newline="") as table:
            return {key: _value(text) for key, text in list(csv.reader(table))[1:]}
    if path.suffix.lower() not in (".yml", ".yaml"):
        raise ConfigurationError(f"hparams_file={str(path)!r}: .yaml, .yml or .csv is needed")
    try:
        import yaml
    except ImportError:
        raise ConfigurationError(f"hparams_file={str(path)!r} needs PyYAML: pip install pyyaml") from None
    return yaml.safe_load(path.read_text()) or {}


def as_yaml(values: Mapping[str, Any]) -> str:
    """A line for each; what YAML has no word for is written as text."""
    return "".join(f"{name}: {json.dumps(value, default=str)}\n" for name, value in values.items()) or "{}\n"


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


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
