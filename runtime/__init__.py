"""The runtime: `Module`, `Trainer`, and `Runtime` for loops that stay as they are.

Names are resolved when first used, so that `ptrun --help` starts without importing torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .callbacks import Callback, EarlyStopping, ModelCheckpoint
    from .handle import Runtime
    from .module import Module
    from .printing import rank_zero_print
    from .saving import rank_zero_save
    from .trainer import Trainer

_HOMES = {
    "Callback": ".callbacks",
    "EarlyStopping": ".callbacks",
    "LearningRateMonitor": ".callbacks",
    "ModelCheckpoint": ".callbacks",
    "Module": ".module",
    "Runtime": ".handle",
    "Trainer": ".trainer",
    "Strategy": ".strategies",
    "BaguaStrategy": ".strategies",
    "DDPStrategy": ".strategies",
    "DDPShardedStrategy": ".strategies",
    "FSDPStrategy": ".strategies",
    "HorovodStrategy": ".strategies",
    "rank_zero_print": ".printing",
    "rank_zero_save": ".saving",
    "seed_everything": ".seeding",
}

__all__ = [
    "Callback",
    "EarlyStopping",
    "ModelCheckpoint",
    "Module",
    "Runtime",
    "Trainer",
    "rank_zero_print",
    "rank_zero_save",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value
