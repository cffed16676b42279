"""Batches to the device, and how many samples they hold."""

from __future__ import annotations

import copy
import dataclasses
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

CPU = torch.device("cpu")


def move_to(batch: Any, device: torch.device) -> Any:
    """`batch` on `device`: tensors, nested containers, objects by their own `.to` or with the tensors that they keep.
    On the CPU, the same object.
    """
    if device == CPU:
        return batch
    return _move(batch, device)


def to_cpu(item: Any) -> Any:
    """`item` with its tensors on the CPU."""
    return _move(item, CPU)


def _move(item: Any, device: torch.device) -> Any:
    if isinstance(item, torch.Tensor):
        return item.to(device, non_blocking=item.is_pinned())
    if hasattr(item, "to") and callable(item.to):
        return item.to(device)
    if isinstance(item, Mapping):
        moved = {key: _move(value, device) for key, value in item.items()}
        return moved if type(item) is dict else type(item)(moved)  # type: ignore[call-arg]
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return type(item)(*(_move(value, device) for value in item))
    if isinstance(item, (list, tuple)):
        return type(item)(_move(value, device) for value in item)
    return _moved_object(item, device)


def _moved_object(item: Any, device: torch.device) -> Any:
    """A copy of a collate function's own object, or of a data class, with its tensors there; others as they are."""
    held = {name: value for name, value in getattr(item, "__dict__", {}).items() if holds_tensors(value)}
    if not held or isinstance(item, type):
        return item
    moved = copy.copy(item)
    vars(moved).update({name: _move(value, device) for name, value in held.items()})
    return moved


def batch_size_of(batch: Any) -> int | None:
    """The length of the first tensor found in `batch` (a scalar counts 1); of the first list where it holds none; or
    None.
    """
    size = _first_length(batch)
    if size is None:
        return len(batch) if isinstance(batch, str) else _first_list(batch)
    return size


def _first_length(batch: Any) -> int | None:
    if isinstance(batch, torch.Tensor):
        return batch.shape[0] if batch.ndim else 1
    if isinstance(batch, (list, tuple)):
        for item in batch:
            size = _first_length(item)
            if size is not None:
                return size
        return None
    if isinstance(batch, Mapping):
        return _first_length(list(batch.values()))
    if dataclasses.is_dataclass(batch):
        return _first_length([getattr(batch, field.name) for field in dataclasses.fields(batch)])
    told = getattr(batch, "num_graphs", None) or getattr(batch, "batch_size", None)
    return told if isinstance(told, int) else None


def _first_list(batch: Any) -> int | None:
    """Samples that are no tensors: a list of them, or a dict of such lists."""
    if isinstance(batch, Mapping):
        return next((len(item) for item in batch.values() if isinstance(item, (list, tuple))), None)
    return len(batch) if isinstance(batch, (list, tuple)) else None


def weight_of_unknown(batch: Any) -> int:
    """In means, of a batch that does not tell its size."""
    if batch is not None and not isinstance(batch, (int, float)):
        warnings.warn(
            f"a batch of type {type(batch).__name__} does not tell how many samples it has, so that in the mean of an "
            "epoch each batch counts alike: give log(..., batch_size=...)",
            stacklevel=5,
        )
    return 1


def slice_batch(batch: Any, start: int, stop: int) -> Any:
    """Samples `start` to `stop` of a collated batch: the first dimension of its tensors, in containers of any depth."""
    return cut_batch(batch, lambda _: slice(start, stop))


def cut_batch(batch: Any, rows: Callable[[int], slice]) -> Any:
    """Of each tensor with n samples those of `rows(n)`.

    Lists and tuples are containers of fields when they hold tensors, and lists of samples when they do not.
    """
    if isinstance(batch, torch.Tensor):
        return batch[rows(len(batch))] if batch.ndim else batch
    if isinstance(batch, Mapping):
        cut = {key: cut_batch(value, rows) for key, value in batch.items()}
        return cut if type(batch) is dict else type(batch)(cut)  # type: ignore[call-arg]
    if isinstance(batch, (list, tuple)):
        if not holds_tensors(batch):
            return batch[rows(len(batch))]
        fields = (cut_batch(value, rows) for value in batch)
        return type(batch)(*fields) if hasattr(batch, "_fields") else type(batch)(fields)
    if type(batch).__module__ == "numpy" and getattr(batch, "ndim", False):
        return batch[rows(len(batch))]
    if isinstance(batch, (int, float, str, bool, type(None))):
        return batch
    raise TypeError(
        f"a batch of type {type(batch).__name__} cannot be divided among processes; give a DataLoader over a map-style "
        "data set, or batches of tensors"
    )


def holds_tensors(value: Any) -> bool:
    """Is it a tensor, or a container with one in it?"""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(holds_tensors(item) for item in value)
    return isinstance(value, torch.Tensor)


def length_of(loader: Any) -> float:
    """`len(loader)`, infinite where it has none."""
    try:
        return len(loader)
    except TypeError:
        return math.inf
