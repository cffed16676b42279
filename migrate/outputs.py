"""Where results go: all of them or none, never over a script that is read, nor two in one place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from .write import uncommitted, write_whole

if TYPE_CHECKING:
    from .one_file import Migrated


class CannotWrite(Exception):
    """Why nothing is written, and what to do instead."""


def write_results(done: list[Migrated], output: str, in_place: bool, force: bool) -> None:
    """Write every result or, when one may not be written, none. Raises CannotWrite."""
    readable = [m for m in done if m.source is not None]
    places = {id(m): m.path if in_place else _place(m, output) for m in readable}
    if in_place:
        readable = [m for m in readable if m.report.changed]
        _check_committed([] if force else readable)
    else:
        _check_places(readable, places, force)
    for m in readable:
        try:
            write_whole(places[id(m)], m.data, like=m.path)
        except OSError as error:
            raise CannotWrite(
                f"{error.filename2 or error.filename or output} cannot be written: {error.strerror}"
            ) from None
        m.report.output = str(places[id(m)])


def _check_committed(changed: list[Migrated]) -> None:
    for m in changed:
        if uncommitted(m.path):
            raise CannotWrite(f"{m.path} has changes that are not committed: commit them or pass --force")


def _check_places(readable: list[Migrated], places: dict[int, Path], force: bool) -> None:
    scripts = {os.path.realpath(m.path) for m in readable}
    taken: dict[str, Path] = {}
    for m in readable:
        place = places[id(m)]
        real = os.path.realpath(place)
        if real in scripts:
            raise CannotWrite(f"{place} is a script to migrate itself: -o FOLDER for another place, or --in-place")
        if (other := taken.setdefault(real, m.path)) is not m.path:
            raise CannotWrite(
                f"{other} and {m.path} would both become {place}: name the folder above them, or -o FOLDER for each"
            )
        if place.is_dir():
            raise CannotWrite(f"{place} is a folder: -o FOLDER for another place")
    existing = [p for p in places.values() if p.exists()]
    if existing and not force:
        raise CannotWrite(f"{existing[0]} exists: pass --force to write over it, or -o FOLDER for another place")


def _place(m: Migrated, output: str) -> Path:
    return Path(output, os.path.relpath(os.path.abspath(m.path), os.path.abspath(m.root)))
