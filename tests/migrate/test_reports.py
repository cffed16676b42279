"""The forms of the report: SARIF as code hosts read it, a page that needs nothing else, the pages of the codes."""

import html.parser
import json
import re

import pytest
from click.testing import CliRunner
from ptmigrate.migrate.cli import command
from ptmigrate.migrate.codes import CODES, all_codes
from ptmigrate.migrate.explain import EXAMPLES, explain

from tests.sarif_schema import faults

SCRIPT = """\
import torch
s = "<b>&</b>"
model = torch.nn.Linear(2, 2).cuda()
z = torch.zeros(3).cuda(1)
for x, y in loader:
    model(x.cuda(), z)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.py").write_text(SCRIPT)
    (tmp_path / "bad.py").write_text("import torch\nx = (\n")
    (tmp_path / "none.py").write_text("x = 1\n")
    return tmp_path


def run(*args):
    return CliRunner().invoke(command, list(args))


def sarif_of(*args):
    return json.loads(run("--check", "--format", "sarif", *args).stdout)


def test_sarif_has_edits_notes_and_errors(folder):
    (one,) = sarif_of(".")["runs"]
    rules = one["tool"]["driver"]["rules"]
    levels = [(r["ruleId"], r["level"]) for r in one["results"]]
    assert levels == [("PTM115", "note"), ("PTM101", "warning"), ("PTM115", "note")]
    assert all(rules[r["ruleIndex"]]["id"] == r["ruleId"] for r in one["results"])
    place = one["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a%20b.py"}, "region": {"startLine": 3, "startColumn": 9}}
    invocation = one["invocations"][0]
    assert invocation["executionSuccessful"] is False
    error = invocation["toolExecutionNotifications"][0]
    assert error["locations"][0]["physicalLocation"]["region"] == {"startLine": 2, "startColumn": 5}
    assert "never closed" in error["message"]["text"]


def test_sarif_keeps_to_the_2_1_0_schema(folder):
    log = sarif_of(".")
    assert log["version"] == "2.1.0" and not faults(log)


def test_the_schema_sees_what_is_wrong(folder):
    """A line number of 0, a level of no kind, a property of our own making, a space in an address."""
    log = sarif_of(".")
    (one,) = log["runs"]
    place = one["results"][0]["locations"][0]["physicalLocation"]
    place["region"]["startLine"] = 0
    place["artifactLocation"]["uri"] = "a b.py"
    one["results"][1]["level"] = "info"
    one["invocations"][0]["files"] = 3
    assert len(faults(log)) == 4


class Balanced(html.parser.HTMLParser):
    """Every element that opens closes, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        assert not any(k in ("src", "href") for k, _ in attrs), "the page loads something"
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_has_the_diff_with_the_reasons_beside_and_loads_nothing(folder):
    done = run("--check", "--format", "html", "--report", "page.html", ".")
    assert done.exit_code == 2 and not done.stdout
    page = (folder / "page.html").read_text(encoding="utf-8")
    seen = Balanced()
    seen.feed(page)
    assert not seen.open and "<script" not in page and "url(" not in page
    text = " ".join(seen.text)
    assert 's = "<b>&</b>"' in text, "the source is shown as it is"
    assert "never closed" in text and "none.py" in text
    row = next(r for r in re.findall(r"<tr.*?</tr>", page) if ".cuda()" in r)
    assert 'class="del"' in row and "PTM115" in row, "the reason stands in the row of its line"
    look = next(r for r in re.findall(r"<tr.*?</tr>", page) if "zeros(3)" in r)
    assert "PTM101" in look and "look at this" in look


def test_the_reasons_stand_beside_their_lines_below_a_form_feed(folder):
    (folder / "page.py").write_text("import torch\n\x0c\n# a\u2028b\n" + SCRIPT[13:], encoding="utf-8")
    run("--check", "--format", "html", "--report", "page.html", "page.py")
    page = (folder / "page.html").read_text(encoding="utf-8")
    row = next(r for r in re.findall(r"<tr.*?</tr>", page, re.DOTALL) if "Linear(2, 2).cuda()" in r)
    assert "PTM115" in row and '<td class="n">5</td>' in row


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_is_explained(code):
    done = run("--explain", code.lower())
    assert done.exit_code == 0 and done.stdout.startswith(code)
    assert CODES[code][1][1:] in done.stdout


@pytest.mark.parametrize("code", sorted(EXAMPLES))
def test_the_example_of_a_code_is_about_it(code):
    """The codemod is run on its example: it edits there, or tells."""
    text = explain(code)
    assert "line " in text.split("For example:")[1], text


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("PTM505", "\n\nzero_grad() by hand"),
        ("PTM309", "\n\ntorch.cuda.empty_cache() at every step"),
        ("PTM602", "\n\nsize_average and reduce are"),
        ("PTM604", "\n\n`loss.data[0]` is"),
        ("PTM605", "\n\nAutocast in a step"),
        ("PTM601", "\n\nA tensor is its own Variable."),
        ("PTM203", "\n\nTold of: a class"),
    ],
)
def test_a_name_of_a_function_is_no_word_to_be_capitalized(code, says):
    assert says in explain(code)


@pytest.mark.parametrize("name", ["lift-loop", "Remove-Device-Calls", "set-device"])
def test_a_code_is_explained_by_its_name(name):
    assert explain(name).splitlines()[0].endswith(name.lower())


@pytest.mark.parametrize("code", sorted(all_codes()))
def test_no_row_of_the_requirements_is_spoken_of(code):
    assert not re.search(r"\bT\d+\b", explain(code))


def test_a_code_that_there_is_not(folder):
    done = run("--explain", "PTM110x")
    assert done.exit_code == 2 and "did you mean" in done.stderr and "--list" in done.stderr
    done = run("--select", "PTX1", "a b.py")
    assert done.exit_code == 2 and "'PTX1'" in done.stderr and "--list" in done.stderr


def test_the_list_has_every_code():
    assert [line.split()[0] for line in run("--list").stdout.splitlines()] == sorted(all_codes())
