"""A batch cut among the devices of one process, and what they gave put together again.

Pieces are contiguous and differ by at most one sample, bigger ones first; a batch with fewer samples than devices has
fewer pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ..data.divide import bounds
from ..data.move import batch_size_of, cut_batch, holds_tensors, move_to
from ..metrics.logs import FUNCTIONS, REDUCE


class Piece(NamedTuple):
    """What one device gets. `share`: its fraction of the batch."""

    batch: Any
    size: int
    share: float
    device: torch.device


def scatter(batch: Any, devices: Sequence[torch.device]) -> list[Piece]:
    """Cut `batch` along the first dimension of its tensors, each by its own length (loaders that are combined give
    batches of several sizes); one without samples to count goes whole to the first.
    """
    total = batch_size_of(batch)
    if not total or total < 2 or len(devices) < 2:
        return [Piece(batch, total or 1, 1.0, devices[0])]
    pieces = []
    for number, device in enumerate(devices):
        start, stop = bounds(total, number, len(devices))
        if stop > start:
            part = cut_batch(batch, _rows(number, len(devices)))
            pieces.append(Piece(move_to(part, device), stop - start, (stop - start) / total, device))
    return pieces


def _rows(number: int, parts: int) -> Callable[[int], slice]:
    return lambda length: slice(*bounds(length, number, parts))


def gather(outputs: Sequence[Any], device: torch.device) -> Any:
    """The outputs of the devices as one: tensors of shape (n, ...) along their first dimension, numbers and tensors of
    shape () as a tensor of shape (devices,), lists without tensors (of samples) one after another, other containers
    item by item, anything else as a list.
    """
    first = outputs[0]
    if all(isinstance(output, torch.Tensor) for output in outputs):
        moved = [output.to(device) for output in outputs]
        return torch.stack(moved) if first.ndim == 0 else torch.cat(moved)
    if all(isinstance(output, (bool, int, float)) for output in outputs):
        return torch.tensor(list(outputs), device=device)
    if all(output is None for output in outputs):
        return None
    if isinstance(first, Mapping) and all(_same_keys(first, output) for output in outputs):
        return {key: gather([output[key] for output in outputs], device) for key in first}
    if all(isinstance(output, list) and not holds_tensors(output) for output in outputs):
        return [item for output in outputs for item in output]
    if isinstance(first, (list, tuple)) and all(_same_length(first, output) for output in outputs):
        items = [gather(list(column), device) for column in zip(*outputs, strict=True)]
        return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)
    return list(outputs)


def _same_keys(first: Mapping, other: Any) -> bool:
    return isinstance(other, Mapping) and list(first) == list(other)


def _same_length(first: Sequence, other: Any) -> bool:
    return type(first) is type(other) and len(first) == len(other)


def is_number(value: Any) -> bool:
    """A tensor of shape (), of floats?"""
    return isinstance(value, torch.Tensor) and value.ndim == 0 and value.is_floating_point()


def whole_loss(losses: Any, sizes: Sequence[int], reduction: str) -> Any:
    """The batch's loss from a tensor of shape (devices,): weighted by the samples of each, or added up for losses that
    are sums over samples.
    """
    if reduction == "sum":
        return losses.sum()
    weights = torch.tensor(sizes, dtype=losses.dtype, device=losses.device)
    return (losses * (weights / weights.sum())).sum()


class Logged(NamedTuple):
    """A call of `log` on one device."""

    value: Any
    arguments: tuple
    options: dict[str, Any]


class Recorder:
    """`module.log` on one device: remembers the calls, the n-th of each name apart."""

    def __init__(self, size: int):
        self.size = size
        self.calls: dict[tuple[str, int], Logged] = {}

    def log(self, name: str, value: Any, *arguments: Any, **options: Any) -> None:
        nth = sum(1 for known, _ in self.calls if known == name)
        value = value.detach() if isinstance(value, torch.Tensor) else value
        self.calls[(name, nth)] = Logged(value, arguments, options)


def replay(recorders: Sequence[Recorder], log: Any, losses: Sequence[Any] = (), reduction: str = "mean") -> None:
    """Every name logged once for the whole batch, with the value that it has there. `losses`: what the step gave on
    each device; a value that is the loss is the whole batch's, however it is reduced afterwards.
    """
    for key in {key: None for recorder in recorders for key in recorder.calls}:
        having = [recorder for recorder in recorders if key in recorder.calls]
        calls = [recorder.calls[key] for recorder in having]
        options = dict(calls[0].options)
        sizes = [call.options.get("batch_size") or rec.size for call, rec in zip(calls, having, strict=True)]
        if options.get("batch_size") is not None:
            options["batch_size"] = sum(sizes)
        values, reduce_fx = [call.value for call in calls], options.get("reduce_fx", "mean")
        means = reduction == reduce_fx == "mean"
        if not means and len(values) == len(losses) > 1 and all(map(_is_loss, values, losses)):
            parts = torch.stack([loss.detach().to(losses[0].device) for loss in losses])
            values, sizes = [whole_loss(parts, [recorder.size for recorder in recorders], reduction)], []
        for value in _joined(values, sizes, reduce_fx):
            log(key[0], value, *calls[0].arguments, **options)


def _is_loss(value: Any, loss: Any) -> bool:
    if not is_number(loss) or not isinstance(value, (float, torch.Tensor)):
        return False
    same = isinstance(value, torch.Tensor) and value.data_ptr() == loss.data_ptr()
    return same or (torch.as_tensor(value).numel() == 1 and float(value) == float(loss.detach()))


def _joined(values: list[Any], sizes: list[int], reduce_fx: Any) -> list[Any]:
    """One value for the batch; all of them where only the user's own function could join them."""
    if len(values) == 1 or hasattr(values[0], "compute"):
        return values[:1]
    reduce = FUNCTIONS.get(reduce_fx) if callable(reduce_fx) else REDUCE.get(str(reduce_fx).lower())
    device = next((value.device for value in values if isinstance(value, torch.Tensor)), None)
    numbers = [torch.as_tensor(value, device=device).reshape(()) for value in values]
    if reduce == "mean":
        total = sum(sizes)
        return [sum(number * (size / total) for number, size in zip(numbers, sizes, strict=True))]
    if reduce is None:
        return values
    return [getattr(torch.stack(numbers), reduce)()]  # sum, min or max
