"""torch's communication hooks for DistributedDataParallel, by name: what is sent instead of whole gradients.

PowerSGD: Vogels et al., PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization, NeurIPS 2019.
Post-local SGD: Lin et al., Don't Use Large Mini-Batches, Use Local SGD, ICLR 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import ConfigurationError, unknown_name

Hook = Callable[..., Any]
WRAPPERS = {"fp16_compress": "fp16_compress_wrapper", "bf16_compress": "bf16_compress_wrapper"}


class Named(NamedTuple):
    """Where torch has the hook, and what state it wants: "group", "powerSGD" or "post_localSGD"."""

    module: str
    function: str
    state: str = "group"
    gpu_only: str | None = None  # the reason


WAITS = "torch's PowerSGD waits for one all-reduce inside another's callback, where gloo can stop for good"
HOOKS = {
    "allreduce": Named("default_hooks", "allreduce_hook"),
    "fp16_compress": Named("default_hooks", "fp16_compress_hook"),
    "bf16_compress": Named(
        "default_hooks", "bf16_compress_hook", gpu_only="torch's bf16 hook needs NCCL; use 'fp16_compress'"
    ),
    "powerSGD": Named("powerSGD_hook", "powerSGD_hook", "powerSGD", gpu_only=WAITS),
    "batched_powerSGD": Named("powerSGD_hook", "batched_powerSGD_hook", "powerSGD", gpu_only=WAITS),
    "quantization_pertensor": Named(
        "quantization_hooks",
        "quantization_pertensor_hook",
        gpu_only="torch's quantization hooks need NCCL; strategy 'bagua' has bytegrad, 8 bits on any device",
    ),
    "quantization_perchannel": Named(
        "quantization_hooks",
        "quantization_perchannel_hook",
        gpu_only="torch's quantization hooks need NCCL; strategy 'bagua' has bytegrad, 8 bits on any device",
    ),
    "post_localSGD": Named("post_localSGD_hook", "post_localSGD_hook", "post_localSGD"),
}
SPELLINGS = {
    "fp16": "fp16_compress",
    "bf16": "bf16_compress",
    "power_sgd": "powerSGD",
    "batched_power_sgd": "batched_powerSGD",
    "post_local_sgd": "post_localSGD",
    "quantize_per_tensor": "quantization_pertensor",
    "quantize_per_channel": "quantization_perchannel",
}


def named(name: str) -> str:
    """The full name for one of its spellings, torch's function names included. Raises ConfigurationError."""
    short = name.removesuffix("_hook")
    full = SPELLINGS.get(short.lower(), short)
    if full not in HOOKS:
        raise unknown_name("communication hook", name, HOOKS)
    return full


def check(hook: Any, wrapper: Any, kind: str) -> None:
    """Raise ConfigurationError for unknown names, and for hooks that devices of this `kind` cannot run."""
    if isinstance(hook, str):
        reason = HOOKS[named(hook)].gpu_only
        if reason is not None and kind == "cpu":
            raise ConfigurationError(f"ddp_comm_hook={hook!r} does not run on the CPU: {reason}")
        if named(hook) == "batched_powerSGD" and not _orthogonalizes_matrices():
            raise ConfigurationError(
                f"ddp_comm_hook={hook!r} fails an assertion in this version of torch; use 'powerSGD'"
            )
    if isinstance(wrapper, str):
        _wrapper(wrapper)


def _orthogonalizes_matrices() -> bool:
    """torch 2.13's batched hook gives a matrix to a function that takes only stacks of them."""
    import torch

    try:
        _torch_module("powerSGD_hook")._orthogonalize(torch.ones(2, 1))
    except AssertionError:
        return False
    return True


def resolve(hook: Any, state: Any, wrapper: Any, options: dict[str, Any]) -> tuple[Any, Hook]:
    """(state, function) for DistributedDataParallel.register_comm_hook. `hook`: a name, or a function with its own
    `state`; `options`: for the state that a name needs.
    """
    function: Hook = hook
    if isinstance(hook, str):
        entry = HOOKS[named(hook)]
        function = getattr(_torch_module(entry.module), entry.function)
        state = state if state is not None else _state(entry.state, options)
    if wrapper is not None:
        function = (_wrapper(wrapper) if isinstance(wrapper, str) else wrapper)(function)
    return state, function


def rank_zeros(group: Any, gradients: Any) -> Any:
    """Rank 0's `gradients` of a bucket, where all have computed the whole batch: a mean of three rounds. A future."""
    import torch.distributed as dist

    sent = dist.broadcast(gradients, 0, group=group, async_op=True)
    return sent.get_future().then(lambda done: done.value()[0])


def _torch_module(name: str) -> Any:
    import importlib

    return importlib.import_module(f"torch.distributed.algorithms.ddp_comm_hooks.{name}")


def _wrapper(name: str) -> Callable[[Hook], Hook]:
    full = WRAPPERS.get(SPELLINGS.get(name.removesuffix("_wrapper"), name.removesuffix("_wrapper")))
    if full is None:
        raise unknown_name("wrapper of communication hooks", name, WRAPPERS)
    return getattr(_torch_module("default_hooks"), full)


def _state(kind: str, options: dict[str, Any]) -> Any:
    import torch.distributed as dist

    if kind == "powerSGD":
        return _torch_module("powerSGD_hook").PowerSGDState(
            None, **{"matrix_approximation_rank": 1, "start_powerSGD_iter": 10, **options}
        )
    if kind == "post_localSGD":
        state = _torch_module("post_localSGD_hook").PostLocalSGDState
        start = options.get("start_localSGD_iter", 100)
        alone, _ = dist.new_subgroups(group_size=1)
        return state(None, options.get("subgroup") or alone, start, options.get("post_local_gradient_allreduce", False))
    return dist.group.WORLD
