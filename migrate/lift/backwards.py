"""The calls of backward() by which a file trains."""

from __future__ import annotations

import ast

from ..facts.of_inputs import is_of_inputs
from ..facts.own_methods import differentiates_nothing
from ..facts.script import Facts, once_a_file


@once_a_file
def training_backwards(facts: Facts) -> list[ast.Call]:
    """Without those for the gradients of inputs, where a file has others."""
    calls = [c for c in facts.calls_of("backward") if facts.names.resolve(c.func) is None]
    calls = [c for c in calls if not differentiates_nothing(facts, c.func)]
    return [c for c in calls if not is_of_inputs(facts, c)] or calls
