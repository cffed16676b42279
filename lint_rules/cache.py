"""What was found in which bytes by which rules, kept in `.ptlint_cache/`: unchanged files are not parsed again.

One file a rule set; whatever is wrong with it, it is only ever a reason to lint again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b

from .rule import Finding

FOLDER = ".ptlint_cache"
MOST = 100_000  # entries


class Cache:
    def __init__(self, root: str, codes: Iterable[str]) -> None:
        self.folder = os.path.join(root, FOLDER)
        self.codes = sorted(codes)
        self.grew = False

    @cached_property
    def path(self) -> str:
        return os.path.join(self.folder, f"{_fingerprint(self.codes)}.json")

    @cached_property
    def entries(self) -> dict[str, list[list[object]]]:
        """Read when the first file asks: a tree without torch never does."""
        try:
            with open(self.path, "rb") as file:
                entries = json.loads(file.read())
        except (OSError, ValueError):
            return {}
        return entries if isinstance(entries, dict) else {}

    def get(self, key: str) -> list[Finding] | None:
        found = self.entries.get(key)
        try:
            return None if found is None else [Finding(*row) for row in found]
        except TypeError:
            return None

    def put(self, key: str, findings: list[Finding]) -> None:
        self.entries[key] = [list(f) for f in findings]
        self.grew = True

    def save(self) -> None:
        """Written beside and moved into place, so that two runs at once leave one whole file."""
        if not self.grew:
            return
        entries = dict(list(self.entries.items())[-MOST:])
        beside = f"{self.path}.{os.getpid()}"
        try:
            os.makedirs(self.folder, exist_ok=True)
            ignore = os.path.join(self.folder, ".gitignore")
            if not os.path.exists(ignore):
                with open(ignore, "w") as file:
                    file.write("*\n")
            with open(beside, "w") as file:
                json.dump(entries, file, separators=(",", ":"))
            os.replace(beside, self.path)
        except OSError:
            pass  # a folder that cannot be written only means that the next run takes as long


def key_of(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _fingerprint(codes: Iterable[str]) -> str:
    """The rules, and the state of the code that runs them."""
    import sys

    state = blake2b(digest_size=8)
    state.update(repr((sys.version_info[:2], sorted(codes))).encode())
    here = os.path.dirname(os.path.abspath(__file__))
    from ptmigrate.migrate import facts

    for top in (here, *facts.__path__):
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            for name in sorted(names):
                if name.endswith(".py"):
                    stat = os.stat(os.path.join(folder, name))
                    state.update(f"{name}{stat.st_size}{stat.st_mtime_ns}".encode())
    return state.hexdigest()
