"""Is a package here? Asked without importing it."""

from __future__ import annotations

import importlib.util


def installed(module: str) -> bool:
    """A module that a finder will not look for is not there either."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
