"""What a worker loads of a batch that is cut: all of it where samples or collating may draw, else its rank's part."""

import random
from dataclasses import dataclass

import pytest
import torch
from ptmigrate.runtime.data.divide import Share
from ptmigrate.runtime.data.in_workers import WorkerSamples
from torch.utils.data import DataLoader, Dataset, Subset, default_collate

BATCH = list(range(10))


class Plain(Dataset):
    def __len__(self):
        return 30

    def __getitem__(self, index):
        return torch.tensor([float(index)])


class Drawn(Plain):
    def __getitem__(self, index):
        return torch.tensor([index + random.random()])


class OfSome(Plain):
    """Draws for few samples, and for none of the first batch."""

    def __getitem__(self, index):
        return torch.tensor([index + (random.random() if index > 20 else 0.0)])


class Batches(Drawn):
    """Gives a batch at once, as torch does not ask for it."""

    def __getitems__(self, indices):
        return torch.tensor([[index + random.random()] for index in indices])


def masked(samples):
    return default_collate(samples) + torch.rand(len(samples), 1)


def as_it_is(batch):
    return batch


def ragged(samples):
    return [len(samples), torch.rand(3)]


def flat(samples):
    return torch.cat(samples + samples), torch.tensor([0, len(samples)]) + torch.rand(2).long()


@dataclass
class Batch:
    x: torch.Tensor


def kept(samples):
    return Batch(masked(samples))


def samples_of(data, collate=default_collate):
    return WorkerSamples.of(DataLoader(data, 10, collate_fn=collate, num_workers=2))


def loaded(samples, rank, batches=(BATCH, range(15, 25))):
    random.seed(0)
    torch.manual_seed(0)
    return [samples.collate(samples.__getitems__(Share.of(list(batch), rank, 3))) for batch in batches]


@pytest.mark.parametrize(
    "data, collate",
    [
        (Drawn(), default_collate),
        (OfSome(), default_collate),
        (Plain(), masked),
        (Drawn(), masked),
        (Subset(Drawn(), range(25)), default_collate),
        (Batches(), as_it_is),
    ],
)
def test_the_parts_are_the_batch(data, collate):
    parts = [loaded(samples_of(data, collate), rank) for rank in range(3)]
    random.seed(0)
    torch.manual_seed(0)
    for number, batch in enumerate((BATCH, range(15, 25))):
        whole = collate(data.__getitems__(list(batch)) if isinstance(data, Batches) else [data[i] for i in batch])
        assert torch.equal(torch.cat([part[number] for part in parts]), whole)


def test_where_nothing_draws_each_rank_loads_its_own():
    assert samples_of(Plain()) is None
    assert WorkerSamples.of(DataLoader(Drawn(), 10)) is None, "without workers drawing.py does it"


def test_a_rank_without_samples_borrows_one():
    samples = samples_of(Drawn())
    assert samples.collate(samples.__getitems__(Share.of([5], 2, 3))).shape == (1, 1)


@pytest.mark.parametrize(
    "collate, length", [(ragged, lambda b: b[0]), (flat, lambda b: len(b[0]) // 2), (kept, lambda b: len(b.x))]
)
def test_what_has_no_row_for_each_sample_is_collated_alone(collate, length):
    """The text of an EmbeddingBag, the boxes of a batch: and the stream goes on as one process's."""
    assert [length(batch) for batch in loaded(samples_of(Plain(), collate), 2)] == [3, 3]
    drawn = torch.rand(1)
    torch.manual_seed(0)
    for batch in (BATCH, range(15, 25)):
        collate([Plain()[i] for i in batch])
    assert torch.equal(torch.rand(1), drawn)


@pytest.mark.parametrize("collate", [default_collate, masked])
def test_a_batch_of_another_rank_is_drawn_and_not_given(collate):
    samples = samples_of(Drawn(), collate)
    random.seed(0)
    assert samples.collate(samples.__getitems__(Share(BATCH, slice(0)))) is None
    drawn = random.random()
    random.seed(0)
    assert drawn == [random.random() for _ in range(11)][-1]
