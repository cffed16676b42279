"""DeepSpeed's ZeRO: optimizer state (stage 1), gradients (2) and parameters (3) divided among the processes.

Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, SC 2020; Ren et al.,
ZeRO-Offload, USENIX ATC 2021. A parameter that no process has used counts as one with a gradient of zero (weight decay
and momentum still move it), because DeepSpeed steps all of a partition.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.distributed as dist

from ..collectives import broadcast_tensors
from ..errors import ConfigurationError
from ..hooks import WITH_GRADIENTS, Hooks, overridden
from ..stopping import speaks_of
from .averaging import GradientAverager, refuse_own, zero_of
from .base import Strategy
from .deepspeed_config import check_stage, completed, read_config
from .needs import Package
from .parts import Parts, make_contiguous
from .registry import register
from .when_asked import WhenAsked

if TYPE_CHECKING:
    from ..module import Module
    from ..trainer import Trainer

CLIPPING = ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_")  # torch's
VARIABLES = ("PTMIGRATE_DEEPSPEED_CONFIG_PATH", "PL_DEEPSPEED_CONFIG_PATH")
INSTALL = "DS_BUILD_OPS=0 pip install --no-build-isolation deepspeed (and ninja), or ptmigrate[deepspeed]"


@register("deepspeed")
class DeepSpeedStrategy(Strategy):
    """`config`: a dict of DeepSpeed's or the path of a JSON file (else the one in PL_DEEPSPEED_CONFIG_PATH); the other
    arguments then do not count. Without one: ZeRO `stage` 0 to 3, `offload_optimizer` and `offload_parameters` to the
    CPU, the bucket sizes in numbers of elements (DeepSpeed's buffers take 4.5 times the reduce bucket).
    """

    works_alone = True
    divides_states = replaces_optimizers = True
    needs_processes = True
    packages = (Package("deepspeed", INSTALL),)
    refuses: ClassVar[Mapping[str, str]] = {
        "optimizers": "its engine takes one; use 'ddp_sharded'",
        "closure": "its engine evaluates the loss once a step; use 'ddp'",
        "shapes": "its partitions are cut out of one long row of numbers; use 'ddp_sharded'",
        "sparse": "ZeRO reduces dense ones; use 'ddp', or make the embedding with sparse=False",
        "kept": "its engine has to make backward and step; use 'ddp'",
        "clip_value": "its engine clips by norm; use gradient_clip_algorithm='norm'",
    }

    def __init__(
        self,
        config: Any = None,
        *,
        stage: int = 2,
        offload_optimizer: bool = False,
        offload_parameters: bool = False,
        cpu_offload: bool = False,
        allgather_bucket_size: float = 2e8,
        reduce_bucket_size: float = 2e8,
        contiguous_gradients: bool = True,
        overlap_comm: bool | None = None,
        zero_allow_untested_optimizer: bool = True,
    ):
        check_stage(stage)
        zero: dict[str, Any] = {
            "stage": stage,
            "allgather_bucket_size": int(allgather_bucket_size),
            "reduce_bucket_size": int(reduce_bucket_size),
            "contiguous_gradients": contiguous_gradients,
        }
        if overlap_comm is not None:
            zero["overlap_comm"] = overlap_comm
        if offload_optimizer or cpu_offload:
            zero["offload_optimizer"] = {"device": "cpu"}
        if offload_parameters:
            zero["offload_param"] = {"device": "cpu"}
        made: dict[str, Any] = {
            "zero_optimization": zero,
            "zero_allow_untested_optimizer": zero_allow_untested_optimizer,
        }
        given = config if config is not None else next((os.environ[n] for n in VARIABLES if os.environ.get(n)), None)
        self.config: dict[str, Any] = made if given is None else read_config(given)
        self.options = {"config": given} if given is not None else {"stage": stage}
        self.engine: Any = None
        self.optimizer: Any = None
        self.manual = False
        self.frozen: list[torch.nn.Parameter] = []  # when training started
        self._together: Any = None  # stage 3: tells whether ranks use the same layers
        self._ranks: Any = None  # has nothing to average, and tells ranks apart that are elsewhere
        self._parts: Parts | None = None
        self._when_asked: WhenAsked | None = None  # stage 3
        self._handed_out: Any = None  # stage 3
        self._in_backward: Callable[[], AbstractContextManager] = nullcontext
        self._accumulating = False
        self._gathered = False  # stage 3: are all parameters on every rank just now?

    def check(self, features: Mapping[str, bool]) -> None:
        super().check(features)
        half = features.get("16") or self.config.get("fp16", {}).get("enabled") is True
        if half and features.get("cpu"):
            raise ConfigurationError(
                "strategy 'deepspeed' cannot do precision 16 on the CPU: DeepSpeed's CPU accelerator has no fp16; "
                "use precision='bf16' or 32"
            )
        if features.get("64") and self.stage == 3:
            raise ConfigurationError("strategy 'deepspeed' cannot do precision 64 in stage 3; use stage 2")
        if features.get("manual"):
            self._check_manual()
        name = self.config.get("optimizer", {}).get("type")
        if name is not None:
            self._check_optimizer(name)

    def check_run(self, trainer: Trainer, module: Module, stage: str, resumes: bool) -> None:
        super().check_run(trainer, module, stage, resumes)
        hook = next((name for name in WITH_GRADIENTS if overridden(module, name, Hooks)), None)
        if stage == "fit" and not module.automatic_optimization and hook is not None:
            raise ConfigurationError(
                f"strategy 'deepspeed' cannot call {hook} under manual optimization: its gradients come about in the "
                "step; use 'fsdp' or 'ddp_sharded'"
            )
        if stage == "fit" and module.automatic_optimization:
            self._check_accumulation(trainer, module)
        number = next((name for name, p in module.named_parameters() if p.ndim == 0), None)
        if stage == "fit" and self.stage == 3 and number is not None:
            raise ConfigurationError(
                f"strategy 'deepspeed' cannot divide {number!r} in stage 3, a parameter of shape (): give it shape "
                "(1,), or use stage 2"
            )

    def _check_accumulation(self, trainer: Trainer, module: Module) -> None:
        """Of gradients that are accumulated, stages 1 and 2 hand out those of the last batch alone."""
        if self.stage not in (1, 2) or set(trainer.accumulation_table.values()) == {1}:
            return
        from ..module import Module as Base

        owners = [(module, Hooks), *((callback, Hooks) for callback in trainer.callbacks)]
        names = [name for owner, base in owners for name in WITH_GRADIENTS if overridden(owner, name, base)]
        names += ["configure_gradient_clipping"] * overridden(module, "configure_gradient_clipping", Base)
        if names:
            raise ConfigurationError(
                f"strategy 'deepspeed' cannot call {names[0]} in stage {self.stage} where gradients are accumulated: "
                "it would see those of the last batch alone; use 'deepspeed_stage_3', 'fsdp' or 'ddp_sharded'"
            )

    @property
    def stage(self) -> int:
        return int(self.config.get("zero_optimization", {}).get("stage", 0))

    def _check_manual(self) -> None:
        from ..engines import deepspeed

        if not deepspeed.steps_when_told():
            raise ConfigurationError(
                f"strategy 'deepspeed' cannot do manual optimization: DeepSpeed {deepspeed.version()} steps by itself "
                "after a fixed number of backward passes; install deepspeed>=0.19, or use 'ddp_sharded'"
            )

    def _check_optimizer(self, name: str) -> None:
        """Optimizers come and go with DeepSpeed's versions."""
        from ..engines import deepspeed

        there = deepspeed.optimizer_names(self.runtime.on_cpu)
        if name.lower() not in there and not hasattr(torch.optim, name):
            raise ConfigurationError(
                f"optimizer {name!r} is not in DeepSpeed {deepspeed.version()}, the one that is installed; it has "
                f"{', '.join(there)} and those of torch.optim"
            )

    # -- setting up ------------------------------------------------------------------------------------------------

    def attach(self, runtime: Any) -> None:
        super().attach(runtime)
        if runtime.on_cpu:
            os.environ.setdefault("DS_ACCELERATOR", "cpu")

    def setup_optimizers(self, module: Module, optimizers: list[Any]) -> list[Any]:
        """Everything is handed to DeepSpeed's engine. An optimizer in its config takes the place of the module's."""
        from ..engines import deepspeed, deepspeed_whole

        if not module.automatic_optimization and speaks_of(CLIPPING, module):
            raise ConfigurationError(
                "strategy 'deepspeed' cannot do torch's clip_grad_norm_ and clip_grad_value_ under manual "
                "optimization, since gradients come about in the step: call self.clip_gradients(optimizer, ...)"
            )
        if self.runtime.world_size > 1:
            broadcast_tensors([*module.parameters(), *module.buffers()])
        if self.stage == 3:
            make_contiguous(module)
        own = "optimizer" in self.config
        if not own and not optimizers:
            raise ConfigurationError(
                "strategy 'deepspeed' needs an optimizer: from configure_optimizers, or in its config"
            )
        groups = deepspeed.groups_of(module, None if own else optimizers[0])
        loaded = {} if own else deepspeed.taken_state(optimizers[0])
        self.manual = not module.automatic_optimization
        self.frozen = [p for p in module.parameters() if not p.requires_grad]
        self.engine = deepspeed.engine(
            module, None if own else optimizers[0], completed(self.config, self.manual, self.runtime)
        )
        self.optimizer = deepspeed.Stepping(self.engine, groups)
        if loaded:
            self.optimizer.load_state_dict(loaded)
        if self.manual and self.runtime.world_size > 1:
            self._ranks = GradientAverager(self.runtime.world_size, self.runtime.group)
            self.optimizer.register_step_pre_hook(lambda *_: self._ranks.meet(0))
        if self.stage == 3:
            self._in_backward = deepspeed_whole.backward_of_parts
            self._parts = Parts(module, deepspeed_whole.is_part, "DeepSpeed's stage 3")
            self._when_asked = WhenAsked(module, self._whole)
        if self.runtime.world_size > 1:
            meet = partial(self._ranks.meet, 1) if self.manual else None
            self._together = deepspeed.keep_together(self.engine, self.runtime.group, meet)
        return [self.optimizer]

    def step(self, module: Module, name: str) -> Callable[..., Any]:
        step = super().step(module, name)
        if name != "training_step" or self.stage < 3:
            return step
        from ..engines import deepspeed_whole

        self._handed_out = deepspeed_whole.HandedOut(module, self._together)
        handed = self._handed_out.around(step)
        if not self.manual:
            return handed

        def gathering(*args: Any) -> Any:
            with deepspeed_whole.in_step(self.engine):
                return handed(*args)

        return gathering

    def around_own_step(self, step: Callable[..., Any]) -> Callable[..., Any]:
        return self._handed_out.around(step) if self._handed_out is not None else step

    def wrap(self, module: Module) -> Callable[..., Any]:
        if "optimizer" in self.config and module.trainer.lr_scheduler_configs:
            raise ConfigurationError(
                "DeepSpeed's config has an optimizer, which schedulers from configure_optimizers cannot reach; "
                "give a scheduler in the config, or take the optimizer out of it"
            )
        step, root, loop = self.step(module, "training_step"), self.engine, module.trainer.fit_loop
        several = self.runtime.world_size > 1

        def run(*args: Any) -> Any:
            outputs = root(step, *args)
            if not several:
                self.optimizer.has_loss |= outputs is not None
                return outputs
            if self.stage == 3:
                self._check_alike(outputs is not None)
                self.optimizer.has_loss |= outputs is not None
                return outputs
            loop.absent = outputs is None
            nothing = loop.norms.absent() if outputs is None else None
            self.optimizer.has_loss |= self._anywhere(outputs is not None)
            if outputs is not None or not self.optimizer.has_loss:
                return outputs
            return root(lambda: nothing + zero_of(p for p in module.parameters()))

        return run

    def _check_alike(self, present: bool) -> None:
        """Stage 3: RuntimeError where a rank's step gives a loss, and another's gives none."""
        alone = RuntimeError(
            "training_step gave None on this rank and not on all: in stage 3 the other processes wait for this one's "
            "parts; give a loss of zero, or use stage 2"
        )
        if not self._together.at_once and not present:
            raise alone
        try:
            self._together.ask(-1, present)
        except RuntimeError:
            if present:
                raise
            raise alone from None

    def skip(self) -> None:
        """Stage 3: no rank has a loss of this batch. It may be the last of a window."""
        if self.stage == 3 and not self.manual:
            self.engine.set_gradient_accumulation_boundary(not self._accumulating)

    def _anywhere(self, here: bool) -> bool:
        """Has a rank a loss?"""
        found = torch.tensor([here], dtype=torch.uint8)
        dist.all_reduce(found, dist.ReduceOp.MAX, group=self.runtime.group)
        return bool(found.item())

    # -- every step ------------------------------------------------------------------------------------------------

    def backward(self, loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.own:
            self.before_backward(loss)
        if self.manual:
            loss = self.engine(lambda: loss)  # its forward tells it of the backward that comes
        with self._in_backward():
            self.engine.backward(loss, *args, **kwargs)
        if self.manual and self.stage == 3:
            self._step_goes_on()
        if not self.own:
            self.after_backward()

    def _step_goes_on(self) -> None:
        """The engine's forward is over, and the module's step is not."""
        from ..engines import deepspeed_whole

        deepspeed_whole.mark_forward(self.engine, True)

    def before_backward(self, loss: torch.Tensor) -> None:
        self._check_frozen()
        if not self.manual:
            self.optimizer.check_zeroed()
            self.engine.set_gradient_accumulation_boundary(not self._accumulating)
        elif self._ranks is not None:
            self._ranks.average()

    def after_backward(self) -> None:
        if self._together is not None:
            self._together.check()
        if self.manual:
            self.optimizer.waiting = self.optimizer.has_loss = True
        elif self._accumulating:
            self.engine.step()
            self.optimizer.has_left = True
        else:
            self.optimizer.is_zeroed, self.optimizer.has_left = False, True

    def check_step(self, optimizer: Any) -> None:
        if not self.optimizer.waiting:
            refuse_own()

    def begin_batch(self, number: int | None) -> None:
        if self._ranks is not None:
            self._ranks.begin_batch(number)

    def _check_frozen(self) -> None:
        if any(p.requires_grad for p in self.frozen):
            raise ConfigurationError(
                "strategy 'deepspeed' cannot train parameters that were frozen when training started: its partitions "
                "are made then; use 'ddp_sharded' or 'fsdp'"
            )

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        self._accumulating = True
        try:
            yield
        finally:
            self._accumulating = False

    def clip(self, module: Module, optimizer: Any, value: float, algorithm: str) -> None:
        if algorithm == "value":
            self.check({"clip_value": True})
        self.optimizer.largest_norm = value

    @contextmanager
    def whole_accumulation(self) -> Iterator[None]:
        """Stages 0 and 3, which add what a backward brings to what they have reduced before."""
        yield
        self.optimizer.is_zeroed = True  # the next backward may add to it

    # -- evaluation and checkpoints --------------------------------------------------------------------------------

    @contextmanager
    def evaluation(self, module: Module) -> Iterator[None]:
        if self.engine is None or self._gathered or self.engine.zero_optimization_stage() < 3:
            yield
            return
        from ..engines import deepspeed_whole

        self._gathered = True
        try:
            with deepspeed_whole.whole(self.engine):
                yield
        finally:
            self._gathered = False

    def around_hook(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def keeping_changes(*args: Any) -> Any:
            with self._whole():
                return hook(*args)

        return keeping_changes if self.stage == 3 else hook

    def around_batch_hook(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        return self._when_asked.around(hook) if self._when_asked is not None else hook

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Stage 3: what is done to parameters inside stays."""
        if self.engine is None or self._gathered:
            yield
            return
        from ..engines import deepspeed_whole

        self._gathered = True
        try:
            with deepspeed_whole.whole(self.engine, True):
                yield
        finally:
            self._gathered = False

    @contextmanager
    def gradients(self) -> Iterator[None]:
        absent = self.optimizer is None or not self.optimizer.has_loss  # no rank has had a loss since the last step
        if self.engine is None or absent or self._gathered or self._accumulating or self.manual or not self.stage:
            yield
            return
        from ..engines import deepspeed_whole

        self._gathered = True
        try:
            with deepspeed_whole.gradients(self.engine, self.optimizer):
                yield
        finally:
            self._gathered = False

    def state_dict(self, module: Module) -> dict[str, Any]:
        with self.evaluation(module):
            state = module.state_dict()
            return {name: value.detach().clone() for name, value in state.items()} if self.engine else state

    def load_state_dict(self, module: Module, state: Mapping[str, Any], strict: bool = True) -> None:
        if self.engine is None:
            module.load_state_dict(state, strict=strict)
            return
        from ..engines import deepspeed

        deepspeed.load(self.engine, module, state, strict)

    def optimizer_state(self, module: Module, optimizer: Any) -> dict[str, Any]:
        return optimizer.state_dict()

    def load_optimizer_state(self, module: Module, optimizer: Any, state: dict[str, Any]) -> None:
        optimizer.load_state_dict(state)

    def save_engine_checkpoint(self, folder: Any, tag: str | None = None) -> None:
        """DeepSpeed's own checkpoint, a file a process, in a folder; `consolidate` makes one of them. All ranks call
        this, while a fit runs.
        """
        with self._parts.meant() if self._parts is not None else nullcontext(), self.optimizer.calls():
            self.optimizer.adopted.adopt()
            self.engine.save_checkpoint(str(folder), tag=tag)

    @staticmethod
    def consolidate(folder: Any, file: Any, tag: str | None = None) -> None:
        """One file of float32 weights from DeepSpeed's own checkpoint in `folder`, for `load_from_checkpoint`. One
        process calls this. Raises ConfigurationError where there is no such checkpoint.
        """
        from ..checkpoint.write import write_atomically
        from ..engines import deepspeed

        state = deepspeed.whole_weights(folder, tag)
        write_atomically(file, lambda out: torch.save({"state_dict": state}, out))

    # -- the end ---------------------------------------------------------------------------------------------------

    def finish(self, module: Module) -> None:
        if self.engine is not None and self.engine.zero_optimization_stage() == 3:
            from ..engines import deepspeed_whole

            deepspeed_whole.undivide(self.engine, module)
            self._gathered = True  # hooks of the end may save what there is

    def teardown(self) -> None:
        if self._parts is not None:
            self._parts.release()
        self._parts = self._when_asked = self._handed_out = None
        self.engine = self._ranks = self._together = None
        self._gathered = False


DeepSpeedPlugin = DeepSpeedStrategy  # the guide's name
