"""Parameters that a step leaves out, found when its backward is over.

DistributedDataParallel waits for every gradient; `find_unused_parameters` looks through the graph before each backward
and sends one message more after it. Here a rank looks after the backward which gradients are new, and brings zeros for
the others. Whether any rank has a gradient travels in a parameter of its own, among those of the last bucket.
"""

from __future__ import annotations

from typing import Any

import torch


class LeftOut:
    """`flags`: a parameter with an element for each of `parameters`, registered with DDP before them. `sparse`: the ids
    of those whose gradients are sparse.
    """

    def __init__(self, parameters: list[torch.nn.Parameter], sparse: set[int], flags: torch.nn.Parameter):
        self.parameters, self.sparse, self.flags = parameters, sparse, flags
        self.all_there = torch.ones_like(flags)
        self.before: list[Any] = []
        self.graph: Any = None  # of the loss
        self.suspects: dict[int, Any] = {}  # what was missing once, with our hooks
        self.reached: set[int] = set()  # of these, where this backward has come to

    def note(self, loss: torch.Tensor) -> None:
        """Before a backward: which gradients there are."""
        self.graph = loss.grad_fn
        self.reached.clear()
        self.before = [None if p.grad is None else (p.grad, p.grad._version) for p in self.parameters]

    def bring(self) -> None:
        """After a backward: zeros for what it left out, so that the gradients of all ranks meet. What no rank has a
        gradient for has none afterwards.
        """
        missing = [
            index
            for index, (parameter, before) in enumerate(zip(self.parameters, self.before, strict=True))
            if (parameter.grad is None if before is None else _untouched(parameter.grad, before))
        ]
        if missing:
            self._suspect(missing)
        self.before, self.flags.grad, self.graph = [], None, None
        if not missing:
            torch.autograd.backward(self.flags, self.all_there)  # no loss: whoever counts Tensor.backward sees none
            return
        there = torch.tensor([float(p.grad is not None) for p in self.parameters], device=self.flags.device)
        without = [index for index in missing if self.parameters[index].grad is None]
        left_out = [self.parameters[index] for index in missing if index not in self.reached]
        frozen = [parameter for parameter in left_out if not parameter.requires_grad]
        for parameter in frozen:
            parameter.requires_grad_(True)
        torch.autograd.backward([self.flags, *left_out], [there, *map(self._nothing, left_out)])
        for parameter in frozen:
            parameter.requires_grad_(False)
        anywhere = self.flags.grad.tolist()  # type: ignore[attr-defined]
        for index in without:
            if not anywhere[index]:
                self.parameters[index].grad = None

    def _suspect(self, missing: list[int]) -> None:
        """A backward may come to a parameter and bring it no gradient: DDP then has zeros for it already."""
        new = [index for index in missing if index not in self.suspects and self.parameters[index].requires_grad]
        found = leaves_of(self.graph) if new else ()
        for index in new:
            parameter = self.parameters[index]
            if id(parameter) in found:
                self.reached.add(index)
            hook = parameter.register_post_accumulate_grad_hook(lambda _, index=index: self.reached.add(index))
            self.suspects[index] = hook

    def release(self) -> None:
        for hook in self.suspects.values():
            hook.remove()
        self.suspects.clear()

    def _nothing(self, parameter: torch.nn.Parameter) -> torch.Tensor:
        if id(parameter) not in self.sparse:
            return torch.zeros_like(parameter)
        no_rows = torch.zeros(1, 0, dtype=torch.int64, device=parameter.device)
        return torch.sparse_coo_tensor(no_rows, parameter.new_zeros(0, *parameter.shape[1:]), parameter.shape)


def leaves_of(graph: Any) -> set[int]:
    """The ids of the parameters that autograd's graph ends at, as far as it is there before backward."""
    found: set[int] = set()
    seen, left = set(), [graph]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        found.add(id(getattr(node, "variable", None)))
        left += [following for following, _ in node.next_functions]
    return found


def sparse_parameters(module: torch.nn.Module) -> set[int]:
    """The ids of parameters with sparse gradients, by the rule of DDP."""
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    return {id(part.weight) for part in module.modules() if isinstance(part, kinds) and part.sparse}


def _untouched(gradient: Any, before: tuple[Any, int]) -> bool:
    return gradient is before[0] and gradient._version == before[1]
