"""The state of random generators as plain values, which weights_only can read."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch

from ..accelerators.tpu import running
from ..data.combined import loaders_of

State = dict[str, Any]


def capture() -> State:
    """torch's default generators (CPU and, where used, CUDA and XLA), random's, and NumPy's where it is loaded."""
    state: State = {"torch": torch.get_rng_state(), "random": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state()
    xla = running()
    if xla is not None:
        state["xla"] = xla.drawn()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, position, has_gauss, gauss = numpy.random.get_state()
        state["numpy"] = (name, keys.tolist(), int(position), int(has_gauss), float(gauss))
    return state


def restore(state: State) -> None:
    torch.set_rng_state(state["torch"])
    version, numbers, gauss = state["random"]
    random.setstate((version, tuple(numbers), gauss))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
    xla = running()
    if xla is not None and "xla" in state:
        xla.seed(state["xla"])
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in state:
        name, keys, *rest = state["numpy"]
        numpy.random.set_state((name, numpy.array(keys, dtype="uint32"), *rest))


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
