"""`Batches`: the parts that a loop would cut by hand, and a loader of the same that draws nothing."""

import json

import numpy
import pytest
import torch
from ptmigrate.runtime import Batches
from ptmigrate.runtime.data.batches import Rows
from ptmigrate.runtime.data.indices import SharedBatches

from tests.forked import SCRIPTS, answers, ptrun

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


def test_tables_are_cut_by_place_and_ordered_by_label_as_by_hand():
    pandas = pytest.importorskip("pandas")
    table = pandas.Series(range(11), index=ORDER.tolist())
    plain, ordered = Batches(table, at=range(0, 11, 4), size=4), Batches(table, at=[0], size=4, order=ORDER.tolist())
    for start, one, own in zip(range(0, 11, 4), plain, plain.loader(), strict=True):
        assert one.tolist() == own.tolist() == table[start : start + 4].tolist()
    assert [b.tolist() for b in ordered] == [b.tolist() for b in ordered.loader()] == [[0, 1, 2, 3]]


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


def test_rows_in_place_need_no_message():
    rows = Rows(Batches(X, at=range(0, 11, 4), size=4))
    assert list(SharedBatches(rows, None, 1)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]  # no group to ask


def test_without_data_it_says_what_to_give():
    with pytest.raises(TypeError, match=r"Batches\(X, Y, at=..., size=...\)"):
        Batches(at=range(3), size=1)


@pytest.mark.parametrize(("name", "whole"), [("in place", True), ("ordered", True), ("in place", False)])
def test_two_ranks_divide_the_batches_of_rank_zero(name, whole):
    (first, order), (second, other) = answers("cut_batches.py", 2)[name] if whole else _grouped()[name]
    rows = list(range(10)) if order is None else order
    assert order is None or order != other
    assert all(off == 0 for _, off, _ in (*first, *second))
    pairs = [a + b for (a, *_), (b, *_) in zip(first, second, strict=True)]
    if whole:
        assert pairs == [rows[0:4], rows[4:8], rows[8:10]]
    else:
        assert pairs == [rows[0:8], rows[8:10]]  # two batches a step; what is left over is cut
    assert [a + b for (*_, a), (*_, b) in zip(first, second, strict=True)] == [1.0] * len(pairs)


def _grouped() -> dict:
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(SCRIPTS / "cut_batches.py"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_an_order_on_a_card_tells_the_samples_of_data_on_the_cpu():
    (batch,) = Batches(X, at=[0], size=4, order=ORDER.cuda())
    assert torch.equal(batch, X[ORDER[:4]])
