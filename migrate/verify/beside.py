"""A result where the original is: the project's own files as links, the migrated ones in their places."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def beside(root: Path, output: Path, place: Path) -> None:
    """Lay out at `place` what `root` holds, with the files of `output` instead of those of the same name.

    Only folders that hold migrated files are made anew; all else is a link to the original.
    """
    place.mkdir(parents=True)
    for entry in root.iterdir():
        migrated, new = output / entry.name, place / entry.name
        if entry.name == "__pycache__" or entry.resolve() == output.resolve():
            continue
        if migrated.is_file():
            shutil.copyfile(migrated, new)
        elif entry.is_dir() and migrated.is_dir():
            beside(entry, migrated, new)
        else:
            new.symlink_to(os.path.abspath(entry), target_is_directory=entry.is_dir())
