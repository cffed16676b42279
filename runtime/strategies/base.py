"""What a strategy is: where the processes come from, how the training step runs, and how gradients become those of the
global batch.

To add an engine, subclass `Strategy` in a file of its own, decorate it with `@register("name")`, and give a meaning
to what differs. The methods stand in the order in which a run calls them; each says what it may do. A strategy's own
`__init__` takes the user's arguments, all of them optional: `Trainer(strategy="name")` calls it without any,
`Trainer(strategy=Mine(option=1))` brings the object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from ..hooks import overridden
from .lightnings import AsLightning
from .needs import FEATURES, Package, features_of, refuse

if TYPE_CHECKING:
    from ..handle import Runtime
    from ..launch.agent import Job
    from ..module import Module
    from ..settings import Settings
    from ..trainer import Trainer


class Strategy(AsLightning):
    """One process, nothing to do; the base of the others."""

    name: ClassVar[str] = "single"
    divides_states = False  # has each process a part of the optimizers' states?
    replaces_optimizers = False  # do others than the module's make the steps, without calling those?
    needs_processes: ClassVar[bool] = False  # True: several processes; with one, `single` runs instead
    works_alone: ClassVar[bool] = False  # True: it has a meaning with one process too, so it is never replaced
    one_process_a_node: ClassVar[bool] = False  # True: one process drives all devices of its node (dp, ddp2)
    draws_alike: ClassVar[bool] = False  # True: processes can take batches whole and draw the same random numbers
    keeps_gradients: ClassVar[bool] = True  # False: between batches there is no `p.grad` to be looked at
    only_on: ClassVar[str | None] = None  # the kind of device that it is for, where it is for one alone ("tpu")
    packages: ClassVar[Sequence[Package]] = ()  # what has to be installed, and how; checked before anything starts
    refuses: ClassVar[Mapping[str, str]] = {}  # {a name in needs.FEATURES: the reason}; checked before anything starts

    runtime: Runtime  # set by `attach`
    trainer: Trainer | None = None  # None in kept loops
    own: bool = False  # inside of a module's own `backward`
    options: Mapping[str, Any] = {}  # what the user gave, for messages

    # -- before anything starts -----------------------------------------------------------------------------------

    def attach(self, runtime: Runtime) -> None:
        """The runtime that this strategy is for; called once, before all below. No other process is known yet."""
        self.runtime = runtime

    def check(self, features: Mapping[str, bool]) -> None:
        """Raise ConfigurationError for what this engine cannot do. Called in the process that the user started, before
        others are, with all features that are known by then, and again with those that only a run shows (several
        optimizers), before the first step.
        """
        refuse(self.name, self.refuses, features)

    def check_run(self, trainer: Trainer, module: Module, stage: str, resumes: bool) -> None:
        """`check` with what `trainer` is about to do; `stage`: fit, validate, test or predict. An engine that looks at
        the module itself (has it a sequential_module?) does it here.
        """
        self.check(features_of(trainer, module, stage, resumes))

    @classmethod
    def instead(cls, devices: int, processes: int) -> str | None:
        """The name of the strategy that runs instead, where this one has nothing to do: with `devices` a node and so
        many processes in all.
        """
        alone = processes == 1 and (devices == 1 or not cls.one_process_a_node)
        return "single" if cls.needs_processes and alone and not cls.works_alone else None

    # -- processes ------------------------------------------------------------------------------------------------

    @classmethod
    def run_job(cls, job: Job, variables: dict[str, str]) -> int:
        """`ptrun`: start `job.processes` processes of the script and wait for them; the exit code. An engine with a
        launcher of its own starts that one.
        """
        from ..launch import agent

        return agent.run(job, variables)

    def launch(self, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `run`, a method of the trainer (fit, validate, ...), here; a spawning engine calls it in processes of
        its own and brings back to this one what it changed.
        """
        return run(*args, **kwargs)

    def start_processes(self, settings: Settings) -> None:
        """The user started the script alone and it wants several processes: start the others, and make
        `environment.launched()` true here. By default the script is started again for each of the other ranks.
        """
        from ..launch import script

        script.start_peers(settings)

    def init_group(self, settings: Settings) -> None:
        """Make torch's default process group. Every strategy has one, on gloo at least: dividing batches, metrics and
        checkpoints need it.
        """
        from ..launch.connect import init_group

        init_group(settings)

    def use_device(self) -> None:
        """The other processes are known, and this one is about to use its device; called more than once."""

    def own_device(self) -> torch.device:
        """This process's device, for a kept loop that moves its models and batches itself."""
        return self.runtime.device

    def data_place(self) -> tuple[int, int]:
        """(which part of the data this process gets, of how many). Where several processes hold parts of one model
        they get the same part: a pipeline over all processes says (0, 1).
        """
        return self.runtime.rank, self.runtime.world_size

    # -- setting up a run -----------------------------------------------------------------------------------------

    def place(self, module: torch.nn.Module) -> None:
        """Put the module on this process's device."""
        if not self.runtime.on_cpu:
            module.to(self.runtime.device)

    def setup_module(self, module: Module) -> None:
        """Before configure_optimizers: exchange parameters in place (sharding). `module` stays the user's object."""

    def setup_optimizers(self, module: Module, optimizers: list[Any]) -> list[Any]:
        """After configure_optimizers: as many optimizers as came in (or one, where the engine brings its own and none
        came), each the same, wrapped or replaced.
        `trainer.optimizers` and schedulers get what is returned.
        """
        return optimizers

    def step(self, module: Module, name: str) -> Callable[..., Any]:
        """The module's `name` ("training_step", "validation_step", "test_step", "predict_step") on this process's
        batch, and its `name_end` after it.

        An engine with several devices a process divides the batch here, and gathers the outputs of the devices before
        `name_end` sees them.
        """
        return with_step_end(module, name, getattr(module, name))

    def wrap(self, module: Module) -> Callable[..., Any]:
        """Automatic optimization, once a fit, after the optimizers: what is called at every batch, with training_step's
        arguments; `step` is in it.
        """
        return self.step(module, "training_step")

    def follow(self, module: torch.nn.Module) -> None:
        """Kept loops and manual optimization, instead of `wrap`: the module stays the user's own object, used in any
        way, and `backward` below is called by the user.
        """

    def follow_optimizer(self, optimizer: Any) -> None:
        """Kept loops: an optimizer that the script steps itself."""

    @property
    def root_device(self) -> torch.device:
        """This process's device; Lightning's name for it."""
        return self.runtime.device

    # -- every step -----------------------------------------------------------------------------------------------

    def backward(self, loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        """When the last backward before a step returns, gradients are those of the global batch.

        `loss` is already weighted by the share of the global batch that this process holds (`Runtime.weight`), so that
        the plain mean over `data_place` ranks is right for unequal shares too, and divided by the number of accumulated
        batches.
        """
        if not self.own:
            self.before_backward(loss)
        loss.backward(*args, **kwargs)
        if not self.own:
            self.after_backward()

    def before_backward(self, loss: torch.Tensor) -> None:
        """What an engine does before gradients come about."""

    def after_backward(self) -> None:
        """The gradients are there: what makes those of the global batch of them, where backward itself does not."""

    def own_backward(self, run: Callable[..., Any], loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        """The module has a backward of its own, `run`, which calls `backward` above or, just as well, the loss's."""
        self.before_backward(loss)
        self.own = True
        try:
            run(loss, *args, **kwargs)
        finally:
            self.own = False
        self.after_backward()

    def skip(self) -> None:
        """Automatic optimization on several processes, instead of `backward`: training_step gave no loss here. Another
        rank's may have, and what earlier batches have accumulated waits for this one.
        """

    def check_step(self, optimizer: Any) -> None:
        """Manual optimization on several processes, before each step. RuntimeError where gradients have come about
        without `backward`.
        """

    def begin_batch(self, number: int | None) -> None:
        """Manual optimization on several processes: training batch `number` begins; None: no other does for now. An
        engine whose backward passes wait for one another can tell ranks by it that make different numbers of them.
        """

    def no_sync(self) -> AbstractContextManager:
        """Around step and backward of a batch that is only accumulated: gradients stay this rank's own; the first
        backward after it brings them together.
        """
        return nullcontext()

    def whole_accumulation(self) -> AbstractContextManager:
        """Instead of `no_sync`, where the user's code looks at gradients after each backward: those are the global
        batch's, and the next backward adds to them.
        """
        return nullcontext()

    def clip(self, module: Module, optimizer: Any, value: float, algorithm: str) -> None:
        """Clip the gradients of this optimizer's parameters, by "norm" (of the whole model, over all ranks that hold
        parts of it) or by "value".
        """
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if algorithm == "value":
            torch.nn.utils.clip_grad_value_(parameters, value)
        else:
            torch.nn.utils.clip_grad_norm_(parameters, value)

    def optimizer_step(self, optimizer: Any) -> None:
        """Automatic optimization without a closure. What must hold for manual optimization too belongs into the
        optimizer: replace it in `setup_optimizers`, or register a hook there.
        """
        optimizer.step()

    def zero_grad(self, optimizer: Any) -> None:
        """Automatic optimization, where the module has no optimizer_zero_grad of its own."""
        optimizer.zero_grad()

    # -- evaluation -----------------------------------------------------------------------------------------------

    def evaluation(self, module: Module) -> AbstractContextManager:
        """Around an epoch of validation, test or prediction: inside, every rank may call the module as often as it has
        batches, which differs by rank; gather parameters here where they are divided, average them where they differ.
        """
        return nullcontext()

    def around_hook(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """The module's own `hook` between batches, which all ranks call: where parameters are divided, gather them
        around it, and keep what it changes.
        """
        return hook

    def gradients(self) -> AbstractContextManager:
        """Around the user's own code between backward and step, which all ranks run: inside, every rank has gradients
        and parameters whole; what is done to them stays.
        """
        return nullcontext()

    def around_batch_hook(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """The user's own `hook` at the beginning or the end of a batch, which all ranks call: as `around_hook`, but
        parameters are gathered only where it looks at one.
        """
        return hook

    def around_own_step(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The module's own `optimizer_step`, which all ranks call, and in which it may use its parameters."""
        return step

    # -- checkpoints: whole on every number of processes ------------------------------------------------------------

    def state_dict(self, module: Module) -> dict[str, Any]:
        """The module's whole state, under the keys that one process has. All ranks call this; rank 0's answer is
        written.
        """
        return module.state_dict()

    def load_state_dict(self, module: Module, state: Mapping[str, Any], strict: bool = True) -> None:
        """The opposite: every rank has the whole `state`, on the CPU."""
        module.load_state_dict(state, strict=strict)

    def optimizer_state(self, module: Module, optimizer: Any) -> dict[str, Any]:
        """The optimizer's whole state, as one process has it. All ranks call this; rank 0's answer is written."""
        return optimizer.state_dict()

    def load_optimizer_state(self, module: Module, optimizer: Any, state: dict[str, Any]) -> None:
        """The opposite: every rank has the whole `state`, on the CPU."""
        optimizer.load_state_dict(state)

    def checkpoint(self, trainer: Trainer, weights_only: bool) -> dict[str, Any]:
        """What save_checkpoint writes, put together from the four methods above."""
        from ..checkpoint import state

        return state.collect(trainer, weights_only)

    # -- the end --------------------------------------------------------------------------------------------------

    def finish(self, module: Module) -> None:
        """The last step is behind, on all ranks: bring together what still differs between them."""

    def teardown(self) -> None:
        """The fit is over, by its end or by an error (which the other ranks may not have met: no messages here): leave
        the user's module as a plain one.
        """

    def describe(self, batch: int | None, whole: bool) -> str | None:
        """The line at the start of a fit: the processes, and what becomes of the loader's batches (of `batch` samples;
        `whole`: every process computes all of each). None: nothing to say.
        """
        runtime = self.runtime
        if runtime.world_size == 1:
            return None
        each = f"each{f', {batch * self.data_place()[1]} samples a step' if batch else ''}"
        way = "computed whole by each" if whole else "cut among them" if runtime.global_batch else each
        size = f"of {batch} " if batch else ""
        return f"{self.name} on {runtime.world_size} processes ({runtime.device.type}), batches {size}{way}"

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{type(self).__name__}({given})"


def with_step_end(module: Module, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
    """`step`, then the module's `name_end` with what it gave, where the module has one."""
    from ..module import Module as Base

    if not overridden(module, f"{name}_end", Base):
        return step
    end = getattr(module, f"{name}_end")
    return lambda *args: end(step(*args))


__all__ = ["FEATURES", "Package", "Strategy", "with_step_end"]
