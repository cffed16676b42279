"""What dimensions mean shows when a step has another number of samples, and what was taken wrongly before is told."""

import pytest
from ptmigrate.runtime.draws.rows import Place, Rows


def steps(draws, parts=((0, 4, 8), (0, 4, 8), (0, 3, 5)), fixed=()):
    """The rows of a rank that draws `draws(samples)`: (name, shape, flat), in each of the steps start, stop, whole."""
    rows = Rows(fixed)
    for part in parts:
        rows.set(*part)
        for name, shape, flat in draws(rows.count):
            rows.place(shape, name, flat)
    return rows


TAKEN_WRONGLY = {
    "noise of a size of its own": lambda n: [("randn", (4,), False)],
    "weights' noise": lambda n: [("normal_", (4, 6), True)],
    "time first, as long as there are samples": lambda n: [("bernoulli_", (4, n, 6), True)],
    "several numbers a sample": lambda n: [("randint", (5 * n,), False)],
}
RIGHT = {
    "a batch": lambda n: [("bernoulli_", (n, 6), True), ("randn", (n, 3), False), ("rand", (n,), False)],
    "time first": lambda n: [("bernoulli_", (7, n, 6), True)],
    "a batch as wide as it is long": lambda n: [("bernoulli_", (n, 4), True), ("randn_like", (n, 4), True)],
    "noise": lambda n: [("randn", (64, 2), False), ("randn", (), False), ("rand", (1,), False)],
    "rows of each sample": lambda n: [("bernoulli_", (6 * n, 5), True)],
}


@pytest.mark.parametrize("draws", TAKEN_WRONGLY.values(), ids=TAKEN_WRONGLY.keys())
def test_what_was_taken_wrongly(draws):
    assert len(steps(draws).readings.mistaken()) == 1


@pytest.mark.parametrize("draws", RIGHT.values(), ids=RIGHT.keys())
def test_what_was_not(draws):
    assert not steps(draws).readings.mistaken()


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("noise of a size of its own", None),
        ("weights' noise", None),
        ("time first, as long as there are samples", Place(1, 8, 0, 4)),
        ("several numbers a sample", Place(0, 40, 0, 20)),
    ],
)
def test_from_then_on_it_is_taken_rightly(name, place):
    rows = steps(TAKEN_WRONGLY[name])
    rows.readings.learn({})
    rows.set(0, 4, 8)
    drawn, shape, flat = TAKEN_WRONGLY[name](4)[0]
    assert rows.place(shape, drawn, flat) == place


def test_ranks_learn_from_each_other():
    mine, others = steps(RIGHT["noise"], [(4, 5, 5)]), steps(RIGHT["noise"], [(0, 4, 5)])
    mine.readings.learn(others.readings.counts)
    mine.set(4, 5, 5)
    assert mine.place((1,), "rand") is None, "a coin, and not a number for the one sample"


def test_where_no_batch_is_ragged_doubts_are_told():
    always = [(0, 4, 8)] * 3
    assert steps(TAKEN_WRONGLY["noise of a size of its own"], always, fixed=[(4,)]).readings.mistaken()
    assert not steps(TAKEN_WRONGLY["noise of a size of its own"], always).readings.mistaken(), "as a batch's would be"
    assert not steps(RIGHT["a batch"], always).readings.mistaken()


@pytest.mark.parametrize(
    ("pairs", "told"),
    [([(4, 4), (3, 3)], 1), ([(4, 4), (4, 3)], 0), ([(1, 4)], 0), ([(8, 4), (6, 3)], 1), ([(4, 4)], 1)],
)
def test_numbers_for_one_sample_after_the_other(pairs, told):
    readings = Rows().readings
    for numbers, samples in pairs:
        readings.looped("randint", numbers, samples)
    assert len(readings.mistaken()) == told
