"""The plugin as flake8 calls it."""

from __future__ import annotations

import ast
from importlib.metadata import entry_points

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
