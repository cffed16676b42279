"""The arithmetic of dividing, over sizes, batch sizes and worlds; workers, and loaders as users write them."""

import dataclasses
import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st
from ptmigrate.runtime.data.divide import bounds, parts, steps
from ptmigrate.runtime.data.loaders import already_divided, is_indexed, rebuilt
from ptmigrate.runtime.data.move import batch_size_of, move_to, slice_batch
from torch.utils.data import DataLoader, TensorDataset

WORLDS = st.integers(1, 7)
BATCHES = st.lists(st.lists(st.integers(), min_size=1, max_size=9), max_size=12)


@given(st.integers(0, 500), WORLDS)
def test_bounds_cover_everything_once(total, world):
    pieces = [bounds(total, rank, world) for rank in range(world)]
    sizes = [stop - start for start, stop in pieces]
    assert pieces[0][0] == 0 and pieces[-1][1] == total
    assert all(a[1] == b[0] for a, b in itertools.pairwise(pieces))
    assert max(sizes) - min(sizes) <= 1 and sizes == sorted(sizes, reverse=True)


@given(BATCHES, WORLDS)
def test_slices_put_together_are_the_batches(batches, world):
    ranks = [list(parts(batches, "slice", rank, world)) for rank in range(world)]
    for batch, *pieces in zip(batches, *ranks, strict=True):
        assert [item for part in pieces for item in part.items[: part.count]] == batch
        assert all(part.items and part.total == len(batch) for part in pieces)
    assert all(len(rank) == steps(len(batches), "slice", 0, world) for rank in ranks)


@given(BATCHES, WORLDS)
def test_groups_are_consecutive_batches(batches, world):
    ranks = [list(parts(batches, "group", rank, world)) for rank in range(world)]
    for step in range(steps(len(batches), "group", 0, world)):
        whole = [item for batch in batches[step * world : (step + 1) * world] for item in batch]
        pieces = [rank[step] for rank in ranks]
        assert [item for part in pieces for item in part.items[: part.count]] == whole
        assert {part.total for part in pieces} == {len(whole)}
    assert {len(rank) for rank in ranks} == {steps(len(batches), "group", 0, world)}


@given(BATCHES, WORLDS)
def test_weights_add_up(batches, world):
    """The average over ranks of n_r * W / N is one."""
    for rule in ("slice", "group"):
        for pieces in zip(*(parts(batches, rule, rank, world) for rank in range(world)), strict=True):
            assert abs(sum(part.count * world / part.total for part in pieces) / world - 1) < 1e-12


@given(BATCHES, WORLDS)
def test_dealing_gives_each_batch_to_one_rank(batches, world):
    dealt = [list(parts(batches, "deal", rank, world)) for rank in range(world)]
    assert [len(rank) for rank in dealt] == [steps(len(batches), "deal", rank, world) for rank in range(world)]
    back = [part.items for turn in itertools.zip_longest(*dealt) for part in turn if part is not None]
    assert back == batches


def test_sizes_and_slices_of_collated_batches():
    x = torch.arange(12).reshape(6, 2)
    batch = {"x": x, "names": ["a", "b", "c", "d", "e", "f"], "pair": (x + 1, [x + 2])}
    cut = slice_batch(batch, 2, 4)
    assert batch_size_of(batch) == 6 and batch_size_of(cut) == 2
    assert cut["names"] == ["c", "d"] and torch.equal(cut["pair"][1][0], x[2:4] + 2)
    assert batch_size_of("none") == 4 and batch_size_of(3) is None and batch_size_of(torch.tensor(1.0)) == 1


def test_nothing_is_copied_on_the_cpu():
    batch = {"x": [torch.ones(2)]}
    assert move_to(batch, torch.device("cpu")) is batch


class Sentences:
    def __init__(self, src):
        self.src, self.masks, self.words, self.of = src, [src > 0], ["a", "b"], Sentences


@dataclasses.dataclass(frozen=True)
class Pair:
    x: torch.Tensor
    name: str = "pair"


def test_an_object_that_a_collate_function_makes_goes_with_its_tensors():
    batch, there = Sentences(torch.ones(2)), torch.device("meta")
    moved = move_to({"batch": batch, "kind": Sentences}, there)["batch"]
    assert moved.src.device == moved.masks[0].device == there and batch.src.device.type == "cpu"
    assert type(moved) is Sentences and moved.words is batch.words and moved.of is Sentences
    pair = move_to(Pair(torch.ones(2)), there)
    assert pair.x.device == there and pair.name == "pair"


def test_one_without_tensors_is_the_same():
    empty = Sentences(torch.ones(2))
    empty.src, empty.masks = None, []
    kind = type("Kind", (), {"mean": torch.ones(1)})
    batch = [Sentences, kind, range(3), empty]
    assert all(a is b for a, b in zip(move_to(batch, torch.device("meta")), batch, strict=True))


def first(worker):
    torch.manual_seed(worker)


def test_settings_of_a_loader_are_kept():
    generator = torch.Generator()
    loader = DataLoader(
        TensorDataset(torch.arange(4)),
        2,
        num_workers=1,
        worker_init_fn=first,
        prefetch_factor=3,
        persistent_workers=True,
        generator=generator,
        timeout=9,
        collate_fn=list,
    )
    again = rebuilt(loader, loader.batch_sampler, None)
    for name in ("num_workers", "worker_init_fn", "prefetch_factor", "persistent_workers", "timeout", "collate_fn"):
        assert getattr(again, name) == getattr(loader, name)
    assert again.generator is generator
    assert rebuilt(loader, loader.batch_sampler, 5).generator is not generator


def test_which_loaders_are_asked_for_indices():
    data = TensorDataset(torch.arange(4))

    class Own(DataLoader):
        def __iter__(self):
            return iter([1])

    assert is_indexed(DataLoader(data, 2)) and not is_indexed(Own(data)) and not is_indexed([1, 2])
    sampler = torch.utils.data.DistributedSampler(data, 2, 0)
    assert already_divided(DataLoader(data, sampler=sampler)) and not already_divided(DataLoader(data))
