"""One process a device, gradients averaged while backward runs (torch's DistributedDataParallel).

Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, VLDB 2020.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..errors import ConfigurationError, unknown_name
from . import comm_hooks
from .averaging import GradientAverager, average_weights, averaged
from .base import Strategy
from .left_out import LeftOut, has_functions, leaves_of, sparse_parameters
from .registry import register

if TYPE_CHECKING:
    from ..handle import Runtime
    from ..module import Module
    from ..settings import Settings

# What may be passed on to DistributedDataParallel as it is.
LOCAL = "post_localSGD"
DDP_OPTIONS = ("bucket_cap_mb", "broadcast_buffers", "gradient_as_bucket_view", "check_reduction")


class TrainingStep(torch.nn.Module):
    """`training_step`, and its `_step_end`, as a forward, which is where DistributedDataParallel looks.

    `anchor` is a parameter that no step uses: it lets DDP take modules whose parameters are all frozen, and spares the
    warning that looking for unused parameters found none. `left_out` does without. `may_skip`: the strategy's `skip`
    does what is to do where the step gives None.
    """

    def __init__(
        self,
        module: Module,
        step: Callable[..., Any],
        anchored: bool = False,
        left_out: LeftOut | None = None,
        may_skip: bool = False,
    ):
        super().__init__()
        self.step, self.loop = step, module.trainer.fit_loop
        self.left_out, self.may_skip = left_out, may_skip
        if anchored:  # first: DDP's buckets begin with what comes last
            self.anchor = torch.nn.Parameter(torch.zeros((), device=module.device))
        self.module = module

    def forward(self, *args: Any) -> Any:
        outputs = self.step(*args)
        if outputs is not None or self.may_skip:
            return outputs
        self.loop.absent = True
        # a rank that skips its batch takes part all the same, with gradients of zero
        if self.left_out is not None:
            nothing = torch.zeros((), device=self.module.device, requires_grad=True)
        elif hasattr(self, "anchor"):
            nothing = self.anchor
        else:
            raise RuntimeError("training_step gave None: on several processes this needs find_unused_parameters=True")
        return nothing * 0.0 + self.loop.norms.absent()

    def train(self, mode: bool = True) -> TrainingStep:
        """Which submodules train is the user's affair; DDP calls this on the whole tree."""
        return self


@register("ddp")
class DDPStrategy(Strategy):
    """Automatic optimization runs through DDP; kept loops and manual optimization through GradientAverager.

    `find_unused_parameters`: by default a step may leave parameters out, which is found after its backward; True: by
    torch's search before it; False: a step that leaves some out is an error that names them. `static_graph`: every step
    uses the same ones, so the first tells. `bucket_cap_mb`: MiB of gradients a message. `ddp_comm_hook`: a name in
    comm_hooks.HOOKS or a function, with `ddp_comm_state`, `ddp_comm_wrapper` ("fp16_compress") and, for names,
    `ddp_comm_options` (arguments of its state). `model_averaging_period`: optimizer steps between two averages of the
    model under post_localSGD. `process_group_backend` and `timeout` (seconds or a timedelta): the process group's.
    Raises ConfigurationError for names that there are not.
    """

    needs_processes = draws_alike = True

    def __init__(
        self,
        find_unused_parameters: bool | None = None,
        static_graph: bool = False,
        ddp_comm_hook: Any = None,
        ddp_comm_state: Any = None,
        ddp_comm_wrapper: Any = None,
        ddp_comm_options: dict[str, Any] | None = None,
        model_averaging_period: int | None = None,
        process_group_backend: str | None = None,
        timeout: float | timedelta | None = None,
        **ddp: Any,
    ):
        for name in ddp:
            if name not in DDP_OPTIONS:
                raise unknown_name(f"argument of {type(self).__name__}", name, [*DDP_OPTIONS, *ARGUMENTS])
        if (ddp.get("bucket_cap_mb") or 0) < 0:
            raise ConfigurationError(f"bucket_cap_mb={ddp['bucket_cap_mb']}: MiB of gradients a message, torch's is 25")
        self.find_unused = not static_graph if find_unused_parameters is None else find_unused_parameters
        self.static_graph = static_graph
        self.ddp = ddp
        self.hook, self.hook_state, self.hook_wrapper = ddp_comm_hook, ddp_comm_state, ddp_comm_wrapper
        self.hook_options = ddp_comm_options or {}
        self.averaging_period = model_averaging_period
        self.backend, self.timeout = process_group_backend, timeout
        if isinstance(ddp_comm_hook, str):
            comm_hooks.named(ddp_comm_hook)
        self.searches = bool(find_unused_parameters)  # torch's own search was asked for
        self._left_out: LeftOut | None = None
        self._wrapped: DistributedDataParallel | None = None
        self._averager: GradientAverager | None = None
        self._checked = False  # whether a backward has shown that every parameter is used
        self._on_trial = False  # whether a backward is still to show how far DDP sees
        self._plain_step: Any = None
        self._functions = False  # whether the graph on trial has functions of Python's
        self._manual = False
        self._seen: set[int] = set()  # the leaves that the graphs of losses have shown
        self._frozen: list[torch.nn.Parameter] = []  # when DDP was made, so that it does not know them

    def attach(self, runtime: Runtime) -> None:
        super().attach(runtime)
        comm_hooks.check(self.hook, self.hook_wrapper, runtime.settings.kind)

    def check(self, features: Mapping[str, bool]) -> None:
        super().check(features)
        if self.hook is not None and (features.get("manual") or features.get("kept")):
            raise ConfigurationError(
                "ddp_comm_hook works inside of DistributedDataParallel, which manual optimization and kept loops do "
                "without: leave the hook out, or let the Trainer optimize"
            )

    def init_group(self, settings: Settings) -> None:
        from ..launch.connect import init_group

        limit = self.timeout
        seconds = timedelta(seconds=limit) if isinstance(limit, (int, float)) else limit
        init_group(settings, self.backend, seconds)

    # -- setting up a run -----------------------------------------------------------------------------------------

    def setup_optimizers(self, module: Module, optimizers: list[Any]) -> list[Any]:
        if not isinstance(self.hook, str) or comm_hooks.named(self.hook) != LOCAL:
            return optimizers
        from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
        from torch.distributed.optim import PostLocalSGDOptimizer

        start = self.hook_options.get("start_localSGD_iter", 100)
        period = self.averaging_period or 4
        return [PostLocalSGDOptimizer(o, PeriodicModelAverager(period, start)) for o in optimizers]

    def wrap(self, module: Module) -> Callable[..., Any]:
        step = self.step(module, "training_step")
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        if not self.find_unused and not trained:
            return step
        if self.find_unused and trained and self._can_look(module):
            self._left_out = LeftOut(trained, sparse_parameters(module))
        anchored = self.find_unused and self._left_out is None
        self._wrapped = self._with_hook(self.wrapper(TrainingStep(module, step, anchored, self._left_out)))
        self._frozen = [p for p in module.parameters() if not p.requires_grad]
        self._checked = self.find_unused or self.static_graph
        self._on_trial = self.find_unused and self.hook is None and not self.searches
        if self._on_trial:
            self.averager.watch(module.parameters())
            self._plain_step = self._wrapped.module
            return self._forward_on_trial
        return self._wrapped if self._checked else self._forward

    def _with_hook(self, wrapped: DistributedDataParallel) -> DistributedDataParallel:
        if self.hook is not None:
            state, function = comm_hooks.resolve(self.hook, self.hook_state, self.hook_wrapper, self.hook_options)
            wrapped.register_comm_hook(state, function)
        elif self.trainer is not None and self.trainer.whole:
            hook = lambda group, bucket: comm_hooks.rank_zeros(group, bucket.buffer())  # noqa: E731  torch reads types
            wrapped.register_comm_hook(dist.group.WORLD, hook)
        return wrapped

    def _can_look(self, module: Module) -> bool:
        """Can LeftOut do what the search for unused parameters does? It has to see each backward, on plain DDP."""
        own = type(self).backward is Strategy.backward and type(self).wrapper is DDPStrategy.wrapper
        plain = own and not self.searches and self.hook is None and not self.ddp
        one = self.trainer is not None and len(self.trainer.optimizers) < 2
        ignored = hasattr(module, "_ddp_params_and_buffers_to_ignore")
        return plain and one and not ignored

    def wrapper(self, step: torch.nn.Module) -> DistributedDataParallel:
        """`step` in DistributedDataParallel; the guide's configure_ddp."""
        device = self.runtime.device
        return DistributedDataParallel(
            step,
            device_ids=None if device.type == "cpu" else [device],
            find_unused_parameters=self.find_unused and self._left_out is None,
            static_graph=self.static_graph,
            **self.ddp,
        )

    def follow(self, module: torch.nn.Module) -> None:
        self.averager.follow(module)
        self._manual = self.trainer is not None
        self.averager.expects = not self._manual

    @property
    def averager(self) -> GradientAverager:
        if self._averager is None:
            self._averager = GradientAverager(self.runtime.world_size, self.runtime.group)
        return self._averager

    # -- every step -----------------------------------------------------------------------------------------------

    def _forward_on_trial(self, *args: Any) -> Any:
        """Until a backward has shown that DDP's search for unused parameters finds what is used. It does not see what
        a backward inside of the backward uses (FairScale's checkpoint_wrapper, torch's reentrant checkpoints); then
        gradients are averaged after backward.
        """
        if self._wrapped is None:
            return self._plain_step(*args)
        if not self._on_trial:
            return self._wrapped(*args)
        with self._wrapped.no_sync():
            return self._wrapped(*args)

    def _forward(self, *args: Any) -> Any:
        """Without a search for unused parameters: torch's numbers of those that are, turned into names."""
        assert self._wrapped is not None
        try:
            return self._wrapped(*args)
        except RuntimeError as error:
            numbers = re.search(r"did not receive grad for rank \d+: ([\d ]+)", str(error))
            if numbers is None:
                raise
            module = self._wrapped.module.module
            trained = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
            raise unused(trained[int(number)] for number in numbers[1].split()) from None

    def before_backward(self, loss: torch.Tensor) -> None:
        if self._averager is not None:
            self._averager.expect()
        if self._on_trial:
            self._seen |= leaves_of(loss.grad_fn)
            self._functions = has_functions(loss.grad_fn)
        elif self._left_out is not None and self._syncs:
            self._left_out.note(loss)

    def after_backward(self) -> None:
        if self._left_out is not None and self._syncs and not self._on_trial:
            self._left_out.bring()
        if self._wrapped is None:
            self.averager.average()
            self.averager.expects = not self._manual
        elif self._syncs:
            if self._on_trial:
                self._end_trial()
            elif not self._checked:
                self._check_all_used()
            self._average_thawed()

    @property
    def _syncs(self) -> bool:
        """Does DDP bring the gradients of this batch together?"""
        return self._wrapped is not None and self._wrapped.require_backward_grad_sync

    def _end_trial(self) -> None:
        """The first backward, or a later one where that has used nothing: all ranks go the same way."""
        used = {id(p) for p in self.averager.touched}
        answers = torch.tensor([bool(used), not used <= self._seen, self._functions], dtype=torch.uint8)
        dist.all_reduce(answers, dist.ReduceOp.MAX, group=self.runtime.group)
        any_used, hidden, functions = answers.tolist()
        self.averager.average()
        self._on_trial = not any_used
        if hidden:
            self._wrapped = None
        elif any_used:
            self._release_averager()
            if functions and self._left_out is not None:
                self._search()

    def _search(self) -> None:
        """DDP with torch's search for unused parameters in the place of one without."""
        self._left_out, self._wrapped = None, None
        step = TrainingStep(self._plain_step.module, self._plain_step.step, anchored=True)
        self._wrapped = self._with_hook(self.wrapper(step))

    def _check_all_used(self) -> None:
        assert self._wrapped is not None
        self._checked = True
        parameters = self._wrapped.module.module.named_parameters()
        missing = [name for name, p in parameters if p.requires_grad and p.grad is None]
        if missing:
            raise unused(missing)

    def _average_thawed(self) -> None:
        """Parameters that were frozen when DDP was made, and are not any more."""
        thawed = [p for p in self._frozen if p.requires_grad]
        if thawed:
            self.averager.watch(thawed)
            self._frozen = [p for p in self._frozen if not p.requires_grad]
        if self._averager is not None and self._wrapped is not None and not self._on_trial:
            self._averager.average()

    def check_step(self, optimizer: Any) -> None:
        if self._averager is not None:
            self._averager.check()

    def begin_batch(self, number: int | None) -> None:
        self.averager.begin_batch(number)

    # -- evaluation and checkpoints: under post_localSGD ranks have different weights ----------------------------------

    def evaluation(self, module: Module) -> AbstractContextManager:
        return averaged(module) if self._local else nullcontext()

    def state_dict(self, module: Module) -> dict[str, Any]:
        with self.evaluation(module):
            state = module.state_dict()
            return {name: value.clone() for name, value in state.items()} if self._local else state

    @property
    def _local(self) -> bool:
        """Is each rank's model its own between two averages? Only while a fit runs."""
        return self._wrapped is not None and isinstance(self.hook, str) and comm_hooks.named(self.hook) == LOCAL

    def no_sync(self) -> AbstractContextManager:
        if self._wrapped is not None:
            return self._wrapped.no_sync()
        return self._averager.paused() if self._averager is not None else nullcontext()

    def finish(self, module: Module) -> None:
        if self._local:
            average_weights(module)

    def teardown(self) -> None:
        if self._left_out is not None:
            self._left_out.release()
        self._wrapped, self._plain_step, self._left_out = None, None, None
        self._on_trial, self._frozen = False, []
        self._seen.clear()
        self._release_averager()

    def _release_averager(self) -> None:
        if self._averager is not None:
            self._averager.release()
            self._averager = None


ARGUMENTS = (
    "find_unused_parameters",
    "static_graph",
    "ddp_comm_hook",
    "ddp_comm_state",
    "ddp_comm_wrapper",
    "ddp_comm_options",
    "model_averaging_period",
    "process_group_backend",
    "timeout",
)


def unused(names: Any) -> RuntimeError:
    """The error for parameters that a step left out."""
    listed = ", ".join(names)
    return RuntimeError(
        f"training_step did not use these parameters: {listed}. Use them all, or give them requires_grad=False, or use "
        "DDPStrategy(find_unused_parameters=True)"
    )
