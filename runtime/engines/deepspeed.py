"""DeepSpeed's engine, whole states of what it divides, and its absence again. Imports deepspeed."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from ..errors import ConfigurationError
from ..strategies.given_away import GivenAway
from ..strategies.together import Together
from .deepspeed_marks import Marks
from .deepspeed_order import InOrder, watch_modules

os.environ.setdefault("DS_ACCELERATOR", "cuda" if torch.cuda.is_available() else "cpu")

import deepspeed
import torch.distributed as dist
from deepspeed.runtime.config import DEEPSPEED_OPTIMIZERS
from deepspeed.utils import (
    safe_get_full_optimizer_state,
    safe_get_local_optimizer_state,
    safe_set_full_optimizer_state,
    safe_set_local_optimizer_state,
)

from .deepspeed_whole import Adopted, forget_gradients, padded_part


def version() -> str:
    return deepspeed.__version__


def optimizer_names(on_cpu: bool) -> list[str]:
    return sorted(DEEPSPEED_OPTIMIZERS)


def steps_when_told() -> bool:
    """Can its engine take any number of backward passes before a step? Manual optimization needs it."""
    return hasattr(deepspeed.DeepSpeedEngine, "managed_gradient_accumulation")


class Root(torch.nn.Module):
    """What DeepSpeed wraps: the user's module, with its step as the forward."""

    def __init__(self, module: torch.nn.Module):
        super().__init__()
        self.module = module

    def forward(self, step: Callable[..., Any], *args: Any) -> Any:
        return step(*args)

    def train(self, mode: bool = True) -> Root:
        """Which submodules train is the user's affair."""
        return self


def engine(module: torch.nn.Module, optimizer: Any, config: dict[str, Any]) -> tuple[Any, Marks]:
    """DeepSpeed's, and what it has written on the module."""
    deepspeed.logger.setLevel("WARNING")
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # compiled at first use, for minutes; gloo does it
    if not dist.is_initialized():  # one process, which nobody else has given a group
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    os.environ.setdefault("LOCAL_RANK", "0")
    if not deepspeed.comm.is_initialized():
        deepspeed.init_distributed(dist_backend=dist.get_backend(), dist_init_required=False, verbose=False)
    trained = [p for p in module.parameters() if p.requires_grad]
    marks = Marks(module)
    with _already_the_same(), marks.written():
        made, *_ = deepspeed.initialize(
            model=Root(module), optimizer=optimizer, model_parameters=trained, config=config, dist_init_required=False
        )
    return made, marks


@contextmanager
def _already_the_same() -> Iterator[None]:
    """Inside, an engine sends no weights when it is made: all ranks have rank 0's, and DeepSpeed's way of sending them
    fails for parameters that are single numbers.
    """
    send = deepspeed.DeepSpeedEngine._broadcast_model
    deepspeed.DeepSpeedEngine._broadcast_model = lambda _: None
    try:
        yield
    finally:
        deepspeed.DeepSpeedEngine._broadcast_model = send


def given_away(module: torch.nn.Module, manual: bool) -> GivenAway:
    """Tells who looks for gradients between the engine's backward and zero_grad."""
    of_steps = "it comes about in the step: call self.clip_gradients, or use 'fsdp' or 'ddp_sharded'"
    of_hooks = "gradients are whole in on_after_backward, on_before_optimizer_step and configure_gradient_clipping"
    why = f"under DeepSpeed's manual optimization {of_steps}" if manual else f"under DeepSpeed {of_hooks}"
    return GivenAway(module, why, str(Path(deepspeed.__file__).parent))


def keep_together(engine: Any, group: dist.ProcessGroup, meet: Callable[[], None] | None) -> Together | None:
    """Several ranks: gradients in one order on all; stage 3: what tells whether ranks use the same layers."""
    stage = engine.zero_optimization_stage()
    if stage == 3:
        together = Together("DeepSpeed's stage 3", group, meet)
        watch_modules(engine.optimizer.parameter_offload, together)
        return together
    if stage:
        InOrder(engine.optimizer)
    return None


def groups_of(module: torch.nn.Module, optimizer: Any) -> list[dict[str, Any]]:
    """The parameters of the optimizer's groups as one process has them, before DeepSpeed flattens them."""
    if optimizer is None:
        return [{"params": [p for p in module.parameters() if p.requires_grad]}]
    return [{"params": list(group["params"])} for group in optimizer.param_groups]


def taken_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What the user has loaded into an optimizer, by the parameters that DeepSpeed is about to flatten; it has none of
    it afterwards. Empty where there is none.
    """
    if not optimizer.state:
        return {}
    state = optimizer.state_dict()
    optimizer.state.clear()
    return state


class Stepping(torch.optim.Optimizer):
    """What the module sees as its optimizer: DeepSpeed's, whose steps the engine makes. Its state is the whole one."""

    def __init__(self, engine: Any, groups: list[dict[str, Any]], given_away: GivenAway, marks: Marks):
        self.engine, self.groups, self.given_away, self.marks = engine, groups, given_away, marks
        self.inner = _inner(engine)
        self.__dict__.update({k: v for k, v in self.inner.__dict__.items() if k != "step"})
        self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = OrderedDict(), OrderedDict()
        self.adopted = Adopted(engine)
        self.is_called = False  # does the engine call the module's optimizer just now?
        self.waiting = False  # gradients for the next step
        self.is_zeroed = True  # since the last backward that was not only accumulated
        self.has_left = False  # gradients that a backward has brought since they were zeroed
        self.has_loss = False  # since the last step, on any rank
        self.largest_norm: float | None = None  # of the next step's gradients

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = closure() if closure is not None else None
        for hook in self._optimizer_step_pre_hooks.values():
            hook(self, (), {})
        if self.has_loss:
            self.adopted.adopt()
            with self._clipping(), self.calls(), self.given_away.here():
                self.engine.step()
        self.waiting = self.has_loss = self.given_away.waiting = False
        self.has_left &= self.engine.zero_optimization_stage() == 3  # the other stages have given it away
        for hook in self._optimizer_step_post_hooks.values():
            hook(self, (), {})
        return loss

    @contextmanager
    def calls(self) -> Iterator[None]:
        self.is_called = True
        try:
            yield
        finally:
            self.is_called = False

    @contextmanager
    def _clipping(self) -> Iterator[None]:
        """DeepSpeed clips while it steps."""
        config, optimizer, largest = self.engine._config, self.engine.optimizer, self.largest_norm
        before = config.gradient_clipping, getattr(optimizer, "clip_grad", None)
        if largest is not None:
            config.gradient_clipping = optimizer.clip_grad = largest
        yield
        config.gradient_clipping, optimizer.clip_grad = before
        self.largest_norm = None

    @contextmanager
    def with_parameters(self) -> Iterator[None]:
        """Inside, the groups have the module's parameters, where DeepSpeed has rows of numbers."""
        of_rows = self.param_groups
        self.param_groups = [
            {**row, "params": group["params"]} for row, group in zip(of_rows, self.groups, strict=True)
        ]
        try:
            yield
        finally:
            for row, group in zip(of_rows, self.param_groups, strict=True):
                row.update(_options(group))
            self.param_groups = of_rows

    def zero_grad(self, set_to_none: bool = True) -> None:
        """The engine does it, after its steps; what a step has left out, or what is accumulated and not stepped, goes
        here. Under manual optimization it cannot be taken back.
        """
        if self.waiting:
            raise ConfigurationError("strategy 'deepspeed' cannot do zero_grad between backward and step: use 'ddp'")
        if self.has_left:
            forget_gradients(self.engine)
        self.is_zeroed, self.has_left = True, False
        self.given_away.gone = self.given_away.waiting = False

    def check_zeroed(self) -> None:
        """Before a backward of a Trainer's. ConfigurationError where it would add to gradients of an earlier one, which
        their ranks have given away.
        """
        if not self.is_zeroed:
            raise ConfigurationError(
                "strategy 'deepspeed' cannot add to gradients that optimizer.zero_grad() has not zeroed since the last "
                "backward: accumulate them by Trainer(accumulate_grad_batches=...), or use 'fsdp' or 'ddp'"
            )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        raise ConfigurationError(
            "strategy 'deepspeed' cannot do add_param_group in training: its partitions are made at the start; use "
            "'ddp_sharded' or 'fsdp'"
        )

    def state_dict(self) -> dict[str, Any]:
        """Also when the fit is over."""
        with self.marks.there():
            return self._state_dict()

    def _state_dict(self) -> dict[str, Any]:
        _find_states(self.engine.optimizer)
        of_flats = list(self.inner.state.values())
        names, divided = sorted({name for state in of_flats for name in state}), _divided(of_flats)
        parameters = list(chain.from_iterable(group["params"] for group in self.groups))
        states: dict[int, dict[str, Any]] = {}
        for name in names:
            alone = next((s[name] for s in of_flats if name in s), None)
            for number, parameter in enumerate(parameters):
                if parameter.requires_grad:
                    value = _whole_state(self.engine, parameter, name) if name in divided else _own(alone)
                    states.setdefault(number, {})[name] = value
        numbers = iter(range(len(parameters)))
        groups = [
            {**_options(now), "params": [next(numbers) for _ in group["params"]]}
            for group, now in zip(self.groups, self.inner.param_groups, strict=True)
        ]
        return {"state": states, "param_groups": groups}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for group, saved in zip(self.inner.param_groups, state["param_groups"], strict=True):
            group.update(_options(saved))
        if not state["state"]:
            self.inner.state.clear()  # a new optimizer's: what it kept of earlier steps goes
            return
        like, divided = next(iter(state["state"].values())), _divided(state["state"].values())
        zero3 = self.engine.zero_optimization_stage() == 3  # its groups hold their parameters only while it steps
        flats = chain.from_iterable(group["params"] for group in self.inner.param_groups)
        for flat in self.engine.optimizer.fp32_partitioned_groups_flat if zero3 else flats:
            self.inner.state[flat] = {
                name: torch.zeros_like(flat, requires_grad=False) if name in divided else _own(value)
                for name, value in like.items()
            }
        _find_states(self.engine.optimizer)
        for number, parameter in enumerate(chain.from_iterable(group["params"] for group in self.groups)):
            for name, value in state["state"].get(number, {}).items():
                if name in divided:
                    _set_state(self.engine, parameter, name, value.to(parameter.device))


def _inner(engine: Any) -> Any:
    """The optimizer that makes the numbers, below ZeRO's."""
    return _inner_of(engine.optimizer)


def _inner_of(inner: Any) -> Any:
    while isinstance(getattr(inner, "optimizer", None), torch.optim.Optimizer):
        inner = inner.optimizer
    return inner


def _find_states(zero: Any) -> None:
    """Stages 1 and 2 look once for the parts of the state, after the first group's first step: the other groups have
    none by then.
    """
    if hasattr(zero, "_lazy_init_hp_params_optimizer_state") and _inner_of(zero).state:
        zero._hp_optimizer_states_linked = False
        zero._lazy_init_hp_params_optimizer_state()


def _options(group: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}


def _own(value: Any) -> Any:
    """A count of its own for each parameter: one tensor for all would be counted up by all."""
    return value.clone() if isinstance(value, torch.Tensor) else value


def _divided(states: Iterable[Mapping[str, Any]]) -> set[str]:
    """The names of what has an element for each of a parameter's; a count has no dimension."""
    return {name for state in states for name, v in state.items() if isinstance(v, torch.Tensor) and v.dim() > 0}


def _whole_state(engine: Any, parameter: torch.nn.Parameter, name: str) -> torch.Tensor:
    if engine.zero_optimization_stage() == 0:
        return _inner(engine).state[parameter][name]
    return safe_get_full_optimizer_state(parameter, name).detach().cpu().clone()


def _set_state(engine: Any, parameter: torch.nn.Parameter, name: str, value: torch.Tensor) -> None:
    if engine.zero_optimization_stage() == 0:
        _inner(engine).state[parameter][name] = value
    elif engine.zero_optimization_stage() < 3:
        safe_set_full_optimizer_state(parameter, value, name)
    else:
        size = safe_get_local_optimizer_state(parameter, name).numel()
        safe_set_local_optimizer_state(parameter, padded_part(value, size), name)


def load(engine: Any, module: torch.nn.Module, state: Mapping[str, Any], strict: bool) -> None:
    if engine.zero_optimization_stage() == 3:
        with deepspeed.zero.GatheredParameters(list(module.parameters()), modifier_rank=0):
            module.load_state_dict(state, strict=strict)
    else:
        module.load_state_dict(state, strict=strict)
    if engine.zero_optimization_stage():
        engine.optimizer.refresh_fp32_params()


def whole_weights(folder: Any, tag: str | None) -> dict[str, torch.Tensor]:
    """The module's state in float32, from the files of all processes."""
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

    try:
        state = get_fp32_state_dict_from_zero_checkpoint(str(folder), tag)
    except (FileNotFoundError, ValueError) as error:
        raise ConfigurationError(f"no checkpoint of DeepSpeed's in {str(folder)!r}: {error}") from None
    return {name.removeprefix("module."): value.detach().clone() for name, value in state.items()}
