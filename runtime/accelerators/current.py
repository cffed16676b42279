"""Which card `.cuda()` and `.to("cuda")` mean in a process that is one of several, before a Trainer is made there.

A script that runs alone has card 0 for its current one, and so has every rank until something sets another: what rank 1
places by that name above its Trainer would be where its model is not.
"""

from __future__ import annotations

import torch

from .. import environment
from ..errors import ConfigurationError
from ..settings import resolve


def be_on_own_card() -> None:
    """Have the rank's own card be the current one as soon as CUDA is begun with; nothing is begun with here."""
    if environment.launched():
        torch.cuda._lazy_call(_use_own)  # as torch.cuda.manual_seed waits for it


def _use_own() -> None:
    try:
        device = resolve().device
    except ConfigurationError:
        return  # which the Trainer says
    if device.type == "cuda":
        torch.cuda.set_device(device)
