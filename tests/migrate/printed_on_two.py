"""Many scripts in one launch: what each printed as it is, and what its result prints on two processes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ptmigrate.migrate.migrate import migrate_text

from tests import forked

ALL = """
import os, runpy, sys

which, count = sys.argv[1], int(sys.argv[2])
sys.argv = sys.argv[:1]
for i in range(count):
    if os.environ.get("RANK", "0") == "0":
        print(f"@ {i}")
    runpy.run_path(f"{which}_{i}.py", run_name="__main__")
"""
TWO = ("--accelerator", "cpu", "--devices", "2", "--global-batch")


def by_originals(folder: Path, texts: list[str], limit: float = 280) -> list[str]:
    return _printed(partial(forked.run, limit=limit), folder, "old", texts)


def by_results(folder: Path, texts: list[str], limit: float = 280) -> list[str]:
    """On two processes, batches divided as `--global-batch` does it."""
    results = [migrate_text(text).text for text in texts]
    return _printed(partial(forked.ptrun, *TWO, limit=limit), folder, "new", results)


def _printed(
    start: Callable[..., subprocess.CompletedProcess[str]], folder: Path, which: str, texts: list[str]
) -> list[str]:
    for i, text in enumerate(texts):
        (folder / f"{which}_{i}.py").write_text(text)
    (folder / "all.py").write_text(ALL)
    done = start("all.py", which, str(len(texts)), cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return re.split(r"@ \d+\n", done.stdout)[-len(texts) :]
