"""`Runtime`: the small handle that carries a training loop which stays as it is, and on which `Trainer` stands.

    runtime = Runtime()
    model, optimizer = runtime.setup(model, optimizer)
    loader = runtime.setup_dataloaders(loader)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        runtime.backward(loss)
        optimizer.step()

Run it with `python script.py`, or on several devices with `ptrun --devices 4 script.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import torch

from . import collectives, environment, kept, placed, settings
from .accelerators.current import be_on_own_card
from .checkpoint.write import write_atomically
from .data import divide_loader, move_to
from .data.divide import bounds
from .data.move import batch_size_of, slice_batch
from .errors import unknown_name
from .precision import choose_precision
from .seeding import separate_ranks

if TYPE_CHECKING:
    from .draws import OneStream

REDUCTIONS = ("mean", "sum")
be_on_own_card()  # as it is imported: a script may place things above its Trainer


class Runtime:
    """Devices, ranks, dividing and reducing. `loss_reduction`: how the losses given to `backward` treat their batch."""

    def __init__(
        self,
        accelerator: str | None = None,
        devices: Any = None,
        strategy: Any = None,
        *,
        gpus: Any = None,
        num_nodes: int = 1,
        precision: Any = None,
        global_batch: bool = False,
        loss_reduction: str = "mean",
        plugins: Any = None,
    ):
        asked = settings.resolve(accelerator, devices, strategy, gpus, num_nodes, precision, global_batch, plugins)
        self.settings = asked
        self.place = asked.place
        self.world_size = asked.place.world_size
        self.global_batch = asked.global_batch
        self.loss_reduction = checked_reduction(loss_reduction)
        self.strategy = asked.strategy
        self.device = asked.device
        self.on_cpu = asked.kind == "cpu"
        self.models_on_cpu = self.on_cpu  # there, or back there since the last run of a Trainer
        self.precision = choose_precision(asked.precision, self.device.type)
        self._models: list[torch.nn.Module] = []
        self.part: tuple[int, int] | None = None  # samples here and in all of the current global batch
        self.last_share: float | None = None  # of the batch before, once there is no current one
        self.repeated = False  # every rank has all of the data, so that rank 0's is the whole
        self.stream: OneStream | None = None  # of random numbers, in a fit whose batches are cut
        self._group: Any = None
        self._parts: list[int] | None = None  # for each part of the data, the first rank that has it
        placed.latest = self
        if not self.on_cpu and asked.kind == "cuda":
            torch.cuda.set_device(self.device)
        self.strategy.attach(self)

    @classmethod
    def shared(cls) -> Runtime:
        """The one Runtime of this process, for loops that are spread over several files."""
        return kept.shared()

    # -- where am I -----------------------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        return self.place.rank

    @property
    def is_global_zero(self) -> bool:
        return self.place.rank == 0

    def print(self, *values: Any, **options: Any) -> None:
        """`print`, on rank 0."""
        if self.place.rank == 0:
            print(*values, **options)

    @property
    def group(self) -> Any:
        """The gloo group of all ranks, for what is on the CPU; meets the other processes (starts them, if need be)
        on first use.
        """
        if self._group is None and self.world_size > 1:
            from .launch import connect

            self._group = connect(self.settings, self.strategy)
        return self._group

    def join(self) -> None:
        """This process has become a rank since the handle was made (a spawned one): learn which."""
        self.place = environment.place()
        self.settings = replace(self.settings, place=self.place)
        self.world_size = self.place.world_size
        self.device = self.settings.device
        if self.settings.kind == "cuda":
            torch.cuda.set_device(self.device)

    def connect(self) -> None:
        """Meet the other processes now. Everything that needs them does it by itself."""
        _ = self.group
        self.strategy.use_device()

    # -- models, optimizers and data ------------------------------------------------------------------------------

    def setup(self, model: torch.nn.Module, *optimizers: Any) -> Any:
        """Place `model` and start all ranks from rank 0's weights; returns what was given, the same objects."""
        self.strategy.check({"kept": True})
        self.connect()
        self.strategy.place(model)
        self.strategy.follow(model)
        for optimizer in optimizers:
            self.strategy.follow_optimizer(optimizer)
        self._models.append(model)
        return (model, *optimizers) if optimizers else model

    def setup_optimizer(self, optimizer: Any, *models: torch.nn.Module) -> Any:
        """For kept loops: the models start from rank 0's weights, every rank draws what rank 0 draws; returns
        `optimizer`.

        The script places its models itself, with `own_device`.
        """
        return kept.follow(self, optimizer, models)

    def own_device(self, chosen: Any) -> torch.device:
        """This rank's device where the script chose an accelerator; the CPU where it chose that and ptrun says
        nothing.
        """
        return kept.own_device(self, chosen)

    def setup_dataloaders(self, *loaders: Any, train: bool = True) -> Any:
        """Divide the batches of `loaders` among the ranks; with one process on the CPU, the same objects come back.

        With `train=False` whole batches go round (rank r evaluates r, r + world, ...), so that counts summed by
        `all_reduce` are exact; nothing is padded and nothing seen twice.
        """
        if self.world_size > 1:
            self.connect()
            separate_ranks(self.rank)
        divided = tuple(divide_loader(loader, self, train) for loader in loaders)
        return divided[0] if len(divided) == 1 else divided

    def divide(self, *batch: Any) -> Any:
        """For loops without a loader: this rank's part of a global batch that every rank holds alike.

        Sets `share`, and so the weight of the next losses. A loop that neither divides nor has a loader is repeated
        alike on every rank, which needs no call: each rank's gradient then is the whole one.
        """
        value = batch[0] if len(batch) == 1 else batch
        if self.world_size == 1:
            return value
        total = batch_size_of(value) or 1
        start, stop = bounds(total, *self.strategy.data_place())
        self.note_share(stop - start, total)
        return move_to(slice_batch(value, *((start, stop) if stop > start else (0, 1))), self.device)

    # -- shares ---------------------------------------------------------------------------------------------------

    @property
    def share(self) -> float:
        """The fraction of the current global training batch that this rank holds; 1 / world where every rank holds
        the same.
        """
        if self.world_size == 1:
            return 1.0
        return self.part[0] / self.part[1] if self.part is not None else 1 / self.strategy.data_place()[1]

    def note_share(self, count: int, total: int) -> None:
        self.part = (count, total)

    def forget_share(self) -> None:
        if self.part is not None:
            self.last_share, self.part = self.share, None

    def weight(self, loss_reduction: str) -> float:
        """What a loss is multiplied by, so that the average over ranks is the loss of the global batch."""
        if self.world_size == 1 or self.part is None:
            return 1.0
        count, total = self.part
        world = self.strategy.data_place()[1]
        if loss_reduction == "sum":
            return float(world) if count else 0.0
        return count * world / total

    # -- every step -----------------------------------------------------------------------------------------------

    def backward(self, loss: torch.Tensor, *args: Any, loss_reduction: str | None = None, **kwargs: Any) -> None:
        """`loss.backward(...)`; when it returns, gradients are those of the global batch on every rank."""
        weight = self.weight(checked_reduction(loss_reduction) if loss_reduction else self.loss_reduction)
        self.strategy.backward(loss if weight == 1.0 else loss * weight, *args, **kwargs)

    def no_sync(self) -> AbstractContextManager:
        """Inside, `backward` leaves gradients as they are on this rank; the first one after it brings them together."""
        return self.strategy.no_sync()

    def all_reduce(self, value: Any, op: str = "sum") -> Any:
        """Sum, mean, max or min over ranks of a number, a tensor, or containers of them; types stay, and a number that
        other ranks have as a float or a tensor is taken for one.
        """
        if self.world_size > 1:
            value = collectives.matched(value, self.group, self.world_size)
        return self.reduce_alike(value, op)

    def reduce_alike(self, value: Any, op: str = "sum") -> Any:
        """`all_reduce` where all ranks bring the same types for sure, as in a step of training: a message less."""
        return collectives.all_reduce(value, op, self.group, self.world_size)

    def batch_mean(self, value: Any) -> Any:
        """The mean over the last global training batch of what each rank's part of it gave: a number or a tensor, and
        containers of them. In one process the very same object comes back.
        """
        if self.world_size == 1:
            return value
        share = self._share_of_last()
        return self.reduce_alike(collectives.map_leaves(value, lambda leaf: _weighed(leaf, share)))

    def batch_sum(self, value: Any) -> Any:
        """The sum over the last global training batch of what each rank's part of it gave; a rank whose part is empty
        adds nothing. In one process the very same object comes back.
        """
        if self.world_size == 1:
            return value
        empty = self._share_of_last() == 0.0
        return self.reduce_alike(collectives.map_leaves(value, lambda leaf: leaf * 0) if empty else value)

    def _share_of_last(self) -> float:
        return self.share if self.part is not None or self.last_share is None else self.last_share

    def broadcast(self, value: Any) -> Any:
        """Rank 0's `value`, on every rank."""
        return value if self.world_size == 1 else collectives.broadcast_object(value, self.group, self.rank)

    def all_gather(self, data: Any, sync_grads: bool = False) -> Any:
        """Tensors and numbers of all ranks, stacked along a new first dimension; in one process, `data` itself."""
        if self.world_size == 1:
            return data
        return collectives.all_gather(data, self.group, self.world_size, sync_grads)

    def distinct(self, gathered: list[Any]) -> list[Any]:
        """Of what all ranks gave, one for each part of the data, in the order of the parts."""
        if self.repeated:
            return gathered[:1]
        if self._parts is None:
            places = collectives.gather_objects(
                self.strategy.data_place(), self.group, self.world_size, "its part of the data"
            )
            self._parts = [places.index((part, places[0][1])) for part in range(places[0][1])]
        return [gathered[rank] for rank in self._parts]

    def sync_buffers(self) -> None:
        """Give every rank rank 0's buffers (running statistics), so that all evaluate the same model."""
        if self.world_size > 1:
            buffers = [buffer for model in self._models for buffer in model.buffers()]
            collectives.broadcast_tensors(buffers, host=self.group)

    def follow_buffers(self, model: torch.nn.Module) -> None:
        """Count `model` among those that `sync_buffers` evens out."""
        if not any(known is model for known in self._models):
            self._models.append(model)

    @property
    def places_batches(self) -> bool:
        return not self.on_cpu or self.precision.dtype is not None

    def place_batch(self, batch: Any) -> Any:
        """`batch` on the device, in the dtype of the precision; on the CPU in precision 32, the same object."""
        return self.precision.convert_batch(move_to(batch, self.device))

    def barrier(self) -> None:
        if self.world_size > 1:
            torch.distributed.barrier(group=self.group)

    def save(self, obj: Any, path: Any, save: Callable[[Any, Any], None] = torch.save) -> None:
        """`torch.save` on rank 0, written beside and renamed: the file is whole or absent."""
        if self.is_global_zero:
            whole = collectives.on_host(obj) if self.device.type == "xla" else obj  # loads where there is no torch_xla
            write_atomically(path, lambda file: save(whole, file))


def checked_reduction(name: str) -> str:
    if name not in REDUCTIONS:
        raise unknown_name("loss_reduction", name, REDUCTIONS)
    return name


def _weighed(leaf: Any, share: float) -> Any:
    """A number, NumPy's too, or a tensor times `share`; what is neither stays."""
    if isinstance(leaf, torch.Tensor):
        return leaf.detach() * share
    return float(leaf) * share if isinstance(leaf, Real) and not isinstance(leaf, bool) else leaf
