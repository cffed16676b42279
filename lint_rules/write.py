"""Writing a changed file: whole or not at all, with its encoding, line ends and mode."""

from __future__ import annotations

import os
import shutil

from ptmigrate.migrate.facts.source import Source


def write_text(source: Source, text: str) -> None:
    path = os.path.realpath(source.path)  # a link stays a link
    beside = f"{path}.{os.getpid()}.ptlint"
    try:
        with open(beside, "wb") as file:
            file.write(source.encode(text))
        shutil.copymode(path, beside)
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.remove(beside)
