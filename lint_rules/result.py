"""What a run found, for every output to write."""

from __future__ import annotations

from ptmigrate.migrate.facts.source import SourceError

from .rule import Finding


class Result:
    def __init__(self) -> None:
        self.findings: list[tuple[str, Finding]] = []  # with the path of the file
        self.errors: list[SourceError] = []
        self.files = 0
        self.lesser = 0  # findings of lesser rules that were not asked for

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
            "by_code": self.by_code(),
        }
