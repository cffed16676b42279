"""Names of strategies, in today's spelling and in the guide's."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from ..errors import ConfigurationError, unknown_name
from .base import Strategy

# The file that registers each name; imported when the name is asked for.
HOMES = {"single": ".single", "ddp": ".ddp"}
ALIASES = {
    "auto": "auto",
    "single_device": "single",
    "ddp_cpu": "ddp",
    "ddp_find_unused_parameters_true": "ddp",
    "ddp_find_unused_parameters_false": "ddp",
    "distributed_data_parallel": "ddp",
}
# Spellings of the guide and of Lightning 1.2 to 2.6 that this version does not run yet.
PLANNED = (
    "dp",
    "ddp2",
    "ddp_spawn",
    "ddp_fork",
    "ddp_notebook",
    "ddp_sharded",
    "ddp_sharded_spawn",
    "horovod",
    "bagua",
    "deepspeed",
    "fsdp",
    "tpu",
    "sequential",
)

_classes: dict[str, type[Strategy]] = {}


def register(name: str) -> Callable[[type[Strategy]], type[Strategy]]:
    """Class decorator: `Trainer(strategy=name)` and `ptrun --strategy name` find the class."""

    def add(cls: type[Strategy]) -> type[Strategy]:
        _classes[name] = cls
        cls.name = name
        return cls

    return add


def known() -> list[str]:
    return sorted({*HOMES, *_classes, *ALIASES, *PLANNED})


def is_strategy(name: object) -> bool:
    return isinstance(name, str) and name in known() and name != "auto"


def choose_strategy(name: str | None, world_size: int) -> type[Strategy]:
    """The class for `name`; none given means ddp where there are several processes. Raises ConfigurationError."""
    full = ALIASES.get(name, name) if name else "auto"
    if full == "auto" or (full == "ddp" and world_size == 1):
        full = "ddp" if world_size > 1 else "single"
    if full in PLANNED and full not in _classes:
        raise ConfigurationError(f"strategy {name!r} is not in this version; use 'ddp'")
    if full not in _classes and full in HOMES:
        importlib.import_module(HOMES[full], __package__)
    if full not in _classes:
        raise unknown_name("strategy", name, known())
    if full == "single" and world_size > 1:
        raise ConfigurationError(f"strategy {name!r} runs one process, and {world_size} devices were asked for")
    return _classes[full]
