"""What steps log, and what becomes of it over an epoch and over ranks."""

from .logs import Logs

__all__ = ["Logs"]
