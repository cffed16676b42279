"""Which files of a migration belong to scripts alone that train nothing: no Trainer places what they make.

Half of such a project's moves cannot go: `net.to(device)` of a module, where the script places what it gives the net.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from .facts.out_of_sight import BACKWARD
from .sources import Imports

TRAINS = re.compile(BACKWARD.pattern.encode())
MOVES = re.compile(rb"\.(to|cuda)\(|\bcuda\.\w*Tensor\b")  # a tensor of a card's type becomes one that is moved


def untrained(paths: list[Path], imports: Imports, read: Callable[[Path], bytes]) -> list[Path]:
    """Those of several files; none where a script that trains shares one that moves something, as its own go."""
    texts = {imports.real(p): read(p) for p in paths} if len(paths) > 1 else {}
    trains = {p for p, text in texts.items() if TRAINS.search(text)}
    if len(trains) == len(texts):
        return []
    projects = [leads for p in paths if imports.runs(p) and len(leads := imports.project(p) & texts.keys()) > 1]
    trained = set[Path]().union(*(leads for leads in projects if leads & trains))
    moves = {p for p in trained if MOVES.search(texts[p])}
    alone = set[Path]().union(*(leads for leads in projects if not leads & (trains | moves)))
    return [p for p in paths if imports.real(p) in alone - trained]
