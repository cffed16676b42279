"""Activations that are computed again in backward, with the statistics of batch norm counted once.

torch's checkpoint runs a part twice (Chen, Xu, Zhang & Guestrin, Training Deep Nets with Sublinear Memory Cost, 2016),
and batch norm would follow both runs. The second one normalises with the same numbers and follows nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils.checkpoint import checkpoint


def batch_norm_once() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """For `torch.utils.checkpoint.checkpoint(..., use_reentrant=False, context_fn=batch_norm_once)`."""
    return nullcontext(), _following_nothing()


@contextmanager
def _following_nothing() -> Iterator[None]:
    """Inside, what a layer that trains follows of its inputs is followed in copies: autograd keeps those as before."""
    thread, held = threading.get_ident(), dict[torch.nn.Module, dict[str, Any]]()

    def hold(part: torch.nn.Module, _: Any) -> None:
        if isinstance(part, _NormBase) and part.training and part not in held and threading.get_ident() == thread:
            held[part] = dict(part._buffers)
            part._buffers.update({k: None if b is None else b.clone() for k, b in part._buffers.items()})

    hook = register_module_forward_pre_hook(hold)
    try:
        yield
    finally:  # torch leaves a second run by an exception, as soon as it has what backward needs
        hook.remove()
        for part, buffers in held.items():
            part._buffers.update(buffers)


def checkpoint_segments(
    functions: torch.nn.Sequential | Sequence[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """`torch.utils.checkpoint.checkpoint_sequential`, with batch norm counted once.

    The last segment keeps its activations, as torch's does. Autograd is not re-entered, whatever `use_reentrant` says.
    """
    parts = list(functions.children()) if isinstance(functions, torch.nn.Sequential) else list(functions)
    size = len(parts) // segments
    last = size * (segments - 1)
    for start in range(0, last, size):
        run = _in_order(parts[start : start + size])
        rng = preserve_rng_state
        input = checkpoint(run, input, use_reentrant=False, preserve_rng_state=rng, context_fn=batch_norm_once)
    return _in_order(parts[last:])(input)


def _in_order(parts: Sequence[Callable[..., Any]]) -> Callable[[Any], Any]:
    def run(input: Any) -> Any:
        for part in parts:
            input = part(input)
        return input

    return run
