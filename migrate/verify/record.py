"""Run a script as itself and write down its losses and final parameters: `python record.py LOG SCRIPT [ARGS]`.

Stands alone: it is started with the interpreter that trains, on the original and on the result alike. Every rank writes
LOG.RANK, a line of JSON for each call of `Tensor.backward` and one for the parameters that optimizers hold at the end.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import json
import os
import random
import runpy
import sys
from collections.abc import Callable
from typing import Any

SEED = 0
STILL = "PTMIGRATE_STILL"  # an environment variable: dropout off, batch norm on its running statistics
NUDGE = "PTMIGRATE_NUDGE"  # likewise: what an optimizer is given changes by its last bit, to see how far that goes


def main() -> None:
    log, script = sys.argv[1], sys.argv[2]
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    record(log, os.environ.get("RANK", "0"))
    runpy.run_path(script, run_name="__main__")


def record(log: str, rank: str) -> Callable[[], None]:
    """Seed every generator, then watch backward() and the optimizers of this process; gives back what ends it."""
    import torch

    _seed()
    journal = _Journal(f"{log}.{rank}")
    optimizers: list[Any] = []
    backward, init = torch.Tensor.backward, torch.optim.Optimizer.__init__
    stilled = _still() if os.environ.get(STILL) else set()
    ordered = _one_order()

    def watched_backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        loss = self.__dict__.get("_before_scaling", self)
        journal.write({"loss": float(loss.detach().double().sum())})
        return backward(self, *args, **kwargs)

    def watched_init(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        optimizers.append(self)
        if os.environ.get(NUDGE):
            _nudge(self)

    def finish() -> None:
        if journal.file is not None:
            journal.write({"parameters": _parameters(optimizers), "stilled": sorted(stilled), "ordered": bool(ordered)})
            journal.close()

    scale = torch.amp.GradScaler.scale

    def watched_scale(self: Any, outputs: Any) -> Any:
        """A Trainer's precision= may scale by another factor, or none: the loss is what was scaled."""
        scaled = scale(self, outputs)
        if isinstance(scaled, torch.Tensor) and scaled is not outputs:
            scaled._before_scaling = outputs  # type: ignore[attr-defined]
        return scaled

    torch.amp.GradScaler.scale = watched_scale  # type: ignore[method-assign]
    torch.Tensor.backward = watched_backward  # type: ignore[method-assign]
    torch.optim.Optimizer.__init__ = watched_init  # type: ignore[method-assign]
    _follow_spawn(log)
    atexit.register(finish)
    return finish


class _Journal:
    """A file that only the process that opened it writes to; made with the first line."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.pid = os.getpid()
        self.file: Any = None
        self.ended = False

    def write(self, row: dict[str, Any]) -> None:
        if os.getpid() != self.pid or self.ended:
            return
        if self.file is None:
            self.file = open(self.path, "w", encoding="utf-8", buffering=1)  # noqa: SIM115 - open until the end
        self.file.write(json.dumps(row) + "\n")

    def close(self) -> None:
        if os.getpid() == self.pid and not self.ended:
            self.ended = True
            self.file.close()


def _seed() -> None:
    import torch

    random.seed(SEED)
    torch.manual_seed(SEED)
    try:
        import numpy

        numpy.random.seed(SEED)
    except ImportError:
        pass


class Recorded:
    """What `torch.multiprocessing.spawn` runs in each process, watched there as well."""

    def __init__(self, fn: Any, log: str) -> None:
        self.fn, self.log = fn, log

    def __call__(self, index: int, *args: Any) -> None:
        finish = record(self.log, str(index))
        try:
            self.fn(index, *args)
        finally:
            finish()


def _follow_spawn(log: str) -> None:
    """Processes that a script spawns by hand are new interpreters: they have to be told to record, too."""
    import torch.multiprocessing

    start = torch.multiprocessing.spawn

    def watched_spawn(fn: Any, args: Any = (), nprocs: int = 1, *more: Any, **options: Any) -> Any:
        from ptmigrate.migrate.verify.record import Recorded as Importable  # this file runs as __main__

        return start(Importable(fn, log), args, nprocs, *more, **options)

    torch.multiprocessing.spawn = watched_spawn


def _one_order() -> list[bool]:
    """A DistributedSampler alone in its world draws its order as `shuffle=True` does, which takes its place.

    The list given back is not empty once that has happened.
    """
    from torch.utils.data import RandomSampler
    from torch.utils.data.distributed import DistributedSampler

    iterate = DistributedSampler.__iter__
    done: list[bool] = []

    def one_order(self: Any) -> Any:
        if self.num_replicas > 1 or not self.shuffle:
            return iterate(self)
        done.append(True)
        return iter(RandomSampler(self.dataset))

    DistributedSampler.__iter__ = one_order  # type: ignore[method-assign]
    return done


def _nudge(optimizer: Any) -> None:
    import torch

    with torch.no_grad():
        for p in (p for group in optimizer.param_groups for p in group["params"] if p.is_floating_point()):
            p.mul_(1 + torch.finfo(p.dtype).eps)


def _still() -> set[str]:
    """Turn off what cannot be the same on a share of a batch; the set returned names what was met."""
    import torch.nn.functional as F

    met: set[str] = set()
    batch_norm, attention = F.batch_norm, F.scaled_dot_product_attention

    def no_dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if training and p > 0:
            met.add("dropout")
        return input

    def still_batch_norm(input: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, training: bool = False,
                         momentum: float = 0.1, eps: float = 1e-5) -> Any:  # fmt: skip
        if not training or mean is None:
            return batch_norm(input, mean, var, weight, bias, training, momentum, eps)
        met.add("batch norm")
        return batch_norm(input, mean, var, weight, bias, False, momentum, eps)

    def still_attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
                        *more: Any, **options: Any) -> Any:  # fmt: skip
        if dropout_p:
            met.add("dropout")
        return attention(query, key, value, attn_mask, 0.0, *more, **options)

    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
        setattr(F, name, no_dropout)
    F.batch_norm = still_batch_norm  # type: ignore[assignment]
    F.scaled_dot_product_attention = still_attention
    _still_recurrent(met)
    _still_rounding(met)
    return met


def _still_recurrent(met: set[str]) -> None:
    from torch.nn.modules.rnn import RNNBase

    init = RNNBase.__init__

    def still_init(self: Any, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        if self.dropout:
            met.add("dropout")
            self.dropout = 0.0

    RNNBase.__init__ = still_init  # type: ignore[method-assign]


def _still_rounding(met: set[str]) -> None:
    """Autocast sums a share of a batch in half precision, and so rounds otherwise than over the whole."""
    import torch

    enter = torch.autocast.__enter__

    def still_enter(self: Any) -> Any:
        if self._enabled:
            met.add(f"rounding to {str(self.fast_dtype).removeprefix('torch.')}")
            self._enabled = False
        return enter(self)

    torch.autocast.__enter__ = still_enter  # type: ignore[method-assign]


def _parameters(optimizers: list[Any]) -> list[dict[str, Any]]:
    """Shape, sums and digest of every parameter that the optimizers hold; of all there are, where there is none."""
    import torch

    seen: dict[int, Any] = {}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for p in group["params"]:
                seen.setdefault(id(p), p)
    if not optimizers:
        seen = {id(p): p for p in gc.get_objects() if type(p) is torch.nn.Parameter}
    rows = []
    for p in seen.values():
        value = p.detach().cpu().contiguous()
        raw = value.flatten().view(torch.uint8).numpy().tobytes() if value.numel() else b""
        rows.append(
            {
                "shape": list(value.shape),
                "sum": float(value.double().sum()),
                "absolute": float(value.double().abs().sum()),
                "digest": hashlib.sha256(raw).hexdigest(),
            }
        )
    return rows


if __name__ == "__main__":
    main()
