"""Sums, means, maxima and minima over ranks, of numbers, tensors and containers of them.

Python integers travel as int64 and floats as float64, so counts stay exact; in one process the very same object comes
back. Everything here runs over the gloo group, except tensors that live on a device, which use the default group.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
import torch.distributed as dist

from .errors import RanksDiffer, unknown_name

Kind = tuple[Any, ...]  # of a leaf: its family, and of an array its dtype, its shape and its device
OPS = {"sum": dist.ReduceOp.SUM, "mean": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}


NUMBERS = {"int", "float", "bool"}
BY_HOST = ("xla", "mps")


def map_leaves(value: Any, fn: Callable[[Any], Any]) -> Any:
    """`fn` of every leaf, in lists, tuples (named ones too) and dicts of the same types and order."""
    if isinstance(value, dict):
        mapped = {key: map_leaves(item, fn) for key, item in value.items()}
        return mapped if type(value) is dict else _rebuild_dict(value, mapped)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_leaves(item, fn) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(map_leaves(item, fn) for item in value)
    return fn(value)


def on_host(value: Any) -> Any:
    """`value` with its tensors on the CPU, detached."""
    return map_leaves(value, lambda leaf: leaf.detach().cpu() if isinstance(leaf, torch.Tensor) else leaf)


def sent(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` as torch's process groups take it: those of devices that have none go by the host."""
    return tensor.cpu() if tensor.device.type in BY_HOST else tensor


def _rebuild_dict(old: dict, mapped: dict) -> dict:
    """A dict subclass again (OrderedDict, defaultdict, Counter): a copy with its values replaced."""
    new = old.copy()
    for key, item in mapped.items():
        new[key] = item
    return new


def all_reduce(value: Any, op: str, group: dist.ProcessGroup, world: int) -> Any:
    """Reduce every leaf of `value` over the ranks; types come back as they went in.

    bool: `max` and `min` give bool, `sum` an int; int: `mean` gives a float. Strings and None are returned as they are.
    Raises ConfigurationError for an unknown `op`, and TypeError for a leaf that cannot be reduced.
    """
    if op == "avg":
        op = "mean"
    if op not in OPS:
        raise unknown_name("reduction", op, OPS)
    if world == 1:
        return value
    numbers: dict[torch.dtype, list] = {torch.int64: [], torch.float64: []}
    map_leaves(value, lambda leaf: _collect(leaf, numbers))
    reduced = {kind: iter(_reduce_numbers(items, kind, op, group, world)) for kind, items in numbers.items()}
    return map_leaves(value, lambda leaf: _reduced_leaf(leaf, reduced, op, group, world))


def matched(value: Any, group: dist.ProcessGroup, world: int) -> Any:
    """`value` with its numbers in the kinds that other ranks bring.

    An evaluation of fewer batches than ranks leaves some without: a counter is there still the 0 that it began with,
    where the others have a float or a tensor. Raises RanksDiffer where leaves are no such counters. One short message
    where all bring the same kinds.
    """
    own: list[Kind] = []
    map_leaves(value, lambda leaf: own.append(_kind(leaf)))
    mark = zlib.crc32(repr(own).encode())
    marks = torch.tensor([mark, -mark])
    dist.all_reduce(marks, dist.ReduceOp.MAX, group=group)
    if marks[0] == -marks[1]:
        return value
    brought: list[list[Kind]] = [[]] * world
    dist.all_gather_object(brought, own, group=group)
    if len({len(kinds) for kinds in brought}) > 1 or not all(map(_is_counter, zip(*brought, strict=True))):
        told = "; ".join(f"rank {rank} brings {_in_words(kinds)}" for rank, kinds in enumerate(brought))
        raise RanksDiffer(f"all_reduce of other things on each rank: {told}")
    wanted = zip(*brought, strict=True)
    return map_leaves(value, lambda leaf: _as_others(leaf, next(wanted)))


def _kind(leaf: Any) -> Kind:
    if isinstance(leaf, torch.Tensor):
        return ("tensor", leaf.dtype, tuple(leaf.shape), leaf.device.type)
    if type(leaf).__module__ == "numpy" and hasattr(leaf, "dtype"):
        return ("array", leaf.dtype.str, leaf.shape)
    return (type(leaf).__name__,)


def _is_counter(kinds: Sequence[Kind]) -> bool:
    """Whether the ranks' leaves are one counter: nothing was added to those that are numbers, or of no dimension."""
    if len(set(kinds)) == 1:
        return True
    arrays = {(kind[0], *kind[3:]) for kind in kinds if len(kind) > 1}
    shapes = {kind[2] for kind in kinds if len(kind) > 1} - {()}
    return len(arrays) <= 1 and len(shapes) <= 1 and {kind[0] for kind in kinds if len(kind) == 1} <= NUMBERS


def _as_others(leaf: Any, kinds: Sequence[Kind]) -> Any:
    """A leaf in the kind of all ranks' together: of an array in their dtype and their shape."""
    if len(set(kinds)) == 1:
        return leaf
    arrays = [kind for kind in kinds if len(kind) > 1]
    if not arrays:
        names = {kind[0] for kind in kinds}
        return float(leaf) if "float" in names else int(leaf)
    shape = max((kind[2] for kind in arrays), key=len)
    if arrays[0][0] == "tensor":
        dtype = reduce(torch.promote_types, [kind[1] for kind in arrays])
        return torch.as_tensor(leaf, dtype=dtype, device=arrays[0][3]).expand(shape)
    import numpy

    dtype = numpy.result_type(*(kind[1] for kind in arrays))
    return numpy.broadcast_to(numpy.asarray(leaf, dtype), shape)[()]


def _in_words(kinds: list[Kind]) -> str:
    return ", ".join(" ".join(str(part) for part in kind[:3]) for kind in kinds) or "nothing"


def _number_kind(leaf: Any) -> torch.dtype | None:
    """int64 or float64 for a number (NumPy's scalars too), else None."""
    if isinstance(leaf, (bool, int)):
        return torch.int64
    if isinstance(leaf, float):
        return torch.float64
    if type(leaf).__module__ == "numpy" and getattr(leaf, "shape", None) == ():
        return {"i": torch.int64, "u": torch.int64, "b": torch.int64, "f": torch.float64}.get(leaf.dtype.kind)
    return None


def _collect(leaf: Any, numbers: dict[torch.dtype, list]) -> Any:
    kind = _number_kind(leaf)
    if kind is not None:
        numbers[kind].append(int(leaf) if kind == torch.int64 else float(leaf))
    return leaf


def _reduce_numbers(items: list, kind: torch.dtype, op: str, group: dist.ProcessGroup, world: int) -> list:
    if not items:
        return []
    tensor = torch.tensor(items, dtype=kind)
    dist.all_reduce(tensor, OPS[op], group=group)
    return [item / world for item in tensor.tolist()] if op == "mean" else tensor.tolist()


def _reduced_leaf(leaf: Any, reduced: dict, op: str, group: dist.ProcessGroup, world: int) -> Any:
    kind = _number_kind(leaf)
    if kind is not None:
        number = next(reduced[kind])
        if isinstance(leaf, bool):
            return bool(number) if op in ("max", "min") else number
        if type(leaf).__module__ == "numpy":
            return type(leaf)(number) if not (op == "mean" and kind == torch.int64) else number
        return number
    if isinstance(leaf, torch.Tensor):
        return reduce_tensor(leaf, op, group, world)
    if type(leaf).__module__ == "numpy":
        return reduce_tensor(torch.from_numpy(leaf.copy()), op, group, world).numpy()
    if leaf is None or isinstance(leaf, str):
        return leaf
    raise TypeError(f"all_reduce cannot reduce a {type(leaf).__name__}; give numbers, tensors, or containers of them")


def reduce_tensor(tensor: torch.Tensor, op: str, group: dist.ProcessGroup, world: int) -> torch.Tensor:
    """A new tensor of the same shape, dtype and device (a mean of integers comes back in the default float type)."""
    kept = tensor.dtype
    result = sent(tensor.detach().clone(memory_format=torch.contiguous_format))
    if op == "mean" and not (kept.is_floating_point or kept.is_complex):
        result, kept = result.double(), torch.get_default_dtype()
    elif kept in (torch.float16, torch.bfloat16):
        result = result.float()
    elif kept == torch.bool:
        result, kept = result.long(), kept if op in ("max", "min") else torch.int64
    dist.all_reduce(result, OPS[op], group=group if result.device.type == "cpu" else None)
    if op == "mean":
        result /= world
    return result.to(tensor.device, kept)


def all_gather(data: Any, group: dist.ProcessGroup, world: int, sync_grads: bool = False) -> Any:
    """Leaves of shape (...) as tensors of shape (world, ...). Shapes must be the same on all ranks."""

    def gather(leaf: Any) -> Any:
        if not isinstance(leaf, (torch.Tensor, int, float)):
            return leaf
        tensor = torch.as_tensor(leaf).contiguous()
        home, tensor = tensor.device, sent(tensor)
        if sync_grads:
            from torch.distributed.nn.functional import all_gather as differentiable

            return torch.stack(differentiable(tensor)).to(home)
        parts = [torch.empty_like(tensor) for _ in range(world)]
        dist.all_gather(parts, tensor.detach(), group=group if tensor.device.type == "cpu" else None)
        return torch.stack(parts).to(home)

    return map_leaves(data, gather)


def broadcast_object(value: Any, group: dist.ProcessGroup, rank: int, source: int = 0) -> Any:
    """`value` of rank `source`, on every rank. Two messages: how many bytes, then the bytes."""
    size = torch.zeros(1, dtype=torch.int64)
    if rank == source:
        data = torch.frombuffer(bytearray(pickle.dumps(value)), dtype=torch.uint8)
        size[0] = data.numel()
    dist.broadcast(size, source, group=group)
    if rank != source:
        data = torch.empty(int(size), dtype=torch.uint8)
    dist.broadcast(data, source, group=group)
    return value if rank == source else pickle.loads(data.numpy().tobytes())


def gather_objects(value: Any, group: dist.ProcessGroup, world: int, what: str) -> list[Any]:
    """Every rank's `value`, in the order of ranks, on every rank. `what` they are: RanksDiffer where one rank brings
    something else.
    """
    gathered: list[Any] = [None] * world
    dist.all_gather_object(gathered, (what, value), group=group)
    if any(other != what for other, _ in gathered):
        brought = "; ".join(f"rank {rank} brings {other}" for rank, (other, _) in enumerate(gathered))
        raise RanksDiffer(f"ranks do different things: {brought}; all have to log, reduce, save and step alike")
    return [each for _, each in gathered]


def broadcast_tensors(tensors: list[torch.Tensor], source: int = 0, host: dist.ProcessGroup | None = None) -> None:
    """Overwrite `tensors` with those of rank `source`. `host`: the group for those on the CPU; NCCL takes none."""
    with torch.no_grad():
        for tensor in tensors:
            whole = sent(tensor.contiguous())
            dist.broadcast(whole, source, group=host if whole.device.type == "cpu" else None)
            if whole is not tensor:
                tensor.copy_(whole)
