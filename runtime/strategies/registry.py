"""Names of strategies, in today's spelling and in the guide's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .. import environment
from ..errors import ConfigurationError, unknown_name
from .base import Strategy
from .needs import require

# The file that registers each name; imported when the name is asked for.
HOMES = {
    "single": ".single",
    "ddp": ".ddp",
    "dp": ".dp",
    "ddp2": ".dp",
    "ddp_sharded": ".ddp_sharded",
    "fsdp": ".fsdp",
    "horovod": ".horovod",
    "ddp_sharded_spawn": ".sharded_spawned",
    "ddp_spawn": ".spawned",
    "ddp_fork": ".spawned",
    "bagua": ".bagua",
    "deepspeed": ".deepspeed",
    "pipeline": ".pipeline",
    "rpc_sequential": ".pipeline",
    "xla": ".xla",
    "tpu_spawn": ".xla",
}
# Classes that a script may import: `from ptmigrate.runtime import DDPStrategy`.
CLASSES = {
    "Strategy": ".base",
    "DDPStrategy": ".ddp",
    "DataParallelStrategy": ".dp",
    "DDP2Strategy": ".dp",
    "DDPShardedStrategy": ".ddp_sharded",
    "FSDPStrategy": ".fsdp",
    "HorovodStrategy": ".horovod",
    "BaguaStrategy": ".bagua",
    "DDPSpawnShardedStrategy": ".sharded_spawned",
    "DDPSpawnStrategy": ".spawned",
    "DDPForkStrategy": ".spawned",
    "DeepSpeedPlugin": ".deepspeed",
    "DeepSpeedStrategy": ".deepspeed",
    "PipelineStrategy": ".pipeline",
    "RPCSequentialPlugin": ".pipeline",
    "XLAStrategy": ".xla",
    "SingleDeviceXLAStrategy": ".xla",
    "SingleTPUStrategy": ".xla",
    "TPUSpawnPlugin": ".xla",
    "TPUSpawnStrategy": ".xla",
}
ALIASES = {
    "auto": "auto",
    "single_device": "single",
    "ddp_cpu": "ddp",
    "ddp_notebook": "ddp_fork",
    "distributed_data_parallel": "ddp",
    "sequential": "pipeline",
    "tpu": "xla",
    "single_tpu": "xla",
    "single_xla": "xla",
}
# Names that stand for another one with arguments.
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "ddp_find_unused_parameters_true": ("ddp", {"find_unused_parameters": True}),
    "ddp_find_unused_parameters_false": ("ddp", {"find_unused_parameters": False}),
    "fsdp_cpu_offload": ("fsdp", {"cpu_offload": True}),
    **{f"deepspeed_stage_{stage}": ("deepspeed", {"stage": stage}) for stage in (1, 2, 3)},
    **{
        f"deepspeed_stage_{stage}_offload": ("deepspeed", {"stage": stage, "offload_optimizer": True})
        for stage in (2, 3)
    },
}
# Names of Lightning 1.2 to 2.6 that are refused, with what to use instead.
REFUSED = {
    "tpu_spawn_debug": "set the environment variable PT_XLA_DEBUG=1 and use 'tpu_spawn'",
    "xla_debug": "set the environment variable PT_XLA_DEBUG=1 and use 'xla'",
    "xla_fsdp": "parameters are divided by 'fsdp', on GPUs and CPUs; on TPUs use 'xla'",
}
# `plugins="ddp_sharded"` beside `strategy="ddp_spawn"`: sharding says more, spawning stays.
TOGETHER = {
    ("ddp_sharded", "ddp_spawn"): "ddp_sharded_spawn",
    ("ddp_sharded", "ddp_fork"): "ddp_sharded_spawn",
    ("ddp_spawn", "ddp_sharded"): "ddp_sharded_spawn",
}

_classes: dict[str, type[Strategy]] = {}


def register(name: str) -> Callable[[type[Strategy]], type[Strategy]]:
    """Class decorator: `Trainer(strategy=name)` and `ptrun --strategy name` find the class."""

    def add(cls: type[Strategy]) -> type[Strategy]:
        _classes[name] = cls
        cls.name = name
        return cls

    return add


def known() -> list[str]:
    return sorted({*HOMES, *_classes, *ALIASES, *PRESETS, *REFUSED})


def is_strategy(asked: object) -> bool:
    """A strategy's name, a strategy, or its class; `auto` and `tpu` are left to others, to whom they mean something
    too.
    """
    if isinstance(asked, str):
        return asked in known() and asked not in ("auto", "tpu")
    return isinstance(asked, Strategy) or (isinstance(asked, type) and issubclass(asked, Strategy))


def choose_strategy(
    asked: Any, devices: int, nodes: int = 1, processes: int | None = None, kind: str | None = None
) -> Strategy:
    """The strategy for a name, a class or an object; none given means ddp where there are several devices, and xla on
    TPU cores.

    `processes`: how many there are, where a launcher has started them. `kind`: of the devices. Raises
    ConfigurationError for unknown names, for engines that are not installed and for numbers that do not fit.
    """
    several = (devices * nodes if processes is None else processes) > 1
    if asked is None or ALIASES.get(asked if isinstance(asked, str) else "") == "auto":
        usual = "xla" if kind == "tpu" else "horovod" if environment.by_horovodrun() else "ddp"
        asked = usual if several or kind == "tpu" else "single"
    chosen = made(asked)
    require(chosen.name, chosen.packages)
    if kind is not None and (kind == "tpu") != (chosen.only_on == "tpu"):
        chosen = _on_its_device(chosen, asked, kind, several)
    if environment.by_horovodrun() and several and chosen.name != "horovod":
        raise ConfigurationError(f"horovodrun started this process, so strategy={asked!r} cannot be; use 'horovod'")
    if processes is None:
        processes = nodes if chosen.one_process_a_node else devices * nodes
    other = chosen.instead(devices, processes)
    if other is not None:
        return made(other)
    if chosen.name == "single" and several:
        raise ConfigurationError(f"strategy {asked!r} runs one process, and {devices * nodes} devices were asked for")
    return chosen


def _on_its_device(chosen: Strategy, asked: Any, kind: str, several: bool) -> Strategy:
    """TPU cores go with strategies of their own; one device of any kind goes with "single"."""
    if chosen.only_on is not None:
        raise ConfigurationError(
            f"strategy {asked!r} runs on accelerator 'tpu', and {kind!r} was asked for: leave the accelerator out "
            "(PJRT_DEVICE=CPU runs the same on the CPU)"
        )
    if chosen.name == "single" and not several:
        return made("xla")
    raise ConfigurationError(f"accelerator 'tpu' runs strategy 'xla' or 'tpu_spawn', and {asked!r} was asked for")


def accelerator_for(strategy: Any, accelerator: Any) -> Any:
    """`accelerator`, or the one that the strategy brings where none was given: strategy="xla" means TPU cores."""
    if accelerator not in (None, "auto") or not (strategy == "tpu" or is_strategy(strategy)):
        return accelerator
    return made(strategy).only_on or accelerator


def made(asked: Any) -> Strategy:
    """The object for a name, a class, or an object."""
    if isinstance(asked, Strategy):
        return asked
    if isinstance(asked, type) and issubclass(asked, Strategy):
        return asked()
    if not isinstance(asked, str):
        raise unknown_name("strategy", asked, known())
    name, options = PRESETS.get(asked, (ALIASES.get(asked, asked), {}))
    if name in REFUSED and name not in _classes:
        raise ConfigurationError(f"strategy {asked!r} is not in this version: {REFUSED[name]}")
    if name not in _classes and name in HOMES:
        importlib.import_module(HOMES[name], __package__)
    if name not in _classes:
        raise unknown_name("strategy", asked, known())
    return _classes[name](**options)
