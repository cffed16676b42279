"""Bagua's algorithms by name: how much ranks tell each other, and when.

Gan et al., BAGUA: Scaling up Distributed Learning with System Relaxations, VLDB 2021. The package itself, where it is
installed, has NCCL only and runs on GPUs; everywhere else the algorithms run on torch's collectives (algorithms/).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch

from ..collectives import broadcast_tensors
from ..errors import ConfigurationError
from .algorithms import choose
from .averaging import GradientAverager, average_weights
from .ddp import DDPStrategy, TrainingStep
from .needs import installed
from .registry import register

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel

    from ..handle import Runtime
    from ..module import Module


@register("bagua")
class BaguaStrategy(DDPStrategy):
    """`algorithm`: a name in algorithms.HOMES; `options`: those of the algorithm; `flatten`: the package's, for its
    buckets. Raises ConfigurationError for names that there are not.
    """

    refuses = {  # noqa: RUF012
        "16": "loss scaling would be averaged with the gradients; use bf16",
        "kept": "its algorithms work on a Trainer's optimizers; use ddp",
    }

    def __init__(self, algorithm: str = "gradient_allreduce", flatten: bool = True, **options: Any):
        super().__init__()
        self.algorithm_name, self.algorithm_options, self.flatten = algorithm, options, flatten
        self.algorithm = choose(algorithm, options)
        self.options = {"algorithm": algorithm, **options}
        self._package: Any = None  # bagua's wrapper, where the package does it

    def attach(self, runtime: Runtime) -> None:
        super().attach(runtime)
        self.algorithm.check(runtime.settings.world_size)
        if self.algorithm_options.get("hierarchical") and not self.package_there:
            raise ConfigurationError("hierarchical=True is the bagua package's; here the ranks of a node are no group")

    def check(self, features: Mapping[str, bool]) -> None:
        super().check(features)
        if features.get("sparse") and self.algorithm.dense:
            raise ConfigurationError(
                f"algorithm {self.algorithm_name!r} cannot do sparse gradients: use 'gradient_allreduce', or make the "
                "embedding with sparse=False"
            )

    @property
    def package_there(self) -> bool:
        return self.runtime.settings.kind == "cuda" and installed("bagua")

    # -- setting up a run -----------------------------------------------------------------------------------------

    def setup_optimizers(self, module: Module, optimizers: list[Any]) -> list[Any]:
        self.by_package = self.package_there and module.automatic_optimization
        if self.by_package:
            from ..engines import bagua

            return bagua.optimizers_for(self.algorithm_name, self.algorithm_options, optimizers)
        broadcast_tensors([*module.parameters(), *module.buffers()])
        return self.algorithm.start(module, optimizers)

    def wrap(self, module: Module) -> Callable[..., Any]:
        if self.by_package:
            from ..engines import bagua

            forward = TrainingStep(module, self.step(module, "training_step"))
            used = self.trainer.optimizers if self.trainer is not None else []
            self._package = bagua.wrapped(forward, used, self.algorithm_name, self.algorithm_options, self.flatten)
            return self._package
        return super().wrap(module)

    def _with_hook(self, wrapped: DistributedDataParallel) -> DistributedDataParallel:
        wrapped.register_comm_hook(self.algorithm, reduce_bucket)
        return wrapped

    # -- every step -----------------------------------------------------------------------------------------------

    def after_backward(self) -> None:
        if self._package is None:
            super().after_backward()

    def no_sync(self) -> AbstractContextManager:
        return self._package.no_sync() if self._package is not None else super().no_sync()

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
        if self._package is None:
            self.algorithm.finish()
        if self.algorithm.local_weights:
            average_weights(module)
        told = self.algorithm.told()
        if told and self.runtime.is_global_zero:
            print(told, file=sys.stderr)

    def teardown(self) -> None:
        super().teardown()
        self.algorithm.stop()
        if self._package is not None:
            from ..engines import bagua

            bagua.stop(self._package, self.algorithm_name)
            self._package = None


def reduce_bucket(algorithm, bucket):  # torch compares annotations with types, not with their names
    """A communication hook: DDP's bucket of gradients, as the algorithm leaves it; a future."""
    flat = bucket.buffer()
    algorithm.reduce(flat)
    done: torch.futures.Future = torch.futures.Future()
    done.set_result(flat)
    return done
