"""`--fix` through the codemods of the migration."""

from __future__ import annotations

import pytest
from ptmigrate.lint_rules.cli import run
from ptmigrate.lint_rules.registry import all_rules
from ptmigrate.lint_rules.rule import examples

OLD = """import torch
import torch.nn.functional as F
from torch.autograd import Variable

x = Variable(x)  # kept: a comment
loss = F.mse_loss(x, y, size_average=False)
total = loss.data[0]
"""


class Done:
    def __init__(self, returncode, captured):
        self.returncode = returncode
        self.stdout, self.stderr = captured


@pytest.fixture
def ptlint(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: Done(run(list(arguments)), capsys.readouterr())


def test_safe_fixes(tmp_path, ptlint):
    (tmp_path / "a.py").write_text(OLD)
    done = ptlint("--fix", "a.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = (tmp_path / "a.py").read_text()
    assert "Variable(" not in text and 'reduction="sum"' in text and "loss.item()" in text


def test_the_diff_writes_nothing(tmp_path, ptlint):
    (tmp_path / "a.py").write_text(OLD)
    done = ptlint("--diff", "a.py")
    assert '+loss = F.mse_loss(x, y, reduction="sum")' in done.stdout
    assert (tmp_path / "a.py").read_text() == OLD


def test_line_ends_and_encoding_are_kept(tmp_path, ptlint):
    text = "# coding: latin-1\nimport torch.nn.functional as F\ns = 'é'\nloss = F.mse_loss(x, y, size_average=True)\n"
    (tmp_path / "a.py").write_bytes(text.replace("\n", "\r\n").encode("latin-1"))
    assert ptlint("--fix", "a.py").returncode == 0
    fixed = (tmp_path / "a.py").read_bytes()
    assert fixed.count(b"\r\n") == 4 and b"'\xe9'" in fixed and b'reduction="mean"' in fixed


def test_unsafe_fixes_are_asked_for(tmp_path, ptlint):
    text = "import torch\n\nmodel = torch.nn.Linear(2, 1).cuda()\n"
    (tmp_path / "a.py").write_text(text)
    assert ptlint("--fix", "a.py").returncode == 1
    assert (tmp_path / "a.py").read_text() == text
    assert ptlint("--fix", "--unsafe-fixes", "a.py").returncode == 0
    assert ".cuda()" not in (tmp_path / "a.py").read_text()


def test_suppressed_lines_are_left(tmp_path, ptlint):
    text = OLD.replace("data[0]", "data[0]  # noqa: PTM604 - an old torch")
    (tmp_path / "a.py").write_text(text)
    ptlint("--fix", "a.py")
    assert "loss.data[0]  # noqa" in (tmp_path / "a.py").read_text()


SETTLED = [pytest.param(rule, examples(rule.BAD)[0], id=rule.code) for rule in all_rules() if rule.fix]


@pytest.mark.parametrize(("rule", "text"), SETTLED)
def test_the_first_example_of_a_rule_with_a_fix_is_fixed(rule, text, tmp_path, ptlint):
    (tmp_path / "a.py").write_text(text)
    done = ptlint("--fix", "--unsafe-fixes", "--select", rule.code, "a.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
