"""Bagua's algorithms on torch's own collectives, by the names that Bagua gives them.

Gan et al., BAGUA: Scaling up Distributed Learning with System Relaxations, VLDB 2021.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from ...errors import ConfigurationError, unknown_name
from .base import Algorithm

HOMES = {
    "gradient_allreduce": (".gradients", "GradientAllReduce"),
    "bytegrad": (".gradients", "ByteGrad"),
    "decentralized": (".decentralized", "Decentralized"),
    "low_precision_decentralized": (".low_precision", "LowPrecisionDecentralized"),
    "qadam": (".qadam", "QAdam"),
    "async": (".asynchronous", "Asynchronous"),
}


def choose(name: str, options: dict[str, Any]) -> Algorithm:
    """Raises ConfigurationError for an unknown name or option, with the nearest."""
    if name not in HOMES:
        raise unknown_name("algorithm", name, HOMES)
    home, cls = HOMES[name]
    made: type[Algorithm] = getattr(importlib.import_module(home, __name__), cls)
    accepted = list(inspect.signature(made).parameters)
    for option in options:
        if option not in accepted:
            if not accepted:
                raise ConfigurationError(f"algorithm {name!r} takes no options, and {option!r} was given")
            raise unknown_name(f"option of algorithm {name!r}", option, accepted)
    return made(**options)


__all__ = ["HOMES", "Algorithm", "choose"]
