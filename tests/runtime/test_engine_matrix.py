"""docs/engines.md says what is so: every engine that is installed, every kind of run."""

import os

import pytest
from engine_matrix import CELLS, ENGINES, PAGE, page, read_page, run_row, skip_without
from ptmigrate.runtime.strategies.registry import HOMES

FEW = ("fit", "save", "clip", "fail")
# its cells each start processes, and are those of ddp_spawn and of ddp_sharded: all of them with `make matrix`
WHICH = {} if os.environ.get("MATRIX") else {"ddp_sharded_spawn": FEW}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine in HOMES])
def test_row(engine):
    """Each cell works, with the numbers of one process, or is refused with a reason before training starts."""
    skip_without(engine)
    cells = WHICH.get(engine, tuple(CELLS))
    written = {cell: said for cell, said in read_page().get(engine, {}).items() if cell in cells}
    assert written == run_row(engine, cells), f"write it: python tests/runtime/engine_matrix.py {engine}"


def test_the_page_is_the_one_that_is_written():
    rows = read_page()
    assert page(rows) == PAGE.read_text()
    assert all(list(row) == list(CELLS) for row in rows.values())
