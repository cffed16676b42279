"""T4: a DistributedSampler that a function is called with, before and after; and arguments that stay."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """
import torch
from torch.utils.data import DataLoader, RandomSampler
from torch.utils.data.distributed import DistributedSampler


def one_epoch(model, loader, epoch, sampler=None):
    if sampler:
        sampler.set_epoch(epoch)
    for x in loader:
        model(x)


def main(data, model, distributed):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 8, sampler=sampler)
    for epoch in range(3):
        one_epoch(model, loader, epoch, sampler)
"""
GOES = {
    "by its place": ("", ""),
    "by its name": ("epoch, sampler)", "epoch, sampler=sampler)"),
    "not None": ("if sampler:", "if sampler is not None:"),
    "without a test": ("    if sampler:\n        sampler.set_epoch", "    sampler.set_epoch"),
    "another call without": ("epoch, sampler)\n", "epoch, sampler)\n    one_epoch(model, loader, 3)\n"),
    "another with None": ("epoch, sampler)\n", "epoch, sampler)\n    one_epoch(model, loader, 3, None)\n"),
    "made under a condition": (
        "(data)\n    loader = DataLoader(data, 8, ",
        "(data) if distributed else None\n    loader = DataLoader(data, 8, shuffle=sampler is None, ",
    ),
}


@pytest.mark.parametrize("old, new", GOES.values(), ids=GOES.keys())
def test_it_goes(old, new):
    text = SCRIPT.replace(old, new)
    assert text != SCRIPT or not old
    result = migrate_text(text)
    assert "DistributedSampler(" not in result.text and "set_epoch" not in result.text
    assert "sampler=sampler" not in result.text and "shuffle=True" in result.text
    assert not [n for n in result.attention if n.code == "PTM401"]
    assert any("`sampler` is None now" in e.message for e in result.edits)
    assert migrate_text(result.text).text == result.text


STAYS = {
    "read for more": (
        "        sampler.set_epoch(epoch)\n",
        "        sampler.set_epoch(epoch)\n    print(len(sampler))\n",
    ),
    "another thing elsewhere": (
        "epoch, sampler)\n",
        "epoch, sampler)\n    one_epoch(model, loader, 3, RandomSampler(data))\n",
    ),
    "set anew inside": ("    if sampler:", "    sampler = sampler or model.sampler\n    if sampler:"),
    "a function that is handed on": ("epoch, sampler)\n", "epoch, sampler)\n    model.apply(one_epoch)\n"),
    "a function from elsewhere": ("        one_epoch(", "        model.one_epoch("),
    "starred": ("one_epoch(model, loader, epoch, sampler)", "one_epoch(*[model, loader, epoch, sampler])"),
}


@pytest.mark.parametrize("old, new", STAYS.values(), ids=STAYS.keys())
def test_it_stays_and_is_told(old, new):
    text = SCRIPT.replace(old, new)
    assert text != SCRIPT
    result = migrate_text(text)
    assert "DistributedSampler(data, num_replicas=1, rank=0)" in result.text and "set_epoch(epoch)" in result.text
    assert [n for n in result.attention if n.code == "PTM401"]


OTHERS = {
    "of another kind": ("sampler = DistributedSampler(data)", "sampler = RandomSampler(data)"),
    "none at all": ("sampler = DistributedSampler(data)", "sampler = None"),
}


@pytest.mark.parametrize("old, new", OTHERS.values(), ids=OTHERS.keys())
def test_other_samplers_are_handed_on_as_they_are(old, new):
    text = SCRIPT.replace(old, new)
    assert text != SCRIPT
    result = migrate_text(text)
    assert "one_epoch(model, loader, epoch, sampler)" in result.text and "set_epoch(epoch)" in result.text
    assert not [n for n in (*result.edits, *result.attention) if n.code == "PTM401"]


OWN = SCRIPT.replace("torch.utils.data.distributed", "mine")


def test_one_of_another_file_too():
    result = migrate_text(OWN.replace("DistributedSampler", "Ordered"))
    assert "one_epoch(model, loader, epoch, sampler)" in result.text and "set_epoch(epoch)" in result.text
    assert not [n for n in (*result.edits, *result.attention) if n.code == "PTM401"]


def test_one_that_divides_by_its_name_is_told_of():
    result = migrate_text(OWN)
    assert "one_epoch(model, loader, epoch, sampler)" in result.text and "set_epoch(epoch)" in result.text
    assert "divided twice" in next(n.message for n in result.attention if n.code == "PTM401")


MAKES = """
import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def make(data, sampler=None, shuffle=False):
    return DataLoader(data, 4, shuffle={}, sampler=sampler)


def main(data, other):
    return {}
"""


@pytest.mark.parametrize("said", ["shuffle", "shuffle and sampler is None", "sampler is None"])
def test_a_function_that_makes_the_one_loader_shuffles(said):
    result = migrate_text(MAKES.format(said, "make(data, DistributedSampler(data))"), is_script=False)
    assert "DataLoader(data, 4, shuffle=True)" in result.text and "make(data, None)" in result.text
    result = migrate_text(MAKES.format(said, "make(data, DistributedSampler(data, shuffle=False))"), is_script=False)
    assert "DataLoader(data, 4)" in result.text


@pytest.mark.parametrize(
    "also", ["make(other, DistributedSampler(other, shuffle=False))", "make(other, shuffle=True)", "make(other)"]
)
def test_where_another_call_wants_another_loader_the_sampler_stays(also):
    """The loader of both would have kept its order."""
    source = MAKES.format("shuffle", f"make(data, DistributedSampler(data)), {also}")
    result = migrate_text(source, is_script=False)
    assert result.text == source.replace("ler(data))", "ler(data, num_replicas=1, rank=0))").replace(
        "shuffle=False))", "shuffle=False, num_replicas=1, rank=0))"
    )
    assert {n.code for n in result.attention} == {"PTM401"}
