"""What a run found, for every output to write."""

from __future__ import annotations

from ptmigrate.migrate.facts.source import SourceError

from .rule import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cache import Cache
    from .run import Outcome


class Result:
    def __init__(self) -> None:
        self.findings: list[tuple[str, Finding]] = []  # with the path of the file
        self.errors: list[SourceError] = []
        self.files = 0
        self.fixed = 0
        self.lesser: dict[str, int] = {}  # findings of lesser rules that were not asked for, by code
        self.sources: dict[str, str] = {}  # texts, for an output that shows them

    def add(self, outcome: Outcome, cache: Cache | None = None) -> None:
        path, findings, error, new = outcome
        self.files += 1
        self.findings += [(path, finding) for finding in findings]
        if error is not None:
            self.errors.append(error)
        if cache is not None and new is not None:
            cache.put(new, findings)

    @property
    def exit_code(self) -> int:
        if self.errors:
            return 2
        return 1 if self.findings else 0

    def by_code(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for _, finding in self.findings:
            counts[finding.code] = counts.get(finding.code, 0) + 1
        return dict(sorted(counts.items()))

    def summary(self) -> dict[str, object]:
        return {
            "files": self.files,
            "findings": len(self.findings),
            "errors": len(self.errors),
            "fixed": self.fixed,
            "by_code": self.by_code(),
            "lesser": self.lesser,
        }
