"""Starting processes, letting them meet, and ending all of them when one dies."""

from .connect import connect

__all__ = ["connect"]
