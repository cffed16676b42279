"""What a worker loads of a batch that is cut: all of it where samples or collating draw, else its rank's part."""

import random

import pytest
import torch
from ptmigrate.runtime.data.divide import Share
from ptmigrate.runtime.data.in_workers import WorkerSamples
from torch.utils.data import Dataset, default_collate

BATCH = list(range(10))


class Counted(Dataset):
    def __init__(self, draws):
        self.draws, self.loads = draws, 0

    def __getitem__(self, index):
        self.loads += 1
        return torch.tensor([index + (random.random() if self.draws else 0.0)])


def masked(samples):
    return default_collate(samples) + torch.rand(len(samples), 1)


def ragged(samples):
    return [len(samples), torch.rand(3)]


def loaded(samples, rank, batches=2):
    random.seed(0)
    torch.manual_seed(0)
    return [samples.collate(samples.__getitems__(Share.of(BATCH, rank, 3))) for _ in range(batches)]


@pytest.mark.parametrize(
    "draws, collate", [(False, default_collate), (True, default_collate), (False, masked), (True, masked)]
)
def test_the_parts_are_the_batch(draws, collate):
    random.seed(0)
    torch.manual_seed(0)
    data = Counted(draws)
    whole = [collate([data[index] for index in BATCH]) for _ in range(2)]
    parts = [loaded(WorkerSamples(Counted(draws), collate, None), rank) for rank in range(3)]
    for number, batch in enumerate(whole):
        assert torch.equal(torch.cat([part[number] for part in parts]), batch)


@pytest.mark.parametrize(
    "draws, collate, loads", [(False, default_collate, 10 + 4), (True, default_collate, 20), (False, masked, 20)]
)
def test_what_is_loaded(draws, collate, loads):
    samples = WorkerSamples(Counted(draws), collate, None)
    loaded(samples, 0)
    assert samples.dataset.loads == loads


def test_the_workers_of_the_next_epoch_know():
    samples = WorkerSamples(Counted(False), default_collate, None)
    loaded(samples, 1, 1)
    samples.draws = int(samples.learned)
    loaded(samples, 1, 1)
    assert samples.dataset.loads == 10 + 3


def test_a_rank_without_samples_borrows_one():
    samples = WorkerSamples(Counted(True), default_collate, None)
    batch = samples.collate(samples.__getitems__(Share.of([5], 2, 3)))
    assert batch.shape == (1, 1) and samples.dataset.loads == 1


def test_what_cannot_be_cut_is_collated_alone():
    samples = WorkerSamples(Counted(False), ragged, None)
    assert [batch[0] for batch in loaded(samples, 2)] == [3, 3]


@pytest.mark.parametrize("draws, loads", [(True, 2 * 10), (False, 10)])
def test_a_batch_of_another_rank_is_loaded_where_its_samples_draw(draws, loads):
    samples = WorkerSamples(Counted(draws), default_collate, None)
    random.seed(0)
    assert [samples.collate(samples.__getitems__(Share(BATCH, slice(0)))) for _ in range(2)] == [None, None]
    assert samples.dataset.loads == loads
