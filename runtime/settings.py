"""What a run was asked for, by the script and by ptrun (which wins), as one resolved answer."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch

from . import accelerators, environment
from .environment import Place
from .errors import ConfigurationError
from .strategies.base import Strategy
from .strategies.registry import TOGETHER, accelerator_for, choose_strategy, is_strategy, made


@dataclass(frozen=True)
class Settings:
    """Resolved: nothing in here is `auto` any more."""

    kind: str
    numbers: tuple[int, ...]
    nodes: int
    strategy: Strategy
    precision: Any
    global_batch: bool
    place: Place

    @property
    def world_size(self) -> int:
        return self.place.world_size

    @property
    def device(self) -> torch.device:
        """This process's. Each of several processes on TPU cores sees its own core alone."""
        if self.kind == "cpu":
            return torch.device("cpu")
        if self.kind == "tpu":
            return torch.device("xla", self.numbers[0] if len(self.numbers) == 1 else 0)
        return torch.device(self.kind, self.numbers[self.place.local_rank])


def resolve(
    accelerator: Any = None,
    devices: Any = None,
    strategy: Any = None,
    gpus: Any = None,
    num_nodes: int = 1,
    precision: Any = None,
    global_batch: bool = False,
    plugins: Any = None,
) -> Settings:
    """Both spellings of the guide (`gpus=2, accelerator="ddp"`; `devices=2, accelerator="gpu", strategy="ddp"`).

    Raises ConfigurationError for devices that are not there and names that are not known.
    """
    if is_strategy(accelerator):
        if strategy is not None and strategy != "auto":
            raise ConfigurationError(f"accelerator={accelerator!r} and strategy={strategy!r} name two strategies")
        accelerator, strategy = None, accelerator
    strategy = _from_plugins(plugins, strategy)
    if isinstance(num_nodes, bool) or not isinstance(num_nodes, int) or num_nodes < 1:
        raise ConfigurationError(f"num_nodes={num_nodes!r}: a whole number from 1 up is needed")
    launched = environment.launched()
    place = environment.place()
    asked = _asked_strategy(strategy)
    whole_node = one_process_a_node(asked)
    accelerator = accelerator_for(asked, accelerator)
    chosen = _devices(accelerator, devices, gpus, place if launched and not whole_node else None)
    count = len(chosen.numbers)
    picked = choose_strategy(asked, count, num_nodes, place.world_size if launched else None, chosen.kind)
    if whole_node and launched:
        check_one_process(picked.name, place)
    if not launched:
        size = 1 if picked.one_process_a_node else count
        node = int(os.environ.get("NODE_RANK", 0)) if num_nodes > 1 else 0
        place = Place(node * size, 0, size * num_nodes, size, node)
    return Settings(
        kind=chosen.kind,
        numbers=chosen.numbers,
        nodes=num_nodes,
        strategy=picked,
        precision=environment.option("precision") or (32 if precision is None else precision),
        global_batch=environment.flag("global_batch") or bool(global_batch),
        place=place,
    )


def _from_plugins(plugins: Any, strategy: Any) -> Any:
    """The guide's `plugins="ddp_sharded"`: a strategy under another name, which says more than `accelerator="ddp"`."""
    for plugin in plugins if isinstance(plugins, (list, tuple)) else [plugins] if plugins else []:
        if not is_strategy(plugin):
            shown = repr(plugin) if isinstance(plugin, str) else type(plugin).__name__
            raise ConfigurationError(f"plugins={shown}: only strategies and their names are taken here")
        strategy = TOGETHER.get((plugin, strategy), plugin) if isinstance(plugin, str) else plugin
    return strategy


def _asked_strategy(given: Any) -> Any:
    """ptrun's word wins over the script's; where both name the same one, the script's options stay."""
    name = environment.option("strategy")
    same = isinstance(given, Strategy) and given.name == name
    return given if name is None or same else name


def one_process_a_node(asked: Any) -> bool:
    """Does the strategy of this name (or this object) drive all devices of a node from one process?"""
    return is_strategy(asked) and made(asked).one_process_a_node


def check_one_process(name: str, place: Place) -> None:
    if place.local_world_size > 1:
        raise ConfigurationError(
            f"strategy {name!r} is one process for all devices of a node, and a launcher started "
            f"{place.local_world_size}: start the script with python, or with ptrun --strategy {name}"
        )


def _devices(accelerator: Any, devices: Any, gpus: Any, place: Place | None) -> accelerators.Devices:
    """The node's devices. Under a launcher there are as many as it started processes; the script's list names
    them, if long enough.
    """
    from_ptrun = environment.option("accelerator")
    if from_ptrun:
        accelerator, gpus = from_ptrun, None
    if place is None:
        return accelerators.choose(accelerator, environment.option("devices") or devices, gpus)
    size = place.local_world_size
    listed = gpus if isinstance(gpus, (list, tuple)) else devices
    if isinstance(listed, (list, tuple)) and len(listed) == size and not environment.option("devices"):
        return accelerators.choose(accelerator or ("gpu" if gpus else None), list(listed))
    if gpus is not None and accelerators.parse_gpus(gpus) is not None:
        accelerator = "gpu"
    return accelerators.choose(accelerator, size)
