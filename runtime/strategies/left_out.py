"""Parameters that a step leaves out, found when its backward is over.

DistributedDataParallel waits for every gradient; `find_unused_parameters` looks through the graph before each backward
and sends one message more after it. Here a rank looks after the backward which gradients are new, and brings zeros for
the others: a step that uses everything costs a look.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import torch
import torch.distributed as dist

_numbers = count()  # of the runs of this process: the same on all ranks


class LeftOut:
    """`parameters`: what DDP trains. `sparse`: the ids of those whose gradients are sparse."""

    def __init__(self, parameters: list[torch.nn.Parameter], sparse: set[int]):
        self.parameters, self.sparse = parameters, sparse
        self.lists = Lists()
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
        self.lists.step += 1
        if missing:
            self._suspect(missing)
            self._bring_zeros(missing)
        self.before, self.graph = [], None

    def _bring_zeros(self, missing: list[int]) -> None:
        without = [index for index in missing if self.parameters[index].grad is None]
        if without:
            self._meet()
            self.lists.tell(without)
        left_out = [self.parameters[index] for index in missing if index not in self.reached]
        frozen = [parameter for parameter in left_out if not parameter.requires_grad]
        for parameter in frozen:
            parameter.requires_grad_(True)
        if left_out:  # no loss: whoever counts Tensor.backward sees none
            torch.autograd.backward(left_out, [self._nothing(parameter) for parameter in left_out])
        for parameter in frozen:
            parameter.requires_grad_(False)
        if without:
            self._meet()
            for index in self.lists.common(without):
                self.parameters[index].grad = None

    def _meet(self) -> None:
        """Until the others have come through the last backward, too: on a CPU that itself waits for them."""
        if self.parameters[0].device.type != "cpu":
            torch.accelerator.synchronize(self.parameters[0].device)

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


class Lists:
    """What ranks have no gradient for, in the store of the process group. A rank tells it before it sends its zeros, so
    whoever has come through the backward that needs them can read it; who misses nothing says nothing.
    """

    def __init__(self) -> None:
        self.step = 0
        self.store: Any = dist.distributed_c10d._get_default_store()
        self.run = f"ptmigrate/left_out/{next(_numbers)}"

    def tell(self, indices: list[int]) -> None:
        key = self._key(dist.get_rank())
        self.store.set(key, f"{self.step}:{','.join(map(str, indices))}")
        self.store.check([key])  # set does not wait until the store has it; this answer comes after it

    def common(self, indices: list[int]) -> set[int]:
        """Those of this rank's `indices` that every rank has told of in this step."""
        keys = [self._key(rank) for rank in range(dist.get_world_size())]
        if not self.store.check(keys):
            return set()
        told = [value.decode().split(":") for value in self.store.multi_get(keys)]
        if any(int(step) != self.step for step, _ in told):
            return set()
        return set(indices).intersection(*({int(i) for i in listed.split(",") if i} for _, listed in told))

    def _key(self, rank: int) -> str:
        """Two for each rank in turn: nobody comes to the next step but one before all have read this one's."""
        return f"{self.run}/{rank}/{self.step % 2}"


def leaves_of(graph: Any) -> set[int]:
    """The ids of the parameters that autograd's graph ends at, as far as it is there before backward."""
    return {id(getattr(node, "variable", None)) for node in nodes_of(graph)}


def has_functions(graph: Any) -> bool:
    """Are there functions of Python's in autograd's graph? Such a one may come to a parameter with no gradient for it;
    DDP has sent zeros by the time that shows, and only torch's search tells them from gradients.
    """
    return any(isinstance(node, torch.autograd.function.BackwardCFunction) for node in nodes_of(graph))


def nodes_of(graph: Any) -> set[Any]:
    seen: set[Any] = set()
    left = [graph]
    while left:
        node = left.pop()
        if node is not None and node not in seen:
            seen.add(node)
            left += [following for following, _ in node.next_functions]
    return seen


def sparse_parameters(module: torch.nn.Module) -> set[int]:
    """The ids of parameters with sparse gradients, by the rule of DDP."""
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    return {id(part.weight) for part in module.modules() if isinstance(part, kinds) and part.sparse}


def _untouched(gradient: Any, before: tuple[Any, int]) -> bool:
    return gradient is before[0] and gradient._version == before[1]
