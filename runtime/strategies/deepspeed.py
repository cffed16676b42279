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
from .averaging import GradientAverager, refuse_own, zero_of
from .base import Strategy
from .deepspeed_checks import check_features, check_fit
from .deepspeed_config import check_stage, completed, read_config
from .needs import Package
from .parts import Parts, make_contiguous
from .registry import register
from .when_asked import WhenAsked

if TYPE_CHECKING:
    from ..module import Module
    from ..trainer import Trainer

VARIABLES = ("PTMIGRATE_DEEPSPEED_CONFIG_PATH", "PL_DEEPSPEED_CONFIG_PATH")
INSTALL = "DS_BUILD_OPS=0 pip install --no-build-isolation deepspeed (and ninja), or ptmigrate[deepspeed]"


@register("deepspeed")
class DeepSpeedStrategy(Strategy):
    """`config`: a dict of DeepSpeed's or the path of a JSON file (else the one in PL_DEEPSPEED_CONFIG_PATH); the other
    arguments then do not count. Without one: ZeRO `stage` 0 to 3, `offload_optimizer` and `offload_parameters` to the
    CPU, the bucket sizes in numbers of elements (DeepSpeed's buffers take 4.5 times the reduce bucket).
    """

    works_alone = True
    keeps_gradients = False
    divides_states = replaces_optimizers = True
    needs_processes = draws_alike = True
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
        self._given_away: Any = None
        self._marks: Any = None
        self._together: Any = None  # stage 3: tells whether ranks use the same layers
        self._ranks: Any = None  # has nothing to average, and tells ranks apart that are elsewhere
        self._parts: Parts | None = None
        self._when_asked: WhenAsked | None = None  # stage 3
        self._handed_out: Any = None  # stage 3
        self._in_backward: Callable[[], AbstractContextManager] = nullcontext
        self._accumulating = False
        self._undivided = False  # stage 3: is training over, and are parameters plain ones?
        self._gathered = False  # stage 3: are all parameters on every rank just now?

    def check(self, features: Mapping[str, bool]) -> None:
        super().check(features)
        check_features(self, features)

    def check_run(self, trainer: Trainer, module: Module, stage: str, resumes: bool) -> None:
        super().check_run(trainer, module, stage, resumes)
        if stage == "fit":
            check_fit(self.stage, trainer, module)

    @property
    def stage(self) -> int:
        return int(self.config.get("zero_optimization", {}).get("stage", 0))

    # -- setting up ------------------------------------------------------------------------------------------------

    def attach(self, runtime: Any) -> None:
        super().attach(runtime)
        if runtime.on_cpu:
            os.environ.setdefault("DS_ACCELERATOR", "cpu")

    def setup_optimizers(self, module: Module, optimizers: list[Any]) -> list[Any]:
        """Everything is handed to DeepSpeed's engine. An optimizer in its config takes the place of the module's."""
        from ..engines import deepspeed, deepspeed_whole

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
        self.engine, self._marks = deepspeed.engine(
            module, None if own else optimizers[0], completed(self.config, self.manual, self.runtime)
        )
        self._given_away = deepspeed.given_away(module, self.manual)
        if not self.manual:
            self._given_away.refuse_own(lambda: self.own)
        self.optimizer = deepspeed.Stepping(self.engine, groups, self._given_away, self._marks)
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
        with self._in_backward(), self._given_away.here():
            self.engine.backward(loss, *args, **kwargs)
        self._take_away()
        if self.manual and self.stage == 3:
            self._step_goes_on()
        if not self.own:
            self.after_backward()

    def _take_away(self) -> None:
        """The engine has the gradients. Stage 0 leaves them where they are, averaged where it steps by itself."""
        if self.manual or self.stage:
            self._given_away.came()

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
        self._take_away()
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
            with self._given_away.here(), deepspeed_whole.gradients(self.engine, self.optimizer):
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
            self._undivided = self._gathered = True  # hooks of the end may save what there is

    def teardown(self) -> None:
        if self._parts is not None:
            self._parts.release()
        if self._given_away is not None:
            self._given_away.release()
        if self._marks is not None and (self.stage < 3 or self._undivided):
            self._marks.remove()
        self._parts = self._when_asked = self._handed_out = self._given_away = None
        self.engine = self._ranks = self._together = self._marks = None
        self._gathered = self._undivided = False


DeepSpeedPlugin = DeepSpeedStrategy  # the guide's name
