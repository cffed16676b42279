"""FairScale's OSS and ShardedDataParallel, as today's torch and any model need them. Imports fairscale.

Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, SC 2020 (stages 1 and 2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
import torch.distributed as dist
from fairscale.nn.data_parallel import ShardedDataParallel
from fairscale.optim import OSS


class Divided(OSS):
    """`optimizer` with its parameters dealt out to the ranks: each keeps the state of its own and broadcasts them."""

    def __init__(self, optimizer: torch.optim.Optimizer):
        self._whole = optimizer
        self._trained: set[torch.nn.Parameter] = set()  # by any step so far
        self.held: dict[torch.nn.Parameter, torch.Tensor] = {}  # of OrderedShardedDataParallel
        super().__init__(optimizer.param_groups, optim=lambda groups: _share(optimizer, groups))
        self.defaults = optimizer.defaults

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """In training, too: parameters are dealt out anew, and their states with them, which OSS leaves where they
        were. All ranks call this.
        """
        if self.in_super_constructor:
            super().add_param_group(param_group)
            return
        self.consolidate_state_dict(recipient_rank=-1)
        state = self.state_dict()
        torch.optim.Optimizer.add_param_group(self, param_group)
        group = self.param_groups[-1]
        first = sum(len(saved["params"]) for saved in state["param_groups"])
        numbers = range(first, first + len(group["params"]))
        state["param_groups"].append({**group, "params": list(numbers)})
        self._clear_cache()
        self.optim = _share(self._whole, self.partition_parameters()[self.rank])
        load(self, state)

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in chain.from_iterable(group["params"] for group in self.param_groups):
            self.held.pop(parameter, None)
        super().zero_grad(set_to_none)

    def _setup_flat_buffers(self) -> None:
        """Parameters stay where they are. FairScale's buffers have those that were not frozen at the start, and send
        what lay there then, also where the user's code has given a parameter another tensor.
        """

    def _broadcast_params(self) -> None:
        """After a step: what its owner has made of each parameter, to all ranks."""
        self._trained.update(p for group in self.param_groups for p in group["params"] if p.requires_grad)
        sent = []
        for per_rank in self._per_device_params.values():
            for rank, parameters in enumerate(per_rank):
                for part in _of_one_type(p for p in parameters if p in self._trained):
                    flat = torch.cat([p.detach().reshape(-1) for p in part])
                    work = dist.broadcast(flat, self._local_to_global_rank[rank], group=self.group, async_op=True)
                    sent.append((work, flat, part, rank))
        for work, flat, part, rank in sent:
            work.wait()
            if rank != self.rank:
                for parameter, value in zip(part, flat.split([p.numel() for p in part]), strict=True):
                    parameter.detach().copy_(value.view_as(parameter))

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """A whole optimizer's state, of which a new one has none: OSS would leave what its parts have."""
        load(self, state_dict)


def _of_one_type(parameters: Iterable[torch.nn.Parameter]) -> Iterable[list[torch.nn.Parameter]]:
    found: dict[torch.dtype, list[torch.nn.Parameter]] = {}
    for parameter in parameters:
        found.setdefault(parameter.dtype, []).append(parameter)
    return found.values()


def _share(optimizer: torch.optim.Optimizer, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    """The same optimizer over fewer parameters. Copied, not constructed: what its class wants to know is in it."""
    share = object.__new__(type(optimizer))
    share.__dict__.update(optimizer.__dict__)
    for name in ("step", "zero_grad", "add_param_group", "state_dict"):  # wrappers, bound to the whole optimizer
        share.__dict__.pop(name, None)
    share.param_groups = groups
    mine = {parameter for group in groups for parameter in group["params"]}
    share.state = defaultdict(dict, {p: state for p, state in optimizer.state.items() if p in mine})
    return share


def load(oss: OSS, state: Mapping[str, Any]) -> None:
    """Each rank takes its share of a whole state, as torch's optimizers take it. `state` is left as it is."""
    numbers = {p: i for i, p in enumerate(chain.from_iterable(group["params"] for group in oss.param_groups))}
    mine = [p for group in oss.optim.param_groups for p in group["params"]]
    place = {p: i for i, p in enumerate(mine)}
    oss.optim.load_state_dict(
        {
            "state": {place[p]: state["state"][numbers[p]] for p in mine if numbers[p] in state["state"]},
            "param_groups": [
                {**saved, "params": [place[p] for p in group["params"]]}
                for saved, group in zip(state["param_groups"], oss.optim.param_groups, strict=True)
            ],
        }
    )
    for group, saved in zip(oss.param_groups, state["param_groups"], strict=True):
        group.update({name: value for name, value in saved.items() if name != "params"})


class OrderedShardedDataParallel(ShardedDataParallel):
    """Gradients go to their owners in one order on all ranks, whichever parameters a rank's batch has used.

    Without FairScale's buckets: those keep gradients as views, which `zero_grad(set_to_none=True)`, torch's default,
    cuts off without a word, and they keep all gradients on all ranks. Call `finish` after a backward that is not under
    `no_sync`.
    """

    def __init__(self, module: torch.nn.Module, optimizers: list[OSS], group: dist.ProcessGroup):
        self._launch: dict[int, Callable[[], None]] = {}
        self._ready: set[int] = set()
        self._next = 0
        self._mask_group = group
        self._steps = False  # in training_step, whose own backward is of no step
        self._reduced: set[torch.nn.Parameter] = set()  # by a `finish`: this rank is their owner
        self.held: dict[torch.nn.Parameter, torch.Tensor] = {}
        for optimizer in optimizers:
            optimizer.held = self.held
        super().__init__(module, optimizers, sync_models_at_startup=False, reduce_buffer_size=0)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        self._steps = True
        try:
            return super().forward(*inputs, **kwargs)
        finally:
            self._steps = False

    def _get_reduce_fn(self, index: int, param: torch.Tensor, dst_rank: int) -> Callable:
        self._launch[index] = super()._get_reduce_fn(index, param, dst_rank)

        def ready(*_: Any) -> None:
            if self._should_accumulate_grads or self._steps:
                return
            if param.grad is None:  # torch also tells of a backward that brings none
                return
            if index in self._ready:
                raise RuntimeError(
                    f"a parameter of shape {tuple(param.shape)} got its gradient twice in one backward, as reentrant "
                    "checkpoints of one module do: use torch.utils.checkpoint with use_reentrant=False, or 'ddp'"
                )
            self._ready.add(index)
            self._launch_in_order()

        return ready

    def _launch_in_order(self) -> None:
        """From the last parameter to the first, as far as they are ready."""
        self._bucket_flush_callback_set = True  # `finish` flushes; FairScale's callback would end an inner backward
        while self._next in self._ready:
            self._launch[self._next]()
            self._next += 1

    def _detect_train_change(self) -> bool:
        """Also parameters that an optimizer has got since."""
        every = [p for o in self._sharded_optimizers for p in chain(*chain(*o._per_device_params.values()))]
        known: list[Any] = self._all_params  # type: ignore[has-type]
        if len(every) > len(known):
            self._all_params = every
        return super()._detect_train_change()

    def _setup_backward_hooks(self) -> None:
        position = {p: i for i, p in enumerate(self.module.parameters())}
        self._trainable_params.sort(key=lambda p: -position.get(p, 0))
        self._launch.clear()
        super()._setup_backward_hooks()

    def _clear_counters(self) -> None:
        super()._clear_counters()
        self._ready.clear()
        self._next = 0

    def hold(self) -> None:
        """Before a backward: gradients that nobody has zeroed since they were reduced, on their owners alone. `finish`
        adds what this backward and the next ones bring to them.
        """
        for parameter in self._reduced:
            if parameter.grad is not None:
                self.held[parameter], parameter.grad = parameter.grad, None
        self._reduced.clear()

    def finish(self) -> None:
        """Reduce what no hook has: parameters that another rank's batch has used, or an earlier one under no_sync."""
        self._finish()
        for parameter, gradient in self.held.items():
            parameter.grad = gradient if parameter.grad is None else gradient + parameter.grad
        mine = dist.get_rank()
        self._reduced.update(self.held, (p for p, owner in self._trainable_param_to_rank.items() if owner == mine))
        self.held.clear()

    def _finish(self) -> None:
        if not self._trainable_params:
            return
        used = torch.tensor([p.grad is not None or i < self._next for i, p in enumerate(self._trainable_params)])
        used = used.to(torch.uint8)
        for index in range(self._next, len(self._trainable_params)):
            parameter = self._trainable_params[index]
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            self._ready.add(index)
        self._launch_in_order()
        self._consume_work_handles()
        dist.all_reduce(used, dist.ReduceOp.MAX, group=self._mask_group)
        for index in (used == 0).nonzero().flatten().tolist():
            self._trainable_params[index].grad = None  # as in one process: nobody has used it

    @contextmanager
    def whole_gradients(self) -> Iterator[None]:
        """Inside, every rank has the gradients that their owners have; what is done to them, the owners keep. So it is
        with those of another optimizer, whose turn it is not.
        """
        mine = dist.get_rank()
        owners = dict(chain.from_iterable(o._param_to_rank.items() for o in self._sharded_optimizers))
        there = torch.tensor([p.grad is not None for p in owners], dtype=torch.uint8)
        dist.all_reduce(there, dist.ReduceOp.MAX, group=self._mask_group)
        for (parameter, rank), is_there in zip(owners.items(), there.tolist(), strict=True):
            if is_there:
                gradient = torch.empty_like(parameter) if rank != mine else parameter.grad.contiguous()
                dist.broadcast(gradient, rank)
                parameter.grad = gradient
        try:
            yield
        finally:
            for parameter, rank in owners.items():
                if rank != mine:
                    parameter.grad = None
