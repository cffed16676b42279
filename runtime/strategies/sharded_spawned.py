"""Sharded training in processes that start with `fit`: ddp_sharded's engine, ddp_spawn's processes."""

from .ddp_sharded import DDPShardedStrategy
from .registry import register
from .spawned import InOwnProcesses


@register("ddp_sharded_spawn")
class DDPSpawnShardedStrategy(InOwnProcesses, DDPShardedStrategy):
    """`strategy="ddp_spawn", plugins="ddp_sharded"`, or this name."""
