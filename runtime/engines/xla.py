"""This process's XLA device, its random numbers, and the mean over all cores. Imports torch_xla."""

from __future__ import annotations

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr

from ..accelerators import tpu
from ..seeding import rank_seed

_started = False
sync = torch_xla.sync  # runs what has been recorded since the last one


def start(rank: int, local_rank: int, local_world_size: int) -> None:
    """Make the device usable, once a process; before anything lives on it."""
    global _started
    if _started:
        return
    _started = True
    if not tpu.on_cpu():
        xr.set_device_type("TPU")
        if local_world_size > 1:
            from torch_xla._internal import pjrt

            pjrt.initialize_multiprocess(local_rank, local_world_size)
    seed(rank_seed(rank))


def keep_parameters(keep: bool) -> None:
    """From now on a parameter that goes to the device stays the same object, which its optimizer and tied weights know.

    torch else makes another one of it. Not for ever: load_state_dict would take the hooks of the parameters away.
    """
    torch.__future__.set_swap_module_params_on_conversion(keep)


def seed(number: int) -> None:
    """What the device draws from now on (dropout); torch.manual_seed is about the host's generators."""
    xm.set_rng_state(number % 2**63)


def drawn() -> int:
    """What `seed` takes to go on from here."""
    return xm.get_rng_state()


def mean(flat: torch.Tensor, world: int) -> bool:
    """The mean of `flat` over all ranks, in place and on the devices; False where XLA does not join the processes, as
    on PJRT's CPU device, whose processes each have a client of their own.
    """
    if xr.world_size() != world:
        return False
    xm.all_reduce(xm.REDUCE_SUM, [flat], scale=1.0 / world)
    return True
