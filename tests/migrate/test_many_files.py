"""ptmigrate over every file of the installed packages: no crash, every output compiles, second runs change nothing."""

from __future__ import annotations

import ast
import importlib.util
import os
import warnings
from pathlib import Path

import pytest
from ptmigrate.migrate.facts.source import SourceError, mentions_torch, parse, read_source
from ptmigrate.migrate.migrate import migrate_text

PACKAGES = ["torch", "torchvision", "sklearn", "libcst"]
if os.environ.get("FUZZ"):  # `make fuzz`: whatever else is installed here and speaks of torch
    PACKAGES += ["lightning", "fairscale", "torchmetrics", "functorch", "sympy", "networkx", "hypothesis"]


def files(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    return sorted(Path(spec.origin).parent.rglob("*.py"))


def trouble(path: Path, is_script: bool) -> str | None:
    """What goes wrong with a file; None when nothing does."""
    try:
        source = read_source(path)
        if not mentions_torch(source.raw):
            return None
        parse(source)
    except SourceError:
        return None
    try:
        result = migrate_text(source.text, is_script=is_script)
        if not result.edits and result.text != source.text:
            return "changed without a word"
        if source.encode(source.text) != source.raw:
            return "its bytes are not kept"
        if result.text == source.text:
            return None
        ast.parse(result.text)
        again = migrate_text(result.text, is_script=is_script)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return None if again.text == result.text else "a second run changes more"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("is_script", [True, False])
@pytest.mark.parametrize("package", PACKAGES)
def test_every_file(package, is_script):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {str(path): why for path in files(package) if (why := trouble(path, is_script))}
    assert not found, "\n".join(f"{path}: {why}" for path, why in list(found.items())[:50])
