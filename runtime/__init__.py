"""The runtime: `Module`, `Trainer`, and `Runtime` for loops that stay as they are.

Names are resolved when first used, so that `ptrun --help` starts without importing torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import alike, folders, given_rank
from .environment import launched, plain_environ
from .printing import keep_lines_whole

if TYPE_CHECKING:
    from .alike import rank_zero_first, rank_zero_value
    from .callbacks import Callback, EarlyStopping, LearningRateMonitor, ModelCheckpoint
    from .data.batches import Batches
    from .data.combined import CombinedLoader
    from .datamodule import DataModule
    from .handle import Runtime
    from .module import Module
    from .placed import on_device
    from .printing import is_global_zero, is_local_zero, rank_zero_print
    from .recomputed import batch_norm_once, checkpoint_segments
    from .saving import rank_zero_file, rank_zero_save
    from .silent import on_rank_zero
    from .trainer import Trainer

_HOMES = {
    "Batches": ".data.batches",
    "Callback": ".callbacks",
    "CombinedLoader": ".data.combined",
    "DataModule": ".datamodule",
    "EarlyStopping": ".callbacks",
    "LearningRateMonitor": ".callbacks",
    "ModelCheckpoint": ".callbacks",
    "LightningDataModule": ".datamodule",
    "LightningModule": ".module",
    "Module": ".module",
    "Runtime": ".handle",
    "Trainer": ".trainer",
    "Strategy": ".strategies",
    "is_global_zero": ".printing",
    "is_local_zero": ".printing",
    "on_device": ".placed",
    "on_rank_zero": ".silent",
    "rank_zero_file": ".saving",
    "rank_zero_first": ".alike",
    "rank_zero_print": ".printing",
    "rank_zero_save": ".saving",
    "rank_zero_value": ".alike",
    "batch_norm_once": ".recomputed",
    "checkpoint_segments": ".recomputed",
    "seed_everything": ".seeding",
    "CSVLogger": ".loggers",
    "TensorBoardLogger": ".loggers",
    **dict.fromkeys(("AdvancedProfiler", "SimpleProfiler"), ".profilers"),
}

__all__ = [
    "Batches",
    "Callback",
    "CombinedLoader",
    "DataModule",
    "EarlyStopping",
    "LearningRateMonitor",
    "ModelCheckpoint",
    "Module",
    "Runtime",
    "Trainer",
    "batch_norm_once",
    "checkpoint_segments",
    "is_global_zero",
    "is_local_zero",
    "on_device",
    "on_rank_zero",
    "plain_environ",
    "rank_zero_file",
    "rank_zero_first",
    "rank_zero_print",
    "rank_zero_save",
    "rank_zero_value",
]

if launched():
    keep_lines_whole()
alike.on_import()
folders.on_import()
given_rank.on_import()


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name, ".strategies" if name.endswith(("Strategy", "Plugin")) else None)
    if home is None and name[:1].isupper():
        home = ".callbacks"  # where a name that is nowhere is refused, with what to use instead
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home, __name__), name)
    globals()[name] = value
    return value
