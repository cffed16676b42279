"""Calls by which an evaluation's steps fill a list, a meter or a dictionary that is read whole afterwards.

Where its batches go round among the ranks, each rank keeps the calls of its own. When they are over, all calls are made
on every rank, in the order of one process: whatever is filled is then what one process has. What is filled never
travels, only its place in the module does, and the values that are put in.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator
from inspect import unwrap
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import torch

from .collectives import gather_objects
from .errors import ConfigurationError

if TYPE_CHECKING:
    from .module import Module
    from .trainer import Trainer

METHOD = "in_order"  # of Module
Kept = tuple[tuple[int, int], Callable[..., Any], tuple, dict[str, Any]]
Place = tuple[tuple[str, Any], ...]  # ("attribute", name) and ("item", key), from the module on
DEPTH = 5  # attributes and items from the module to what is filled


class InOrder:
    """What this rank's steps have kept since the evaluation began."""

    def __init__(self, trainer: Trainer):
        self.trainer = trainer
        self.kept: list[Kept] = []

    @property
    def waits(self) -> bool:
        """Are the batches of the step that is under way dealt out among ranks?"""
        runtime, logs = self.trainer.runtime, self.trainer.logs
        return runtime.world_size > 1 and not runtime.repeated and logs.in_step and not logs.training

    def keep(self, call: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> None:
        if hasattr(_owner(call), "_sync_dist"):
            call(*args, **kwargs)  # of a metric object, which brings its ranks together itself
            return
        logs = self.trainer.logs
        at = (logs.dataloader_idx or 0, logs.batches[logs.dataloader_idx])
        self.kept.append((at, call, args, kwargs))

    def make(self, module: Module) -> None:
        """All ranks' calls, by loaders, rounds and ranks; once an evaluation, and nothing where its steps have none."""
        runtime = self.trainer.runtime
        if runtime.world_size == 1 or runtime.repeated or not uses(type(module)):
            return
        kept, self.kept = self.kept, []
        every = gather_objects(dumped(kept, module), runtime.group, runtime.world_size, "its calls in order")
        calls = [call for each in runtime.distinct(every) for call in loaded(each, module, runtime.device)]
        for _, call, args, kwargs in sorted(calls, key=lambda each: each[0]):
            call(*args, **kwargs)


def uses(kind: type) -> bool:
    """Do methods of the class call `in_order`? The same on every rank, those without a batch included."""
    functions = (f for base in kind.__mro__ for f in vars(base).values() if isinstance(f, FunctionType))
    return any(f.__name__ != METHOD and METHOD in _names(f.__code__) for f in functions)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def dumped(kept: list[Kept], module: Module) -> bytes:
    """The calls as bytes. ConfigurationError where a call fills what is not of the module."""
    owners = {id(o): o for _, call, _, _ in kept if (o := _owner(call)) is not None}
    places = _places(module, set(owners))
    for key, owner in owners.items():
        if key not in places:
            raise ConfigurationError(
                f"in_order: the {type(owner).__name__} that it fills is no attribute of {type(module).__name__}; keep "
                "it in one, so that every rank can find its own"
            )
    file = io.BytesIO()
    try:
        _Pickler(file, places).dump([(at, _named(call), args, kwargs) for at, call, args, kwargs in kept])
    except (pickle.PicklingError, AttributeError, TypeError) as why:
        raise ConfigurationError(f"in_order: what {type(module).__name__} fills with cannot be sent: {why}") from why
    return file.getvalue()


def _owner(call: Callable[..., Any]) -> Any:
    """What a bound method belongs to, a wrapped one too; None for functions."""
    owner = getattr(call, "__self__", getattr(unwrap(call), "__self__", None))
    return None if isinstance(owner, ModuleType) else owner


def _named(call: Callable[..., Any]) -> Any:
    """A method as what it belongs to, and its name there: a decorated one has another name of its own."""
    owner = _owner(call)
    if owner is None:
        return call
    name = getattr(call, "__name__", "")
    names = [name] if getattr(owner, name, None) == call else [n for n in dir(owner) if getattr(owner, n, None) == call]
    return (owner, names[0]) if names else call


def loaded(data: bytes, module: Module, device: torch.device) -> list[Kept]:
    calls = _Unpickler(io.BytesIO(data), module, device).load()
    return [(at, getattr(*call) if isinstance(call, tuple) else call, *given) for at, call, *given in calls]


class _Pickler(pickle.Pickler):
    """What stands in the module as its place, what is on a device as a tensor of the host."""

    def __init__(self, file: io.BytesIO, places: dict[int, Place]):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.places = places

    def persistent_id(self, obj: Any) -> Any:
        place = self.places.get(id(obj))
        if place is not None:
            return "place", place
        if isinstance(obj, torch.Tensor) and obj.device.type != "cpu":
            return "placed", obj.detach().cpu()
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, module: Module, device: torch.device):
        super().__init__(file)
        self.module, self.device = module, device

    def persistent_load(self, pid: Any) -> Any:
        kind, value = pid
        if kind == "placed":
            return value.to(self.device)
        found: Any = self.module
        for how, name in value:
            found = getattr(found, name) if how == "attribute" else found[name]
        return found


def _places(module: Module, wanted: set[int]) -> dict[int, Place]:
    """Where the objects of these ids stand, the nearest places first."""
    found: dict[int, Place] = {}
    seen: set[int] = set()
    level: list[tuple[Place, Any]] = [((), module)]
    for _ in range(DEPTH + 1):
        below: list[tuple[Place, Any]] = []
        for place, each in level:
            if id(each) in wanted:
                found.setdefault(id(each), place)
            if len(found) == len(wanted):
                return found
            if id(each) not in seen:
                seen.add(id(each))
                below += [((*place, step), part) for step, part in _parts(each)]
        level = below
    return found


def _parts(each: Any) -> Iterator[tuple[tuple[str, Any], Any]]:
    """What an object holds that may be filled, or hold what is."""
    if isinstance(each, dict):
        parts = ((("item", key), part) for key, part in each.items())
    elif isinstance(each, (list, tuple)):
        parts = ((("item", number), part) for number, part in enumerate(each))
    elif isinstance(each, torch.nn.Module):
        own = {**vars(each), **each._modules}
        parts = ((("attribute", name), part) for name, part in own.items() if not name.startswith("_"))
    else:
        parts = ((("attribute", name), part) for name, part in getattr(each, "__dict__", {}).items())
    skipped = (int, float, str, bytes, bool, torch.Tensor, type, FunctionType, ModuleType, type(None))
    return (found for found in parts if not isinstance(found[1], skipped))
