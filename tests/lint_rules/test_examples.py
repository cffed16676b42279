"""Each rule's own examples: the bad ones are found by it, the good ones by no rule of the same code."""

import ast
import re

import pytest
from ptmigrate.lint_rules.engine import Linter
from ptmigrate.lint_rules.registry import all_rules, choose
from ptmigrate.lint_rules.rule import examples

RULES = all_rules()
BAD = [pytest.param(r, text, id=f"{r.code}-{i}") for r in RULES for i, text in enumerate(examples(r.BAD))]
GOOD = [pytest.param(r, text, id=f"{r.code}-{i}") for r in RULES for i, text in enumerate(examples(r.GOOD))]


def codes(rule, text):
    return [f.code for f in Linter([rule]).lint_bytes(text.encode(), "example.py")]


@pytest.mark.parametrize(("rule", "text"), BAD)
def test_bad_is_found_once(rule, text):
    assert codes(rule, text) == [rule.code]


@pytest.mark.parametrize(("rule", "text"), GOOD)
def test_good_is_not(rule, text):
    ast.parse(text)
    assert codes(rule, text) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)
def test_a_rule_tells_all(rule):
    assert re.fullmatch(r"PTM[1-6]\d\d", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert len(rule.why) > 40
    assert rule.why.endswith(".")
    assert rule.fix in (None, "safe", "unsafe")
    assert rule.fix or not rule.settled_by
    assert "torch" in examples(rule.BAD)[0]  # else the file would not even be parsed


def test_codes_and_names_are_unique_and_follow_the_folder():
    assert len({r.code for r in RULES}) == len({r.name for r in RULES}) == len(RULES)
    folders = {"device": "1", "pickling": "2", "sync": "3", "distributed": "4", "data": "5", "idioms": "6"}
    for rule in RULES:
        assert rule.code[3] == folders[type(rule).__module__.split(".")[-2]]


def test_a_lesser_rule_is_chosen_by_its_own_code_only():
    assert not any(r.lesser for r in choose())
    assert not any(r.lesser for r in choose(["PTM"]))
    assert {r.code for r in RULES} == {r.code for r in choose(["ALL"])}


@pytest.mark.parametrize("rule", [r for r in RULES if r.settled_by], ids=lambda r: r.code)
def test_the_codemod_is_there(rule):
    from importlib.util import find_spec

    assert find_spec(f"ptmigrate.migrate.codemods.{rule.settled_by}")
