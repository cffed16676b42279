"""`Batches`: the parts that a loop would cut by hand, and a loader of the same that draws nothing."""

import numpy
import pytest
import torch
from ptmigrate.runtime import Batches
from ptmigrate.runtime.data.batches import Rows

X, Y = torch.arange(22).reshape(11, 2), list("abcdefghijk")
ORDER = torch.tensor([3, 1, 4, 10, 5, 9, 2, 6, 8, 7, 0])


def test_they_are_the_slices():
    given = list(Batches(X, Y, at=range(0, 11, 4), size=4))
    assert len(given) == len(Batches(X, Y, at=range(0, 11, 4), size=4)) == 3
    for start, (x, y) in zip(range(0, 11, 4), given, strict=True):
        assert torch.equal(x, X[start : start + 4]) and y == Y[start : start + 4]
    assert given[0][0].data_ptr() == X.data_ptr()  # a view, as the slice was


@pytest.mark.parametrize("order", [ORDER, ORDER.numpy(), ORDER.tolist()], ids=["tensor", "array", "list"])
def test_an_order_tells_the_samples(order):
    given = list(Batches(X, X.numpy(), Y, at=range(0, 11, 4), size=4, order=order))
    for start, (x, a, y) in zip(range(0, 11, 4), given, strict=True):
        rows = ORDER[start : start + 4]
        assert torch.equal(x, X[rows]) and numpy.array_equal(a, X[rows].numpy()) and y == [Y[n] for n in rows]


def test_one_array_gives_no_tuples():
    assert [b.tolist() for b in Batches(torch.arange(5), at=range(0, 5, 2), size=2)] == [[0, 1], [2, 3], [4]]


def test_places_need_not_follow_on_each_other():
    assert [b.tolist() for b in Batches(torch.arange(9), at=[6, 0], size=3)] == [[6, 7, 8], [0, 1, 2]]
    assert len(Batches(X, at=iter([1, 2]), size=1)) == 2


@pytest.mark.parametrize("order", [None, ORDER])
def test_a_loader_has_the_same_and_draws_nothing(order):
    batches = Batches(X, Y, at=range(0, 11, 4), size=4, order=order)
    before = torch.get_rng_state()
    loaded = list(batches.loader())
    assert torch.equal(before, torch.get_rng_state())
    for (x, y), (a, b) in zip(batches, loaded, strict=True):
        assert torch.equal(x, a) and y == b


def test_only_an_order_has_to_be_told():
    assert Rows(Batches(X, at=range(3), size=1)).is_sequential
    assert not Rows(Batches(X, at=range(3), size=1, order=ORDER)).is_sequential


def test_without_data_it_says_what_to_give():
    with pytest.raises(TypeError, match=r"Batches\(X, Y, at=..., size=...\)"):
        Batches(at=range(3), size=1)
