"""PTM417: Lightning puts a DistributedSampler where a weighted or random one stood."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import with_argument
from ..file import File, keyword, last_part
from ..rule import Finding, Rule

CHOOSING = {"torch.utils.data.WeightedRandomSampler", "torch.utils.data.SubsetRandomSampler"}


class SamplerReplaced(Rule):
    code = "PTM417"
    name = "sampler-replaced"
    why = (
        "On several devices Lightning replaces the sampler of a loader by a DistributedSampler, or refuses: the "
        "weights of a WeightedRandomSampler are lost. The runtime divides the batches that the script's own "
        "sampler drew."
    )
    fix = "unsafe"
    calls = ("Trainer",)

    BAD = """
        import pytorch_lightning as pl
        from torch.utils.data import DataLoader, WeightedRandomSampler
        loader = DataLoader(data, sampler=WeightedRandomSampler(weights, 100))
        trainer = pl.Trainer(devices=2)
        """
    GOOD = (
        """
        import pytorch_lightning as pl
        from torch.utils.data import DataLoader, WeightedRandomSampler
        loader = DataLoader(data, sampler=WeightedRandomSampler(weights, 100))
        trainer = pl.Trainer(devices=2, use_distributed_sampler=False)
        """,
        """
        from ptmigrate.runtime import Trainer
        from torch.utils.data import DataLoader, WeightedRandomSampler
        loader = DataLoader(data, sampler=WeightedRandomSampler(weights, 100))
        trainer = Trainer(devices=2)
        """,
    )

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        full = file.resolve(call.func) or ""
        if not full.startswith(("pytorch_lightning.", "lightning.")):
            return
        if keyword(call, "use_distributed_sampler") is not None or keyword(call, "replace_sampler_ddp") is not None:
            return
        if not _on_several(call):
            return
        for name in ("WeightedRandomSampler", "SubsetRandomSampler"):
            for sampler in file.nodes.calls.get(name, ()):
                if file.resolve(sampler.func) in CHOOSING:
                    text = f"this Trainer replaces the {last_part(sampler.func)} of line {sampler.lineno}"
                    repair = with_argument(call, "use_distributed_sampler=False")
                    yield self.finding(call, f"{text}; pass use_distributed_sampler=False", file, repair)
                    return


def _on_several(call: ast.Call) -> bool:
    for k in call.keywords:
        value = k.value
        if k.arg in ("gpus", "devices", "num_nodes") and not (
            isinstance(value, ast.Constant) and value.value in (0, 1, None)
        ):
            return True
        if k.arg in ("strategy", "accelerator") and isinstance(value, ast.Constant) and "ddp" in str(value.value):
            return True
    return False
