"""In which order the files of a folder are migrated: one that imports another before it, whatever their names are.

So a script gets the loop that stands in another file before that file is looked at by itself.
"""

from __future__ import annotations

from collections import Counter

from .one_file import File
from .sources import Imports


def importing_first(files: list[File], imports: Imports) -> list[File]:
    """The files by how many others lead to them; those of one script stand in their order already."""
    if len(files) < 2 or not all(is_script for _, _, is_script in files):
        return files
    led = Counter(real for path, _, _ in files for real in imports.project(path) - {imports.real(path)})
    return sorted(files, key=lambda file: led[imports.real(file[0])])
