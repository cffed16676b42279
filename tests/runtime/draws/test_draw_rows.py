"""Where the batch is in the shape of what is drawn; what has a number of rows of its own has no batch."""

import pytest
from ptmigrate.runtime.draws.rows import Place, Rows


def rows(start=4, stop=7, whole=7):
    made = Rows()
    made.set(start, stop, whole)
    return made


@pytest.mark.parametrize(
    ("shape", "place"),
    [
        ((3,), Place(0, 7, 4, 7)),
        ((3, 5), Place(0, 7, 4, 7)),
        ((3, 3), Place(0, 7, 4, 7)),
        ((5, 3, 2), Place(1, 7, 4, 7)),  # time first
    ],
)
def test_a_batch(shape, place):
    assert rows().place(shape) == place
    assert place.shape(shape)[place.dim] == 7


@pytest.mark.parametrize("shape", [(), (1,), (5, 2), (7, 3), (64, 100)])
def test_no_batch(shape):
    assert rows().place(shape) is None


def test_heads_of_an_attention_are_rows_of_their_samples():
    assert rows().place((6, 5, 5), flat=True) == Place(0, 14, 8, 14)
    assert rows().place((6, 5, 5)) is None, "a size that was given is no activation's"


def test_one_sample_has_the_heads_that_were_met_before():
    made = rows(6, 7, 7)
    assert made.place((2, 5, 6), flat=True) is None, "two rows of anything"
    made.set(0, 4, 7)
    assert made.place((8, 5, 6), flat=True) == Place(0, 14, 0, 8)
    made.set(6, 7, 7)
    assert made.place((2, 5, 6), flat=True) == Place(0, 14, 12, 14)
    assert made.place((2, 9, 6), flat=True) is None


def test_as_many_heads_as_ranks():
    made = rows(0, 4, 8)
    assert made.place((8, 5, 5), flat=True) is None, "eight samples are the whole batch"
    assert made.place((8, 5, 5), flat=True, only=0) == Place(0, 16, 0, 8)
    assert made.place((8, 4, 4), flat=True, only=0) == Place(0, 16, 0, 8), "four steps of time"
    assert made.place((4, 2, 5, 5), flat=True, only=0) == Place(0, 8, 0, 4)


def test_a_borrowed_sample_is_the_first():
    made = rows(7, 7, 7)
    made.set(0, 0, 3)
    assert made.place((1, 5)) == Place(0, 3, 0, 1)


def test_who_borrows_behind_the_last_sample_has_the_first():
    made = rows(2, 2, 2)
    assert made.place((1, 5)) == Place(0, 2, 0, 1)


def test_views_of_the_batch_lie_one_behind_the_other():
    made = rows(4, 7, 7)
    made.views.add(2)
    place = made.place((6, 5), flat=True)
    assert place == Place(0, 7, 4, 7, 2)
    assert place.shape((6, 5)) == (14, 5) and place.pieces == [(4, 3), (11, 3)]


def test_a_batch_of_one_sample_is_drawn_as_it_is():
    assert rows(0, 1, 1).place((1, 5)) is None
