"""What each output format writes, read back by a parser of that format."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from ptmigrate.lint_rules.output import full, github, junit, sarif
from ptmigrate.lint_rules.result import Result
from ptmigrate.lint_rules.rule import Finding
from ptmigrate.migrate.facts.source import SourceError

from tests.sarif_schema import faults


@pytest.fixture
def result(tmp_path):
    found = Result()
    found.files = 3
    message = '`x < "é" & y.item()` waits 100%, at\nevery step'
    found.findings = [
        ("src/a b.py", Finding("PTM301", "item-in-hot-loop", 2, 6, 2, 14, message, None)),
        ("src/a b.py", Finding("PTM101", "hard-coded-device", 3, 1, 4, 3, "two lines", "unsafe")),
    ]
    found.errors = [SourceError("bad,1.py", 2, 7, "syntax error: 'x' \x00\x1b")]
    found.sources = {"src/a b.py": "import torch\n\ta = é.item()\nmodel.cuda(\n  )\n"}
    return found


def test_full(result):
    text = "\n".join(full.write(result))
    assert "src/a b.py:2:6: PTM301" in text
    assert "2 | \ta = é.item()\n  | \t    ^^^^^^^^\n" in text
    assert "3 | model.cuda(\n  | ^^^^^^^^^^^\n" in text
    assert "= `.item()` waits" in text or "= " in text
    assert "--unsafe-fixes settles it" in text
    assert text.endswith("2 findings in 3 files.")
    assert "\033[" not in text


def test_full_with_colour(result):
    assert "\033[31mPTM301\033[0m" in "\n".join(full.write(result, color=True))


def test_full_counts_wide_characters_twice(result):
    result.findings = result.findings[:1]
    result.sources = {"src/a b.py": "import torch\n日本 = é.item()\n"}
    assert "  | " + " " * 7 + "^^^^^^^^" in "\n".join(full.write(result))


def test_full_of_a_file_that_is_gone(result):
    result.sources = {}
    assert "src/a b.py:2:6: PTM301" in "\n".join(full.write(result))


def test_nothing_found_says_nothing():
    assert list(full.write(Result())) == []
    assert list(github.write(Result())) == []


def test_sarif(result):
    document = json.loads("\n".join(sarif.write(result)))
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    first, second = run["results"]
    assert document["version"] == "2.1.0"
    assert rules[first["ruleIndex"]]["id"] == first["ruleId"] == "PTM301"
    place = second["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "src/a%20b.py"
    assert place["region"] == {"startLine": 3, "startColumn": 1, "endLine": 4, "endColumn": 3}
    assert run["invocations"][0]["executionSuccessful"] is False
    assert len({rule["id"] for rule in rules}) == len(rules) > 40
    assert all(rule.get("fullDescription", rule["shortDescription"])["text"] for rule in rules)


def test_sarif_of_an_absolute_path(result):
    result.findings = [("/tmp/x.py", result.findings[0][1])]
    document = json.loads("\n".join(sarif.write(result)))
    place = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "file:///tmp/x.py"


def test_github(result):
    lines = list(github.write(result))
    assert lines[0].startswith("::warning file=src/a b.py,line=2,endLine=2,col=6,endColumn=14,title=ptlint PTM301")
    assert "100%25, at%0Aevery step" in lines[0]
    assert "endColumn" not in lines[1]
    assert lines[2].startswith("::error file=bad%2C1.py,line=2,col=7,")
    assert all("\n" not in line for line in lines)


def test_junit(result):
    root = ElementTree.fromstring("\n".join(junit.write(result)).encode())
    assert root.attrib == {"name": "ptlint", "tests": "3", "failures": "2", "errors": "1"}
    assert [suite.get("name") for suite in root] == ["bad,1.py", "src/a b.py"]
    assert root[1][0][0].get("message") == result.findings[0][1].message
    assert root[0][0][0].get("message").startswith("syntax error: 'x' ")


def test_junit_of_a_clean_run():
    root = ElementTree.fromstring("\n".join(junit.write(Result())).encode())
    assert root.get("tests") == "1" and root.get("failures") == "0"


def test_sarif_keeps_to_the_2_1_0_schema(result):
    assert not faults(json.loads("\n".join(sarif.write(result))))
