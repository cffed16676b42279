"""T4: classes derived from DistributedSampler, in programs that connect their processes by hand."""

import pytest
from helpers import migrated

HEAD = """\
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

"""
CONNECTS = "dist.init_process_group('gloo')\n"
CLASS = """
class Balanced(DistributedSampler):
    def __init__(self, labels, data, num_replicas=None, rank=None, seed=0):
        BASE
        self.labels = labels

"""
MADE = "loader = DataLoader(data, sampler=Balanced(labels, data))\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "super().__init__(data, num_replicas=num_replicas, rank=rank, seed=seed)",
            "super().__init__(data, num_replicas=1, rank=0, seed=seed)",
        ),
        ("super().__init__(data, num_replicas, rank)", "super().__init__(data, 1, 0)"),
        ("super().__init__(data, shuffle=False)", "super().__init__(data, shuffle=False, num_replicas=1, rank=0)"),
        (
            "super(Balanced, self).__init__(data, seed=seed)",
            "super(Balanced, self).__init__(data, seed=seed, num_replicas=1, rank=0)",
        ),
        (
            "DistributedSampler.__init__(self, data, num_replicas, rank)",
            "DistributedSampler.__init__(self, data, 1, 0)",
        ),
    ],
)
def test_its_base_is_that_of_one_process(before, after):
    result = migrated(HEAD + CONNECTS + CLASS.replace("BASE", before) + MADE)
    assert f"        {after}\n" in result.text and result.text.endswith(MADE)
    assert not [n for n in result.attention if n.code == "PTM401"]
    again = migrated(result.text)
    assert again.text == result.text and not [n for n in again.attention if n.code == "PTM401"]


def test_one_that_is_made_as_its_base_is():
    own = "class Twice(DistributedSampler):\n    def __iter__(self):\n"
    own += "        return iter([*super().__iter__()] * 2)\n\n\n"
    result = migrated(HEAD + CONNECTS + own + "loader = DataLoader(data, sampler=Twice(data, seed=1))\n")
    assert "sampler=Twice(data, seed=1, num_replicas=1, rank=0))" in result.text
    assert not [n for n in result.attention if n.code == "PTM401"]


@pytest.mark.parametrize(
    "text",
    [
        CLASS.replace("BASE", "super().__init__(data, seed=seed)") + MADE,  # others connect the processes
        CONNECTS + CLASS.replace("BASE", "super().__init__(data, **options)") + MADE,
        CONNECTS + CLASS.replace("BASE", "super().set_epoch(seed)") + MADE,
        CONNECTS + CLASS.replace("BASE", "self.rank = rank").replace("(Dist", "(Own") + MADE,
    ],
    ids=["not by hand", "spread", "another method", "another base"],
)
def test_others_stay(text):
    assert "num_replicas=1" not in migrated(HEAD + text).text


def test_what_spreads_its_arguments_is_told():
    result = migrated(HEAD + CONNECTS + CLASS.replace("BASE", "super().__init__(data, **options)") + MADE)
    assert "`Balanced` divides the samples by rank itself" in str(result.attention)


@pytest.mark.parametrize("said", ["data, 1, 0", "data, num_replicas=1, rank=0"])
def test_what_says_so_already_is_not_told(said):
    result = migrated(HEAD + CONNECTS + CLASS.replace("BASE", f"super().__init__({said})") + MADE, "PTM401")
    assert f"super().__init__({said})" in result.text and not [e for e in result.edits if e.code == "PTM401"]
