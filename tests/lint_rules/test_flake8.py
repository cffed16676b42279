"""The plugin as flake8 calls it."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from ptmigrate.lint_rules.flake8 import Plugin

SOURCE = "# coding: latin-1\nimport torch\ns = 'é'; model = torch.nn.Linear(2, 2).cuda()\n"


def run(source):
    return list(Plugin(ast.parse(source), source.splitlines(keepends=True), "a.py").run())


def test_findings():
    ((line, column, text, kind),) = run(SOURCE)
    assert (line, column, kind) == (3, 17, Plugin)
    assert text.startswith("PTM101 ")


def test_nothing_to_find():
    assert run("x = 1\n") == []
    assert run("import torch\n") == []


def test_flake8_finds_the_plugin():
    (point,) = [p for p in entry_points(group="flake8.extension") if p.name == "PTM"]
    assert point.load() is Plugin


def flake8(folder, *arguments, **options):
    pytest.importorskip("flake8")
    command = [sys.executable, "-m", "flake8", "--isolated", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, **options)


def test_the_real_flake8(tmp_path):
    """It needs nothing else: the plugin is found, its codes are on, and flake8's own noqa holds."""
    (tmp_path / "a.py").write_text(SOURCE.replace("latin-1", "utf-8") + "n = model.cuda()  # noqa: PTM101\n")
    (tmp_path / "b.py").write_text("import torch\nx = (\n")
    done = flake8(tmp_path, "a.py", "b.py")
    assert done.returncode == 1, done.stderr
    assert "a.py:3:18: PTM101 `torch.nn.Linear(2, 2).cuda()`" in done.stdout
    assert "b.py:2:6: E999" in done.stdout or "E999 SyntaxError" in done.stdout
    assert done.stdout.count("PTM") == 1
    assert flake8(tmp_path, "--extend-ignore", "PTM1", "--select", "PTM", "a.py").stdout == ""


def test_flake8_on_standard_input(tmp_path):
    done = flake8(tmp_path, "--select", "PTM", "--stdin-display-name", "x.py", "-", input="import torch\nnet.cuda()\n")
    assert done.stdout.startswith("x.py:2:1: PTM101 ")
