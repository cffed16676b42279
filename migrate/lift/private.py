"""Optimizers that step by the gradient of each sample: what processes average, that of a loss, they never read."""

from __future__ import annotations

import re

from ..facts.script import Facts
from .recipe import CannotLift

MAKES_PRIVATE = re.compile(r"make_private\w*")  # of Opacus: it clips each sample's gradient and adds noise to their sum
OF_A_SAMPLE = "grad_sample"  # where those gradients are kept


def by_sample(facts: Facts) -> CannotLift | None:
    """Why the step needs whole batches: its optimizer clips and sums the gradients of the samples that it sees."""
    for name, found in facts.attributes.items():
        if name == OF_A_SAMPLE or (MAKES_PRIVATE.fullmatch(name) and facts.calls_of(name)):
            return CannotLift(
                found[0], f"`{facts.short(found[0])}`: gradients of the samples, which no process averages"
            )
    return None
