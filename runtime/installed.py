"""Is a package here? Asked without importing it."""

from __future__ import annotations

import importlib.util


def installed(module: str) -> bool:
    """A module that a finder will not look for is not there either; nor is the user's own `bagua.py` the package."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None and bool(spec.submodule_search_locations)
