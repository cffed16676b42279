"""NumPy's draws for the parts of a batch are those for the whole one, while a step runs."""

import numpy as np
import pytest
from ptmigrate.runtime.data.divide import bounds
from ptmigrate.runtime.draws.arrays import WholeArrays
from ptmigrate.runtime.draws.rows import Rows

SAMPLES = 7
DRAWS = {
    "normal": lambda n: np.random.normal(0, 1, (n, 3)),
    "normal by name": lambda n: np.random.normal(size=(n, 3)),
    "uniform": lambda n: np.random.uniform(0.0, 1.0, n),
    "randint": lambda n: np.random.randint(0, 9, n),
    "rand": lambda n: np.random.rand(n, 2),
    "randn": lambda n: np.random.randn(n),
    "random": lambda n: np.random.random((n, 1, 1)),
    "beta": lambda n: np.random.beta(0.4, 0.4, n),
    "time first": lambda n: np.random.normal(0, 1, (5, n)).T,
}
ALIKE = {
    "a number": lambda n: np.random.rand(),
    "a beta": lambda n: np.random.beta(0.4, 0.4),
    "a size of its own": lambda n: np.random.normal(0, 1, (64, 2)),
    "all samples": lambda n: np.random.normal(0, 1, SAMPLES),
}


def several(draw, in_step=True):
    found = []
    for rank in range(2):
        rows = Rows()
        start, stop = bounds(SAMPLES, rank, 2)
        rows.set(start, stop, SAMPLES)
        arrays = WholeArrays(rows, lambda: in_step)
        np.random.seed(0)
        arrays.open()
        try:
            found.append(draw(stop - start))
        finally:
            arrays.close()
    return found


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_rows_of_the_whole(draw):
    parts = several(draw)
    np.random.seed(0)
    assert np.array_equal(np.concatenate(parts), draw(SAMPLES))


@pytest.mark.parametrize("draw", ALIKE.values(), ids=ALIKE.keys())
def test_what_is_no_batch_s_is_drawn_alike(draw):
    assert np.array_equal(*several(draw))


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_outside_of_a_step_nothing_changes(draw):
    first, _ = several(draw, in_step=False)
    np.random.seed(0)
    assert np.array_equal(first, draw(4))


def test_the_functions_are_numpy_s_again():
    before = dict(vars(np.random))
    arrays = WholeArrays(Rows(), lambda: False)
    arrays.open()
    arrays.open()
    assert np.random.normal is not before["normal"]
    arrays.close()
    assert vars(np.random) == before
