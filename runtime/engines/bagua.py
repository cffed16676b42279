"""The bagua package (GPUs and NCCL only): its process group, its wrapper and its Adam."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import ConfigurationError


def optimizers_for(algorithm: str, options: dict[str, Any], optimizers: list[Any]) -> list[Any]:
    """Bagua's own Adam in the place of torch's, which its qadam needs; others as they are."""
    if algorithm != "qadam":
        return optimizers
    from bagua.torch_api.algorithms.q_adam import QAdamOptimizer

    if len(optimizers) != 1 or not isinstance(optimizers[0], torch.optim.Adam):
        raise ConfigurationError("algorithm 'qadam' is for one optimizer: use torch.optim.Adam or AdamW")
    (adam,) = optimizers
    names = ("lr", "betas", "eps", "weight_decay")
    return [QAdamOptimizer(adam.param_groups, **{name: adam.defaults[name] for name in names}, **options)]


def wrapped(
    step: torch.nn.Module, optimizers: list[Any], algorithm: str, options: dict[str, Any], flatten: bool
) -> torch.nn.Module:
    """`step` in Bagua's DistributedDataParallel, its background communication under way."""
    import bagua.torch_api as api
    from bagua.torch_api.algorithms import Algorithm
    from bagua.torch_api.communication import is_initialized
    from bagua.torch_api.data_parallel.distributed import DistributedDataParallel_V1_9_0 as Wrapper

    if not is_initialized():
        api.init_process_group()
    given = {"q_adam_optimizer": optimizers[0]} if algorithm == "qadam" else options
    made = Wrapper(
        step, optimizers=optimizers, algorithm=Algorithm.init(algorithm, **given), gradient_as_bucket_view=flatten
    )
    if algorithm == "async":
        made.bagua_algorithm.resume(made)
    return made


def stop(wrapper: Any, algorithm: str) -> None:
    """End the background communication."""
    if algorithm == "async":
        wrapper.bagua_algorithm.abort(wrapper)
