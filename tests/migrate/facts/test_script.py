"""The facts of a file's texts: shared while the file is worked on, and gone afterwards."""

import ast
import gc

import pytest
from ptmigrate.migrate.facts.script import Facts, facts_of, of_one_file
from ptmigrate.migrate.migrate import migrate_text

TEXT = "import torch\nx = torch.ones(2).cuda()\n"


def test_the_same_text_has_the_same_facts_in_one_file():
    with of_one_file():
        facts = facts_of(TEXT)
        assert facts_of(TEXT) is facts and facts_of(TEXT + "\n") is not facts and Facts(TEXT) is not facts
        with of_one_file():
            assert facts_of(TEXT) is not facts
        assert facts_of(TEXT) is facts
    assert facts_of(TEXT) is not facts


def test_what_was_learnt_goes_with_the_file():
    with of_one_file():
        facts = Facts(TEXT)
        assert facts.walk(ast.Call)
    with pytest.raises(AttributeError):
        facts.tree  # noqa: B018
    assert Facts(TEXT).walk(ast.Call)  # outside of a file they stay


def test_a_migration_leaves_no_trees_to_the_collector():
    def alive():
        return [found for found in gc.get_objects() if type(found) in (ast.Module, Facts)]

    gc.collect()
    gc.disable()
    try:
        before = alive()  # held here: an address that is used again would pass for one of these
        migrate_text(TEXT)
        assert not {id(found) for found in alive()} - {id(found) for found in before}
    finally:
        gc.enable()


def test_nodes_of_a_type_come_in_the_order_of_the_text():
    text = "if one():\n    with two() as t:\n        three(t)\nfor x in four():\n    five()\nelse:\n    six()\n"
    assert [c.func.id for c in Facts(text).walk(ast.Call)] == ["one", "two", "three", "four", "five", "six"]
