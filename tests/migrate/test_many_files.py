"""ptmigrate over the files of the installed packages (every one: `make fuzz`): no crash, every output compiles, second
runs change nothing.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from ptmigrate.migrate.facts.source import SourceError, mentions_torch, parse, read_source
from ptmigrate.migrate.lifted import compiles
from ptmigrate.migrate.migrate import Result, migrate_text

PACKAGES = ["torch", "torchvision", "sklearn", "libcst"]
if os.environ.get("FUZZ"):  # `make fuzz`: whatever else is installed here and speaks of torch
    PACKAGES += ["lightning", "fairscale", "deepspeed", "horovod", "torchmetrics", "functorch", "torchgen", "einops"]
    PACKAGES += ["tensorboard", "sympy", "networkx", "hypothesis"]
EVERY = 1 if os.environ.get("FUZZ") else 3  # one file of so many
FAULTS = ("lifting it failed", "the file is left as it is")  # said where a fault of the migration was caught


def files(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    return sorted(Path(spec.origin).parent.rglob("*.py"))


def trouble(path: Path) -> list[str]:
    """What goes wrong with a file, as a script and as a module of one."""
    try:
        source = read_source(path)
        if not mentions_torch(source.raw):
            return []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the files' own, such as invalid escapes
            parse(source)
            if source.encode(source.text) != source.raw:
                return [f"{path}: its bytes are not kept"]
            found = {f"{path}: {why}" for is_script in (True, False) if (why := _trouble(source.text, is_script))}
    except SourceError:
        return []
    return sorted(found)


def _trouble(text: str, is_script: bool) -> str | None:
    try:
        result = migrate_text(text, is_script=is_script)
        if fault := _fault(text, result):
            return fault
        if result.text == text:
            return None
        compiles(result.text)
        again = migrate_text(result.text, is_script=is_script)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return None if again.text == result.text else "a second run changes more"


def _fault(text: str, result: Result) -> str | None:
    if not result.edits and result.text != text:
        return "changed without a word"
    if text.endswith("\n") != result.text.endswith("\n"):
        return "the end of its last line is another"
    if ("\r" in text) != ("\r" in result.text):
        return "its line ends are others"
    return next((n.message for n in result.attention if any(f in n.message for f in FAULTS)), None)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("package", PACKAGES)
def test_files(package):
    paths = files(package)[::EVERY]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        found = [why for those in pool.map(trouble, paths, chunksize=16) for why in those]
    assert not found, "\n".join(found[:50])


def test_the_files_are_found():
    """The slow test goes over thousands of files."""
    assert sum(len(files(p)) for p in ("torch", "sklearn", "libcst")) > 2000


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import torch\nx = torch.zeros(2).cuda()\n", None),
        ("import torch\n", None),
        ("import torch\n(\n", "never closed"),
    ],
)
def test_what_it_calls_trouble(text, why):
    found = _trouble(text, True)
    assert (found is None) if why is None else (found is not None and why in found)
