"""The report in the forms that `--format` offers beside text: each is given what was migrated, and gives one text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .one_file import Migrated
    from .report import Report
    from .verify.ladder import Ladder


def _json(done: list[Migrated], report: Report, ladder: Ladder | None) -> str:
    proof = {"verify": ladder.as_json()} if ladder is not None else {}
    return json.dumps({**report.as_json(), **proof}, indent=2) + "\n"


def _sarif(done: list[Migrated], report: Report, ladder: Ladder | None) -> str:
    from .sarif import as_sarif

    return json.dumps(as_sarif(report), indent=1) + "\n"


def _html(done: list[Migrated], report: Report, ladder: Ladder | None) -> str:
    from .page import as_page

    return as_page(done, report)


FORMATS: dict[str, Callable[[list[Migrated], Report, Ladder | None], str]] = {
    "json": _json,
    "sarif": _sarif,
    "html": _html,
}
