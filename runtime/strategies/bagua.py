"""Bagua's algorithms by name: how much ranks tell each other, and when.

Gan et al., BAGUA: Scaling up Distributed Learning with System Relaxations, VLDB 2021. The package itself, where it is
installed, has NCCL only and runs on GPUs; everywhere else the algorithms run on torch's collectives (algorithms/).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .algorithms import HOMES, choose
from .averaging import GradientAverager, average_weights
from .ddp import DDPStrategy, TrainingStep
from .needs import installed
from .registry import register

if TYPE_CHECKING:
    from ..handle import Runtime
    from ..module import Module


@register("bagua")
class BaguaStrategy(DDPStrategy):
    """`algorithm`: a name in algorithms.HOMES; `options`: those of the algorithm (and DDPStrategy's by name).

    `flatten` is Bagua's and decides nothing here.
    """

    refuses = {  # noqa: RUF012
        "16": "loss scaling would be averaged with the gradients; use bf16",
        "kept": "its algorithms work on a Trainer's optimizers; use ddp",
    }

    def __init__(self, algorithm: str = "gradient_allreduce", flatten: bool = True, **options: Any):
        super().__init__()
        self.algorithm_name, self.algorithm_options = algorithm, options
        self.algorithm = choose(algorithm, options)
        self.options = {"algorithm": algorithm, **options}

    def attach(self, runtime: Runtime) -> None:
        super().attach(runtime)
        self.algorithm.check(runtime.world_size)

    @property
    def real(self) -> bool:
        """Does the bagua package do it?"""
        return self.runtime.settings.kind == "cuda" and installed("bagua")

    # -- setting up a run -----------------------------------------------------------------------------------------

    def setup_optimizers(self, module: Module, optimizers: list[Any]) -> list[Any]:
        if self.real:
            return optimizers
        from ..collectives import broadcast_tensors

        broadcast_tensors([*module.parameters(), *module.buffers()])
        return self.algorithm.start(module, optimizers)

    def wrap(self, module: Module) -> Callable[..., Any]:
        if self.real:
            return self._wrap_in_bagua(module)
        step = super().wrap(module)
        assert self._wrapped is not None
        self._wrapped.register_comm_hook(self.algorithm, reduce_bucket)
        return step

    def _wrap_in_bagua(self, module: Module) -> Callable[..., Any]:
        import bagua.torch_api as api
        from bagua.torch_api.algorithms import Algorithm
        from bagua.torch_api.data_parallel.distributed import DistributedDataParallel_V1_9_0 as Wrapper

        api.init_process_group()
        assert self.trainer is not None
        algorithm = Algorithm.init(self.algorithm_name, **self.algorithm_options)
        step = TrainingStep(module, self.step(module, "training_step"), anchored=False)
        return Wrapper(step, optimizers=self.trainer.optimizers, algorithm=algorithm)

    @property
    def averager(self) -> GradientAverager:
        """Manual optimization: what a backward gave goes through the algorithm."""
        if self._averager is None:
            self._averager = GradientAverager(self.runtime.world_size, self.runtime.group, self.algorithm.reduce)
        return self._averager

    # -- evaluation, checkpoints and the end: ranks may have different weights ----------------------------------------

    @property
    def _local(self) -> bool:
        return self.algorithm.local_weights and self.trainer is not None and self.trainer.state == "fit"

    def finish(self, module: Module) -> None:
        if self.real:
            return
        self.algorithm.finish()
        if self.algorithm.local_weights:
            average_weights(module)
        told = self.algorithm.told()
        if told and self.runtime.is_global_zero:
            print(told, file=sys.stderr)

    def teardown(self) -> None:
        super().teardown()
        self.algorithm.stop()


def reduce_bucket(algorithm, bucket):  # torch compares annotations with types, not with their names
    """A communication hook: DDP's bucket of gradients, as the algorithm leaves it; a future."""
    flat = bucket.buffer()
    algorithm.reduce(flat)
    done: torch.futures.Future = torch.futures.Future()
    done.set_result(flat)
    return done


ALGORITHMS = tuple(HOMES)
