"""`_ = train(loader)` of a function that returns nothing: the name has None, where anything reads it."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_same_run import FUNCTIONS
from tests.migrate.running import check_same

NOTHING = FUNCTIONS.replace("    return total\n", "").replace("    total = train(epoch)", "    _ = train(epoch)")


def test_a_name_that_nothing_reads_goes():
    result = check_same(NOTHING, "module")
    assert "_ = " not in result.replace("__init__", "")


def test_one_that_is_read_is_none():
    result = check_same(NOTHING.replace("    scheduler.step()", "    print(_)\n    scheduler.step()"), "module")
    assert "self._ = None" in result


@pytest.mark.parametrize("target", ["a, b", "(a,)"])
def test_nothing_else_is_made_of_it(target):
    (told,) = [
        n for n in migrate_text(NOTHING.replace("_ = train", f"{target} = train")).attention if n.code == "PTM701"
    ]
    assert (
        "returns nothing is used" in told.message or "unpacked" in told.message or "another statement" in told.message
    )
