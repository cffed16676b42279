# ruff: noqa: E501
import pytest
from helpers import check, check_unchanged, migrated

HEAD = "import torch\nfrom torch.utils.data import DataLoader\nfrom torch.utils.data.distributed import DistributedSampler\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "s, t = DistributedSampler(a), DistributedSampler(b, shuffle=False)\nx, y = DataLoader(a, sampler=s), DataLoader(b, sampler=t)",
            "x, y = DataLoader(a, shuffle=True), DataLoader(b)",
        ),
        (
            "s, n = DistributedSampler(a), 4\nx = DataLoader(a, n, sampler=s)",
            "n = 4\nx = DataLoader(a, n, shuffle=True)",
        ),
        (
            "n, s = 4, DistributedSampler(a) if many else None; go()\nx = DataLoader(a, n, sampler=s)",
            "n = 4; go()\nx = DataLoader(a, n)",
        ),
        (
            "self.s, n = DistributedSampler(a), 4\nx = DataLoader(a, n, sampler=self.s)\nself.s.set_epoch(0)",
            "n = 4\nx = DataLoader(a, n, shuffle=True)",
        ),
    ],
)
def test_several_at_once_go_as_one_does(before: str, after: str) -> None:
    """They stayed, with set_epoch and all, said to be used for more than a DataLoader."""
    check(HEAD + before + "\n", HEAD + after + "\n")


@pytest.mark.parametrize(
    "pair",
    [
        "s, t = RandomSampler(a), b",
        "a, b = b, a",
        "(s, t), k = make(a), 1",
        "s, t = DistributedSampler.make(a), 'DistributedSampler(a)'",
    ],
)
def test_unchanged(pair: str) -> None:
    check_unchanged(HEAD + pair + "\nx = DataLoader(a, sampler=s)\n", attention=[])


@pytest.mark.parametrize(
    "pair",
    [
        "s, t = DistributedSampler(a), len(s)",  # of the one before
        "s, *t = DistributedSampler(a), 3",
        "s, t = (\n    DistributedSampler(a),\n    3,\n)",
        "self.s, t = DistributedSampler(a), f(self)",
    ],
)
def test_what_stays_is_told_of(pair: str) -> None:
    result = migrated(HEAD + pair + "\nx = DataLoader(a, sampler=s)\n")
    assert pair.replace("r(a)", "r(a, num_replicas=1, rank=0)") in result.text
    assert [n.line for n in result.attention] == [5 if "\n" in pair else 4]


def test_one_that_draws_every_sample_stays_where_it_is() -> None:
    source = HEAD + "s, t = DistributedSampler(a, num_replicas=1, rank=0), b\nx = DataLoader(a, sampler=s)\n"
    assert migrated(source).text == source
