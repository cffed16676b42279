"""The state of random generators as plain values, which weights_only can read."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ..accelerators.tpu import running
from ..data.combined import loaders_of

State = dict[str, Any]


def capture(kinds: Iterable[str] | None = None) -> State:
    """torch's default generators (CPU and, where used, CUDA and XLA), random's, and NumPy's where it is loaded."""
    return {kind: state for kind in kinds or KINDS if (state := KINDS[kind][0]()) is not None}


def restore(state: State) -> None:
    for kind, (_, write) in KINDS.items():
        if kind in state:
            write(state[kind])


@contextmanager
def untouched() -> Iterator[None]:
    """What is drawn inside is not drawn from the user's generators."""
    before = capture()
    try:
        yield
    finally:
        restore(before)


def differs(a: State, b: State) -> bool:
    """Has one of the kinds that both hold drawn in between?"""
    return any(kind_differs(a[kind], b[kind]) for kind in a.keys() & b.keys())


def kind_differs(a: Any, b: Any) -> bool:
    return not torch.equal(a, b) if isinstance(a, torch.Tensor) else bool(a != b)


def _read_cuda() -> Any:
    return torch.cuda.get_rng_state() if torch.cuda.is_available() and torch.cuda.is_initialized() else None


def _write_cuda(state: Any) -> None:
    if torch.cuda.is_available():
        torch.cuda.set_rng_state(state)


def _read_xla() -> Any:
    xla = running()
    return xla.drawn() if xla is not None else None


def _write_xla(state: Any) -> None:
    xla = running()
    if xla is not None:
        xla.seed(state)


def _write_random(state: Any) -> None:
    version, numbers, gauss = state
    random.setstate((version, tuple(numbers), gauss))


def _read_numpy() -> Any:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    name, keys, position, has_gauss, gauss = numpy.random.get_state()
    return (name, keys.tolist(), int(position), int(has_gauss), float(gauss))


def _write_numpy(state: Any) -> None:
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, *rest = state
        numpy.random.set_state((name, numpy.array(keys, dtype="uint32"), *rest))


# what reads a generator's state (None: not in use here), and what sets it
KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "torch": (torch.get_rng_state, torch.set_rng_state),
    "random": (random.getstate, _write_random),
    "cuda": (_read_cuda, _write_cuda),
    "xla": (_read_xla, _write_xla),
    "numpy": (_read_numpy, _write_numpy),
}


def generators_of(loader: Any) -> list[torch.Generator]:
    """The generators that a loader (or several together) and their samplers have of their own, each once."""
    found = []
    for each in loaders_of(loader):
        batch_sampler = getattr(each, "batch_sampler", None)
        owners = (each, getattr(each, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None))
        found += [getattr(owner, "generator", None) for owner in owners]
    return list({id(g): g for g in found if isinstance(g, torch.Generator)}.values())


def capture_loader(loader: Any) -> list[torch.Tensor]:
    return [generator.get_state() for generator in generators_of(loader)]


def restore_loader(loader: Any, states: list[torch.Tensor]) -> None:
    for generator, state in zip(generators_of(loader), states):  # noqa: B905  a loader may have changed
        generator.set_state(state)
