"""A module's `sequential_module` cut into stages, a process each, micro-batches going through them: torch's pipelining.

Huang et al., GPipe, NeurIPS 2019; Narayanan et al., PipeDream (1F1B), SOSP 2019. Every process sees the whole batch
and runs the user's steps; calling `self.sequential_module(x)` in them sends x through the stages. The first stage
learns x by running training_step up to that call, the last one runs training_step on each micro-batch for its loss;
what is logged is computed from the whole batch's outputs, on every rank alike. A loss that compares the samples of a
batch is computed within micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from ..collectives import broadcast_object, broadcast_tensors, gather_objects
from ..data.move import batch_size_of, slice_batch
from ..errors import ConfigurationError, unknown_name
from ..hooks import with_gradients
from . import stages
from .averaging import clip_parts
from .base import Strategy
from .registry import register
from .unchanged import Unchanged
from .when_asked import WhenAsked

if TYPE_CHECKING:
    from ..module import Module
    from ..trainer import Trainer

SCHEDULES = {"gpipe": "ScheduleGPipe", "1f1b": "Schedule1F1B"}
BATCH_NORMS = (torch.nn.modules.batchnorm._BatchNorm,)  # statistics are each micro-batch's own
CHECKPOINTS = {False: False, True: True, "always": True, "except_last": "except_last", "never": False}


def is_balance(given: Any) -> bool:
    """A number of layers for each stage?"""
    return isinstance(given, (list, tuple)) and bool(given) and all(isinstance(n, int) and n > 0 for n in given)


@register("pipeline")
class PipelineStrategy(Strategy):
    """`balance`: layers a stage, [2, 1, 1] (None: found by measuring the layers on the first batch). `microbatches`: at
    most so many, the most that divide the batch. `schedule`: "gpipe" or "1f1b". `checkpoint`: recompute activations in
    backward (True, "always"), in all stages but the last ("except_last"), or keep them.
    """

    divides_states = True
    needs_processes = True
    refuses: ClassVar[Mapping[str, str]] = {
        "manual": "forward and backward go through the stages together; use 'ddp'",
        "optimizers": "all stages' backward passes go together, for all parameters; use 'ddp'",
        "closure": "its step looks at all parameters together, and each process has a stage; use 'ddp'",
        "16": "losses are scaled after the stages' backward; use precision='bf16' or 32",
        "kept": "the stages are those of a Module's sequential_module; use 'ddp'",
    }

    def __init__(
        self,
        balance: list[int] | None = None,
        microbatches: int = 8,
        schedule: str = "gpipe",
        checkpoint: bool | str = False,
        balance_mode: str = "balance_by_time",
        pipelined_backward: bool = True,
    ):
        if str(schedule).lower() not in SCHEDULES:
            raise unknown_name("schedule", schedule, SCHEDULES)
        if checkpoint not in CHECKPOINTS:
            raise unknown_name("checkpoint", checkpoint, [str(name) for name in CHECKPOINTS])
        if balance_mode != "balance_by_time":
            raise unknown_name("balance_mode", balance_mode, ["balance_by_time"])
        if not isinstance(microbatches, int) or microbatches < 1 or not pipelined_backward:
            raise ConfigurationError("microbatches: a whole number from 1 up is needed; backward is always pipelined")
        if balance is not None and not is_balance(balance):
            raise ConfigurationError(f"balance={balance!r}: numbers of layers from 1 up are needed, one a stage")
        self.balance, self.microbatches = balance, microbatches
        self.schedule, self.recompute = schedule.lower(), CHECKPOINTS[checkpoint]
        self.options = {"balance": balance, "microbatches": microbatches, "schedule": self.schedule}
        self._stages: stages.Stages | None = None
        self._pending: dict[torch.nn.Parameter, torch.Tensor] = {}
        self._leaf: torch.Tensor | None = None
        self._gathered = False  # are all parameters on every rank just now?
        self._when_asked: WhenAsked | None = None

    def check_run(self, trainer: Trainer, module: Module, stage: str, resumes: bool) -> None:
        super().check_run(trainer, module, stage, resumes)
        sequential = getattr(module, "sequential_module", None)
        if not isinstance(sequential, torch.nn.Sequential):
            raise ConfigurationError(
                f"strategy {self.name!r} needs an nn.Sequential as self.sequential_module in {type(module).__name__}"
            )
        world, layers = self.runtime.world_size, len(sequential)
        if self.balance is not None and (len(self.balance) != world or sum(self.balance) != layers):
            raise ConfigurationError(
                f"balance={self.balance}: {world} processes need {world} numbers that add up to {layers}, the layers"
            )
        if layers < world:
            raise ConfigurationError(f"sequential_module has {layers} layers, which is not enough for {world} stages")
        self._check_shared(sequential)
        inside = set(sequential.parameters())
        outside = [name for name, p in module.named_parameters() if p not in inside and p.requires_grad]
        if outside and stage == "fit":
            raise ConfigurationError(
                f"strategy {self.name!r} trains sequential_module alone; move {outside[0]!r} into it"
            )

    def _check_shared(self, sequential: torch.nn.Sequential) -> None:
        """Each stage steps its own parameters."""
        owner = stages.owners(self.balance) if self.balance is not None else range(len(sequential))
        first: dict[torch.nn.Parameter, int] = {}
        for number, layer in enumerate(sequential):
            for parameter in layer.parameters():
                if owner[first.setdefault(parameter, number)] != owner[number]:
                    raise ConfigurationError(
                        f"layers {first[parameter]} and {number} of sequential_module share parameters: give balance= "
                        "so that one stage has both"
                    )

    def describe(self, batch: int | None, whole: bool) -> str | None:
        size = f"of {batch} " if batch else ""
        stages, kind = self.runtime.world_size, self.runtime.device.type
        return (
            f"{self.name} of {stages} stages, a process each ({kind}), batches {size}in up to {self.microbatches} "
            f"micro-batches ({self.schedule})"
        )

    def data_place(self) -> tuple[int, int]:
        return 0, 1

    # -- setting up ------------------------------------------------------------------------------------------------

    def setup_module(self, module: Module) -> None:
        broadcast_tensors([*module.parameters(), *module.buffers()])
        self._when_asked = WhenAsked(module, self.gradients)

    def wrap(self, module: Module) -> Callable[..., Any]:
        self._unchanged = Unchanged(module, "training_step", "runs several times a batch")
        return lambda batch, batch_idx: self._train(module, batch, batch_idx)

    def _cut(self, module: Module, taken: torch.Tensor) -> stages.Stages:
        """The stages; where no balance is given, rank 0 measures the layers on what the first one takes."""
        if self._stages is None:
            sequential: Any = module.sequential_module
            world = self.runtime.world_size
            balance = self.balance
            if balance is None:
                found = stages.balanced(sequential, taken, world) if self.runtime.rank == 0 else None
                balance = broadcast_object(found, self.runtime.group, self.runtime.rank)
            last = self.runtime.rank == world - 1
            recompute = self.recompute is True or (self.recompute == "except_last" and not last)
            self._stages = stages.Stages(sequential, balance, self.runtime, recompute)
            self.balance_found = balance
            for optimizer in module.trainer.optimizers:  # resumed with all states
                for parameter in self._stages.emptied:
                    optimizer.state.pop(parameter, None)
        return self._stages

    # -- every step ------------------------------------------------------------------------------------------------

    def _train(self, module: Module, batch: Any, batch_idx: int) -> Any:
        """Forward and backward of all micro-batches; gradients wait in `_pending` until `backward`."""
        with self._unchanged.checked():
            taken = stages.taken_by(module, batch, batch_idx)
        if taken is None:  # on all ranks, which have the same batch
            return None
        cut = self._cut(module, taken)
        held = {p: p.grad for p in cut.parameters}
        for parameter in cut.parameters:
            parameter.grad = None
        with self._unchanged.checked():
            out = self._run_schedule(cut, taken, module, batch, batch_idx)
        self._pending = {p: p.grad for p in cut.parameters if p.grad is not None}
        for parameter, gradient in held.items():
            parameter.grad = gradient
        with cut.giving(out):
            outputs = self.step(module, "training_step")(batch, batch_idx)
        loss = outputs["loss"] if isinstance(outputs, dict) else outputs
        if loss is None:
            self._pending = {}
            return None
        if loss.requires_grad:
            raise ConfigurationError(
                f"training_step uses parameters besides calling self.{stages.NAME}: in a pipeline each process has "
                "those of its stage alone; take weight decay from the optimizer, or use 'ddp'"
            )
        self._leaf = loss.detach().clone().requires_grad_()
        whole = self._leaf * 1.0
        return {**outputs, "loss": whole} if isinstance(outputs, dict) else whole

    def _run_schedule(
        self, cut: stages.Stages, taken: torch.Tensor, module: Module, batch: Any, batch_idx: int
    ) -> torch.Tensor:
        """The output of the last stage for the whole batch, on every rank."""
        size = batch_size_of(batch) or 1
        least = 2 if any(isinstance(layer, BATCH_NORMS) for layer in module.modules()) else 1  # samples a micro-batch
        pieces = max(n for n in range(1, min(self.microbatches, max(1, size // least)) + 1) if size % n == 0)
        sums = module.loss_reduction == "sum"
        outputs: dict[int, torch.Tensor] = {}  # by first row: torch calls the loss once more to learn shapes
        step = self.step(module, "training_step")

        def loss_of(out: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
            outputs[int(rows[0])] = out.detach()
            part = slice_batch(batch, int(rows[0]), int(rows[-1]) + 1)
            with cut.giving(out), stages.quiet(module):
                given = step(part, batch_idx)
            loss = given["loss"] if isinstance(given, dict) else given
            if loss is None:
                return out.sum() * 0.0  # the step gives none for the whole batch either
            return loss if sums else loss * (len(rows) / size)

        kind = self.schedule if pieces >= cut.count else "gpipe"  # 1F1B needs a micro-batch for each stage
        schedule = cut.schedule(SCHEDULES[kind], pieces, size // pieces, loss_of)
        given = (taken,) if cut.first else ()
        target = {"target": torch.arange(size), "losses": []} if cut.last else {}
        schedule.step(*given, **target)
        return cut.shared(torch.cat([outputs[row] for row in sorted(outputs)]) if cut.last else None)

    def after_backward(self) -> None:
        """The stages' backward is behind; what has been done to the loss since (a division) is made up for."""
        assert self._leaf is not None and self._leaf.grad is not None
        factor = self._leaf.grad.item()
        for parameter, gradient in self._pending.items():
            gradient = gradient if factor == 1.0 else gradient * factor
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        self._pending = {}

    def no_sync(self) -> AbstractContextManager:
        return nullcontext()

    def clip(self, module: Module, optimizer: Any, value: float, algorithm: str) -> None:
        if algorithm == "value":
            super().clip(module, optimizer, value, algorithm)
            return
        clipped = [p for group in optimizer.param_groups for p in group["params"]]
        clip_parts(self._stages.parameters if self._stages is not None else (), clipped, value, self.runtime.device)

    # -- evaluation and checkpoints --------------------------------------------------------------------------------

    @contextmanager
    def evaluation(self, module: Module) -> Iterator[None]:
        """All ranks go through the same batches together."""
        if self._stages is None:
            yield
            return
        self._stages.spread_buffers()
        with self._stages.answering(self._stages.forward):
            yield

    @contextmanager
    def gradients(self) -> Iterator[None]:
        """All ranks have all parameters and gradients; each keeps what is done to its own."""
        if self._stages is None or self._gathered:
            yield
            return
        self._gathered = True
        try:
            with self._stages.whole():
                yield
        finally:
            self._gathered = False

    def around_hook(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        return with_gradients(self, hook)

    def around_batch_hook(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        assert self._when_asked is not None
        return self._when_asked.around(hook)

    def state_dict(self, module: Module) -> dict[str, Any]:
        if self._stages is None:
            return module.state_dict()
        mine = {name: value for name, value in module.state_dict().items() if self._stages.keeps(name)}
        found: dict[str, Any] = {}
        for part in gather_objects(mine, self.runtime.group, self.runtime.world_size, "its stages"):
            found |= part
        return {name: found[name] for name in module.state_dict()}

    def load_state_dict(self, module: Module, state: Mapping[str, Any], strict: bool = True) -> None:
        if self._stages is None:
            module.load_state_dict(state, strict=strict)
            return
        here = module.state_dict()
        if strict and set(here) != set(state):
            raise RuntimeError(f"the checkpoint's keys differ from the module's: {sorted(set(here) ^ set(state))}")
        module.load_state_dict({n: v for n, v in state.items() if self._stages.keeps(n)}, strict=False)

    def optimizer_state(self, module: Module, optimizer: Any) -> dict[str, Any]:
        state = type(optimizer).state_dict(optimizer)
        found: dict[int, Any] = {}
        for part in gather_objects(
            state["state"], self.runtime.group, self.runtime.world_size, "the optimizer's state"
        ):
            found |= part
        return {**state, "state": dict(sorted(found.items()))}

    # -- the end ---------------------------------------------------------------------------------------------------

    def finish(self, module: Module) -> None:
        if self._stages is not None:
            state = self.state_dict(module)
            self._stages.fill(module, state)

    def teardown(self) -> None:
        if self._stages is not None:
            self._stages.release()
            self._stages = None


@register("rpc_sequential")
class RPCSequentialPlugin(PipelineStrategy):
    """The guide's `RPCSequentialPlugin(balance=[1, 1, 1, 1])`: checkpointed in all stages but the last, as it was."""

    def __init__(
        self, balance: list[int] | None = None, microbatches: int = 8, checkpoint: Any = "except_last", **more: Any
    ):
        super().__init__(balance, microbatches, checkpoint=checkpoint, **more)
