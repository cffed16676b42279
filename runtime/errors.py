"""Errors that a user can mend: one clear line, with the nearest name where a name was wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from . import oneline


class ConfigurationError(ValueError):
    """What was asked cannot be done here; the message says what was asked, what there is, and the way out."""


oneline.install(ConfigurationError)


class RanksDiffer(RuntimeError):
    """Ranks that did not do the same; all of them raise it with the same words, and rank 0 speaks."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> ConfigurationError:
    """`unknown strategy 'dpp'; did you mean 'ddp'? Known: ddp, single`."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return ConfigurationError(f"unknown {kind} {name!r}{hint} Known: {', '.join(names)}")
