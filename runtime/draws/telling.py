"""What is said where a step's random numbers are not, or may not be, those of one process: each thing once a fit."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..handle import Runtime
    from ..module import Module

AT_MOST = 3  # examples of shapes
INSTEAD = "; divide_batches = False in the module draws as one process does"


class Telling:
    def __init__(self, runtime: Runtime):
        self.runtime = runtime
        self.said: set[str] = set()

    def certain(self, what: str, line: str = "") -> None:
        self.once(f"random numbers are not those of one process: {what}{f' ({line})' if line else ''}{INSTEAD}")

    def apart(self, kinds: Iterable[str]) -> None:
        """Ranks have drawn unlike."""
        from_ = " and ".join(sorted(kinds))
        self.certain(
            f"a step or a hook at a batch has drawn more numbers from {from_} on some processes than on others, as a "
            "loop over samples does, or a call on rank 0 alone"
        )

    def doubts(self, found: Sequence[str]) -> None:
        if found:
            more = f"; and {len(found) - AT_MOST} more" if len(found) > AT_MOST else ""
            self.once(f"random numbers may not be those of one process: {'; '.join(found[:AT_MOST])}{more}{INSTEAD}")

    def of_generators(self, generators: OwnGenerators) -> None:
        for name in generators.used():
            self.certain(f"self.{name}, a generator of the module's own, draws for each process's part alike")

    def once(self, says: str) -> None:
        if says not in self.said:
            self.said.add(says)
            self.runtime.print(says, file=sys.stderr)


class OwnGenerators:
    """Generators among a module's attributes that draws are not seen of: NumPy's and Python's."""

    def __init__(self, module: Module):
        kinds: tuple[type, ...] = (random.Random,)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            kinds += (numpy.random.Generator, numpy.random.RandomState)
        self.found = {
            f"{prefix}.{name}".strip("."): value
            for prefix, part in module.named_modules()
            for name, value in vars(part).items()
            if isinstance(value, kinds)
        }
        self.begun = self.states()

    def states(self) -> dict[str, str]:
        return {name: repr(_state(generator)) for name, generator in self.found.items()}

    def used(self) -> list[str]:
        """Those that have drawn since."""
        now = self.states()
        return [name for name in self.found if now[name] != self.begun[name]]


def _state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if hasattr(generator, "bit_generator"):
        return generator.bit_generator.state
    return [part.tolist() if hasattr(part, "tolist") else part for part in generator.get_state()]
