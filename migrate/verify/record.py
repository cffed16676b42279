"""Run a script as itself and write down its losses and final parameters: `python record.py LOG SCRIPT [ARGS]`.

Stands alone: it is started with the interpreter that trains, on the original and on the result alike. Every rank writes
LOG.RANK, a line of JSON for each call of `Tensor.backward` and one for the parameters that optimizers hold at the end.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import random
import runpy
import sys
from typing import Any

SEED = 0


def main() -> None:
    log, script = sys.argv[1], sys.argv[2]
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    record(log)
    runpy.run_path(script, run_name="__main__")


def record(log: str) -> None:
    """Seed every generator, then watch backward() and the optimizers of this process."""
    import torch

    random.seed(SEED)
    torch.manual_seed(SEED)
    try:
        import numpy

        numpy.random.seed(SEED)
    except ImportError:
        pass
    pid = os.getpid()
    optimizers: list[Any] = []
    file = open(f"{log}.{os.environ.get('RANK', '0')}", "w", encoding="utf-8")  # noqa: SIM115 - open until the end
    backward, init = torch.Tensor.backward, torch.optim.Optimizer.__init__

    def watched_backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if os.getpid() == pid:
            file.write(json.dumps({"loss": float(self.detach().double().sum())}) + "\n")
        return backward(self, *args, **kwargs)

    def watched_init(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        optimizers.append(self)

    def finish() -> None:
        if os.getpid() == pid:
            file.write(json.dumps({"parameters": _parameters(optimizers)}) + "\n")
            file.close()

    torch.Tensor.backward = watched_backward  # type: ignore[method-assign]
    torch.optim.Optimizer.__init__ = watched_init  # type: ignore[method-assign]
    atexit.register(finish)


def _parameters(optimizers: list[Any]) -> list[dict[str, Any]]:
    """Shape, sum of absolute values and digest of every parameter, in the order that the optimizers met them."""
    import torch

    seen: dict[int, Any] = {}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for p in group["params"]:
                seen.setdefault(id(p), p)
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
