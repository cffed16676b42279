"""T2, what is told of: functions that make tensors, with their device already given."""

from __future__ import annotations

import ast

from ..facts.placed import LIKE, MAKES_TENSORS
from ..facts.script import Facts

MAKERS = MAKES_TENSORS | LIKE | {"torch.Tensor.to", "torch.Tensor.cuda"}


def gives_device(facts: Facts, call: ast.Call) -> bool:
    """`zeros = partial(torch.zeros, device=device)`: the calls that make the tensors name none."""
    if not call.args or facts.names.resolve(call.args[0]) not in MAKERS:
        return False
    given = next((k.value for k in call.keywords if k.arg == "device"), None)
    return given is not None and facts.devices.is_device(given) and not facts.devices.is_host(given)
