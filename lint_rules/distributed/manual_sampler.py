"""PTM401: a DistributedSampler by hand pads the data, and has to be told the epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ptmigrate.migrate.facts.samplers import is_of_one, own_samplers

from ..file import File, passes_unknown
from ..rule import Finding, Rule

SAMPLERS = {"torch.utils.data.DistributedSampler"}


class ManualSampler(Rule):
    code = "PTM401"
    name = "manual-sampler"
    why = (
        "A DistributedSampler repeats samples so that all ranks get equally many, which makes metrics wrong, and it "
        "divides the data set, not the batches, so that a run on more devices is another run. The runtime divides the "
        "batches of any loader itself."
    )
    fix = "unsafe"
    settled_by = "remove_samplers"
    BAD = (
        """
        from torch.utils.data import DataLoader
        from torch.utils.data.distributed import DistributedSampler
        sampler = DistributedSampler(data, shuffle=False)
        loader = DataLoader(data, sampler=sampler)
        """,
        """
        import torch
        class EverySampler(torch.utils.data.Sampler):
            def __init__(self, data, num_replicas, rank):
                self.data, self.num_replicas, self.rank = data, num_replicas, rank
            def __iter__(self):
                return iter(range(self.rank, len(self.data), self.num_replicas))
        sampler = EverySampler(data, 2, 0)
        """,
    )
    GOOD = """
        from torch.utils.data import DataLoader
        loader = DataLoader(data, shuffle=True)
        """

    def check_file(self, file: File) -> Iterator[Finding]:
        for call in file.calls_named("DistributedSampler"):
            yield from self._torchs(call, file)
        if "Sampler" not in file.text:
            return
        for c in own_samplers(file.nodes.of(ast.ClassDef)):
            for call in file.calls_named(c.name):
                if not is_of_one(call):
                    yield self.finding(call, f"`{c.name}` divides the samples by rank; so does the runtime", file)

    def _torchs(self, call: ast.Call, file: File) -> Iterator[Finding]:
        wraps = passes_unknown(call) and isinstance(file.nodes.parents.get(call), ast.Return)
        if file.resolve(call.func) in SAMPLERS and not wraps:  # a wrapper hands on what it is given
            yield self.finding(
                call, "DistributedSampler by hand; the runtime divides the batches of a plain loader", file
            )
