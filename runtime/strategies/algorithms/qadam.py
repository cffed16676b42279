"""Adam whose momentum is averaged in eight bits, once its variance has settled.

Tang et al., 1-bit Adam: Communication Efficient Large-Scale Training with Adam's Convergence Speed, ICML 2021; eight
bits instead of one, as in BAGUA, need no error feedback.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from ...errors import ConfigurationError
from .base import Algorithm, flattened, mean_over_ranks, unflatten
from .gradients import scatter_gather_mean

LEAST = 0.1


class QAdam(Algorithm):
    """`warmup_steps` steps of Adam with exact gradients; then the variance is frozen, gradients stay where they were
    computed, and the momentum that they go into is averaged in eight bits.

    Tang et al., 1-bit Adam, ICML 2021.
    """

    def __init__(self, warmup_steps: int = 100, hierarchical: bool = False):
        if warmup_steps < 1:
            raise ConfigurationError(f"warmup_steps={warmup_steps}: the variance needs at least 1")
        self.warmup_steps = warmup_steps

    def start(self, module: torch.nn.Module, optimizers: list[Any]) -> list[Any]:
        super().start(module, optimizers)
        self.replaced = [QuantizedAdam(optimizer, self.warmup_steps) for optimizer in optimizers]
        return list(self.replaced)

    def reduce(self, flat: torch.Tensor) -> None:
        if any(optimizer.warming for optimizer in self.replaced):
            mean_over_ranks(flat)


class QuantizedAdam(torch.optim.Optimizer):
    """In the place of a torch.optim.Adam or AdamW: its groups, and states under the names that it has itself."""

    def __init__(self, adam: Any, warmup_steps: int):
        if not isinstance(adam, torch.optim.Adam):
            raise ConfigurationError(
                f"algorithm 'qadam' compresses Adam's momentum, and configure_optimizers made a {type(adam).__name__}: "
                "use torch.optim.Adam or AdamW"
            )
        if adam.param_groups[0].get("amsgrad") or adam.param_groups[0].get("maximize"):
            raise ConfigurationError("algorithm 'qadam' has neither amsgrad nor maximize")
        super().__init__(adam.param_groups, adam.defaults)
        self.decoupled = isinstance(adam, torch.optim.AdamW) or adam.param_groups[0].get(
            "decoupled_weight_decay", False
        )
        self.warmup_steps = warmup_steps

    @property
    def warming(self) -> bool:
        """Is the next step one of the exact ones?"""
        return self.done < self.warmup_steps

    @property
    def done(self) -> int:
        """How many steps have been made, those before a resume included."""
        return max((int(state["step"]) for state in self.state.values() if "step" in state), default=0)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        warming = self.warming
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            parameters = [p for p in group["params"] if p.grad is not None]
            for p in parameters:
                self._take_gradient(p, group, beta1, beta2, warming)
            if not warming and parameters:
                self._average_moments(parameters, group)
            for p in parameters:
                self._move(p, group, beta1)
        return loss

    def _average_moments(self, parameters: list[Any], group: dict) -> None:
        """In units of each number's own step, so that rounding is small beside it. The variance is everyone's."""
        moments = [self.state[p]["exp_avg"] for p in parameters]
        widths = flattened(self._deviation(p, group) for p in parameters)
        unflatten(scatter_gather_mean(flattened(moments) / widths) * widths, moments)

    def _take_gradient(self, p: Any, group: dict, beta1: float, beta2: float, warming: bool) -> None:
        state = self.state[p]
        if not state:
            state.update(step=torch.tensor(0.0), exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
        state["step"] += 1
        gradient = p.grad
        if group["weight_decay"]:
            if self.decoupled:
                p.mul_(1 - group["lr"] * group["weight_decay"])
            else:
                gradient = gradient.add(p, alpha=group["weight_decay"])
        state["exp_avg"].mul_(beta1).add_(gradient, alpha=1 - beta1)
        if warming:
            state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)

    def _move(self, p: Any, group: dict, beta1: float) -> None:
        state = self.state[p]
        correction = 1 - math.pow(beta1, int(state["step"]))
        p.addcdiv_(state["exp_avg"], self._deviation(p, group), value=-float(group["lr"]) / correction)

    def _deviation(self, p: Any, group: dict) -> torch.Tensor:
        """The root of the variance, corrected for its start at zero; once it is frozen, at least `LEAST` of what is
        usual in the tensor, so that numbers which the warm-up hardly moved do not leap.
        """
        state = self.state[p]
        correction = 1 - math.pow(group["betas"][1], min(int(state["step"]), self.warmup_steps))
        deviation = (state["exp_avg_sq"] / correction).sqrt_()
        if int(state["step"]) > self.warmup_steps:
            deviation.clamp_min_(LEAST * float(deviation.square().mean().sqrt()))
        return deviation.add_(group["eps"])
