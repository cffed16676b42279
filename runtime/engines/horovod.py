"""Horovod's processes, optimizers and averages. Imports horovod."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import horovod.torch as hvd
import torch
import torch.distributed as dist
from horovod.torch.optimizer import _DistributedOptimizer

from .. import environment
from ..checkpoint.randomness import untouched
from ..collectives import broadcast_tensors
from ..errors import ConfigurationError
from ..launch.connect import MEETING_LIMIT
from ..launch.ports import free_port
from ..strategies.averaging import GradientAverager

if TYPE_CHECKING:
    from ..settings import Settings

# What Horovod can send.
KINDS = (torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64)

_server: Any = None  # Horovod's meeting point, kept by rank 0 for as long as the process lives


# -- processes -----------------------------------------------------------------------------------------------------


def meet(settings: Settings, init_group: Callable[[Settings], None]) -> None:
    """Bring up Horovod and torch's process group, whichever the launcher has told how to meet first."""
    if environment.by_horovodrun():
        hvd.init()
        _tell_torch()
        init_group(settings)
        return
    init_group(settings)
    with untouched():  # Horovod looks for its port at random
        _tell_horovod()
        hvd.init()


def _tell_torch() -> None:
    """Under horovodrun: rank 0 says where torch's ranks meet."""
    alone = os.environ.get("HOROVOD_CROSS_SIZE", "1") == "1"
    host = "127.0.0.1" if alone else socket.gethostbyname(socket.gethostname())
    host, port = hvd.broadcast_object((host, free_port()), root_rank=0, name="where torch meets")
    place = environment.place()
    os.environ[environment.PREFIX + "HOROVODRUN"] = "1"
    os.environ.update(
        MASTER_ADDR=host,
        MASTER_PORT=str(port),
        RANK=str(place.rank),
        WORLD_SIZE=str(place.world_size),
        LOCAL_RANK=str(place.local_rank),
        LOCAL_WORLD_SIZE=str(place.local_world_size),
    )


def _tell_horovod() -> None:
    """Under ptrun: rank 0 opens Horovod's meeting point, as horovodrun would."""
    global _server
    from horovod.runner.common.util.hosts import SlotInfo
    from horovod.runner.http.http_server import RendezvousServer

    place = environment.place()
    nodes = place.world_size // place.local_world_size
    slot = SlotInfo(
        hostname=f"node{place.node_rank}",
        rank=place.rank,
        local_rank=place.local_rank,
        cross_rank=place.node_rank,
        size=place.world_size,
        local_size=place.local_world_size,
        cross_size=nodes,
    )
    found: list[Any] = [None] * place.world_size
    dist.all_gather_object(found, (slot, _unreachable() if nodes > 1 else None))
    slots = [each for each, _ in found]
    unreachable = next((name for _, name in found if name), None)
    if unreachable is not None:
        raise ConfigurationError(
            f"strategy 'horovod' reaches machines by their own names, and {unreachable!r} means 127.0.0.1 there: write "
            "the machine's address beside its name into its /etc/hosts, or use 'ddp'"
        )
    address: list[Any] = [None]
    if place.rank == 0:
        _server = RendezvousServer()
        address = [(os.environ["MASTER_ADDR"] if nodes > 1 else "127.0.0.1", _server.start())]
        _server.init(slots)
    dist.broadcast_object_list(address, 0)
    host, port = address[0]
    os.environ.update(
        {f"HOROVOD_{name.upper()}": str(value) for name, value in vars(slot).items()},
        HOROVOD_GLOO_RENDEZVOUS_ADDR=host,
        HOROVOD_GLOO_RENDEZVOUS_PORT=str(port),
        HOROVOD_CONTROLLER="gloo",
        HOROVOD_CPU_OPERATIONS="gloo",
    )
    # As long as torch's groups: after Horovod's own 30 s a machine that stands still for a while ends the training.
    os.environ.setdefault("HOROVOD_GLOO_TIMEOUT_SECONDS", str(round(MEETING_LIMIT.total_seconds())))
    if nodes == 1:
        os.environ.setdefault("HOROVOD_GLOO_IFACE", "lo")


def _unreachable() -> str | None:
    """This machine's name, where it means the loopback and the meeting place is elsewhere."""
    name = socket.gethostname()
    with contextlib.suppress(OSError):
        loops = [socket.gethostbyname(host).startswith("127.") for host in (name, os.environ["MASTER_ADDR"])]
        return name if loops == [True, False] else None
    return None


# -- optimizers ----------------------------------------------------------------------------------------------------


def broadcast(named: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Overwrite tensors with those of rank 0; torch takes those whose kinds Horovod does not know."""
    tensors = [(name, tensor.detach()) for name, tensor in named]
    mine = [pair for pair in tensors if pair[1].dtype in KINDS]
    sent = [(name, tensor.contiguous()) for name, tensor in mine]  # all that Horovod takes
    hvd.broadcast_parameters(sent, root_rank=0)
    for (_, tensor), (_, received) in zip(mine, sent, strict=True):
        if received is not tensor:
            tensor.copy_(received)
    broadcast_tensors([tensor for _, tensor in tensors if tensor.dtype not in KINDS])


def distributed(optimizer: torch.optim.Optimizer, number: int, names: Mapping[Any, str], compression: Any) -> Any:
    """hvd.DistributedOptimizer of any optimizer.

    Horovod calls the constructor of the optimizer's class again with the parameters alone, which many a class does not
    take; this one carries over what the optimizer is. Steps never synchronize by themselves: the strategy has done it.
    """

    def again(self: Any, *_: Any, **__: Any) -> None:
        self.__dict__.update(optimizer.__dict__)
        self.__dict__.pop("step", None)  # a scheduler's wrapper, bound to the other object

    like = type(type(optimizer).__name__, (type(optimizer),), {"__init__": again})
    shell: Any = object.__new__(like)
    shell.__init__()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    named = [(f"{number}.{names.get(p, f'unnamed.{place}')}", p) for place, p in enumerate(parameters)]
    with _hooks_of_gradients():
        made = hvd.DistributedOptimizer(shell, named, compression=compression)
    step = made.step

    def step_synchronized(*args: Any, **kwargs: Any) -> Any:
        with made.skip_synchronize():
            return step(*args, **kwargs)

    def zero_settled(*args: Any, **kwargs: Any) -> None:
        if made._handles:  # backward passes whose step was skipped
            made.synchronize()
        type(optimizer).zero_grad(made, *args, **kwargs)  # Horovod's own takes no arguments

    made.step, made.zero_grad = step_synchronized, zero_settled
    return made


@contextlib.contextmanager
def _hooks_of_gradients() -> Iterator[None]:
    """Inside, an optimizer's hooks pass over a backward that brings a parameter no gradient (a function of autograd may
    give None), where Horovod's own fail; `synchronize` brings zeros.
    """
    kind, make = _DistributedOptimizer, _DistributedOptimizer._make_hook

    def make_hook(self: Any, parameter: torch.Tensor) -> Callable[..., None]:
        hook = make(self, parameter)
        return lambda *args: hook(*args) if parameter.grad is not None else None

    kind._make_hook = make_hook
    try:
        yield
    finally:
        kind._make_hook = make


def synchronize(optimizer: Any, used: Sequence[torch.nn.Parameter]) -> None:
    """Every gradient of `used` is the mean over ranks; also of those that were frozen when Horovod first saw them."""
    optimizer.synchronize()
    optimizer._synchronized = False  # else Horovod warns of the next synchronize
    late = [p for p in used if p not in optimizer._requires_update]
    for number, parameter in enumerate(late):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad.copy_(hvd.allreduce(parameter.grad.contiguous(), name=f"late.{number}"))


class Compression:
    """Gradients as they are; bfloat16, which Horovod does not know, travels as float32."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        if tensor.dtype is torch.bfloat16:
            return tensor.float().contiguous(), tensor.dtype
        return tensor.contiguous(), None

    @staticmethod
    def decompress(tensor: torch.Tensor, dtype: Any) -> torch.Tensor:
        return tensor if dtype is None else tensor.to(dtype)


class Halves(hvd.Compression.fp16):
    """Gradients as float16."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return hvd.Compression.fp16.compress(tensor.contiguous())


class Averager(GradientAverager):
    """For kept loops: the averages of `GradientAverager`, by Horovod."""

    def _reduce(self, bucket: list[torch.Tensor]) -> None:
        sent, kinds = zip(*(Compression.compress(gradient) for gradient in bucket), strict=True)
        means = hvd.grouped_allreduce(list(sent), name="gradients")
        for gradient, mean, kind in zip(bucket, means, kinds, strict=True):
            gradient.copy_(Compression.decompress(mean, kind))
