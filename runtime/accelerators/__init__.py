"""Which devices a run uses: `gpus=`, `devices=` and `accelerator=` to a kind and a list of numbers.

Sources: the guide's table of what `gpus=` means (REQUIREMENTS, D), and Lightning's meaning of `devices=` since 1.5.
"""

from .machine import count, present
from .parse import Devices, choose, parse_gpus
from .unoccupied import unoccupied

__all__ = ["Devices", "choose", "count", "parse_gpus", "present", "unoccupied"]
