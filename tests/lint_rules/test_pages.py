"""The pages in docs/rules are those that the rules make."""

from __future__ import annotations

from pathlib import Path

from ptmigrate.lint_rules.pages import explain, index, outdated, write
from ptmigrate.lint_rules.registry import all_rules

FOLDER = Path(__file__).parents[2] / "docs" / "rules"


def test_pages_are_current():
    assert outdated(str(FOLDER)) == [], "run: python -m ptmigrate.lint_rules.pages docs/rules"


def test_every_rule_has_a_row_and_a_summary():
    text = index()
    for rule in all_rules():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| [{rule.code}]")]
        assert len(row.split("|")[3].strip()) > 20


def test_a_page_tells_all():
    for rule in all_rules():
        page = explain(rule)
        for part in (rule.code, rule.name, rule.why, "## Example", "## Use instead", "## Fix"):
            assert part in page


def test_write_makes_changes_and_removes(tmp_path):
    folder = tmp_path / "rules"
    write(str(folder))
    assert outdated(str(folder)) == []
    (folder / "PTM999.md").write_text("gone")
    (folder / "PTM301.md").write_text("old")
    assert outdated(str(folder)) == ["PTM301.md", "PTM999.md"]
    write(str(folder))
    assert outdated(str(folder)) == []
