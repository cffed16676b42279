"""Counters that no batch was added to, beside those of other ranks."""

import numpy
import pytest
import torch
from ptmigrate.runtime.collectives import _as_others, _is_counter, _kind

from tests.forked import answers


def of_ranks(*leaves):
    """What each rank goes on with; None where the ranks' leaves are no one counter."""
    kinds = [_kind(leaf) for leaf in leaves]
    return [_as_others(leaf, kinds) for leaf in leaves] if _is_counter(kinds) else None


@pytest.mark.parametrize(
    ("began", "other"),
    [
        (0, 2.5),
        (0, torch.tensor(2.5)),
        (0.0, torch.tensor(3)),
        (0, torch.tensor([1, 2])),
        (torch.tensor(0.0), torch.tensor([1.5, 2.0], dtype=torch.float64)),
        (False, 3),
        (0, numpy.float64(1.5)),
        (0, numpy.array([1.5, 2.5])),
    ],
)
def test_a_counter_without_batches_is_of_the_kind_of_the_others(began, other):
    mine, its = of_ranks(began, other)
    assert _kind(mine) == _kind(its) == _kind(of_ranks(other, began, began)[2])
    assert not numpy.any(numpy.asarray(mine)) and numpy.array_equal(its, other)


@pytest.mark.parametrize("leaf", [3, 2.5, torch.tensor([1, 2]), numpy.float32(1.0), None, "text"])
def test_what_is_alike_stays_the_very_same(leaf):
    assert of_ranks(leaf, leaf)[0] is leaf


@pytest.mark.parametrize(
    ("one", "other"),
    [(None, 1), ("text", 2.0), (torch.zeros(1), torch.zeros(7)), (torch.zeros(2), numpy.zeros(2)), ([], 1)],
)
def test_other_things_are_no_counter(one, other):
    assert of_ranks(one, other) is None


@pytest.mark.slow
@pytest.mark.parametrize("processes", [3, 4])
def test_an_evaluation_of_fewer_batches_than_ranks(processes):
    one, several = answers("few_batches.py", 1), answers("few_batches.py", processes)
    assert several["on every rank"]
    for expected, got in zip(one["rows"], several["rows"], strict=True):
        for a, b in zip(expected, got, strict=True):
            assert b == pytest.approx(a, rel=1e-5)
