# ruff: noqa: E501
"""T4: however a sampler gets its name, and wherever that goes: a walrus, an annotation, a choice of two, what is returned."""

import pytest
from helpers import check, migrated

HEAD = "from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, Sampler\nimport torch\n"
CODE = "PTM401,PTM102"
PLAIN = "t = DataLoader(d, shuffle=True)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("t = DataLoader(d, sampler=(s := DistributedSampler(d)))\ns.set_epoch(1)\n", PLAIN),
        ("t = DataLoader(d, 4, False, (s := DistributedSampler(d, shuffle=False)))\n", "t = DataLoader(d, 4, False)\n"),
        ("if (s := DistributedSampler(d)) is not None:\n    t = DataLoader(d, sampler=s)\n", PLAIN),
        ("s: Sampler = DistributedSampler(d)\nt = DataLoader(d, sampler=s)\n", PLAIN),
        ("s: Sampler | None = None\nif many:\n    s = DistributedSampler(d)\nt = DataLoader(d, shuffle=s is None, sampler=s)\n", PLAIN),
        ("s: Sampler = DistributedSampler(d) if many else RandomSampler(d)\nt = DataLoader(d, sampler=s)\n", "s: Sampler = RandomSampler(d)\nt = DataLoader(d, sampler=s)\n"),
        ("val: DataLoader = DataLoader(d, sampler=DistributedSampler(d))\n", "val: DataLoader = DataLoader(d)\n"),
        ("s, v = (DistributedSampler(d), DistributedSampler(e)) if many else (None, None)\nt = DataLoader(d, shuffle=s is None, sampler=s)\nval = DataLoader(e, sampler=v)\n", f"{PLAIN}val = DataLoader(e)\n"),
        ("s, n = (DistributedSampler(d), 2) if many else (None, 1)\nt = DataLoader(d, shuffle=s is None, sampler=s)\n", f"n = 2 if many else 1\n{PLAIN}"),
    ],
)  # fmt: skip
def test_a_name_by_any_statement(before, after):
    check(HEAD + before, HEAD + after, select=CODE)


@pytest.mark.parametrize(
    "kept",
    [
        "t = DataLoader(d, sampler=(s := {}))\nuse(s)\n",
        "t = DataLoader(d, sampler=(s := {} if many else RandomSampler(d)))\ns.set_epoch(1)\n",
        "s: Sampler = {}\nt = DataLoader(d, sampler=s)\nuse(s)\n",
        "s, n = ({}, f()) if many else (None, 1)\nt = DataLoader(d, sampler=s)\n",
        "s, n = ({}, 2) if many() else (None, 1)\nt = DataLoader(d, sampler=s)\n",
    ],
)
def test_what_is_used_for_more_stays(kept):
    one = "DistributedSampler(d, num_replicas=1, rank=0)"
    check(HEAD + kept.format("DistributedSampler(d)"), HEAD + kept.format(one), attention=["PTM401 line"], select=CODE)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("if many:\n    o.update(sampler=DistributedSampler(d))\nelse:\n    o.update(shuffle=True)\n", 'o["shuffle"] = True\n'),
        ("o.update({'sampler': DistributedSampler(d), 'shuffle': False})\n", 'o["shuffle"] = True\n'),
        ("s = DistributedSampler(d, shuffle=False)\no.update(sampler=s, drop_last=True)\n", 'o["drop_last"] = True\n'),
        ("o.update(sampler=DistributedSampler(d))\no.update(num_workers=2)\n", 'o["shuffle"] = True\no.update(num_workers=2)\n'),
    ],
)  # fmt: skip
def test_what_update_gives(said, left):
    made, loader = "o = dict(batch_size=4)\n", "t = DataLoader(d, **o)\n"
    check(HEAD + made + said + loader, HEAD + made + left + loader, attention=[], select=CODE)


@pytest.mark.parametrize(
    "said", ["o.update(sampler=RandomSampler(d))\n", "o.update(shuffle=True)\n", "o.update(more, sampler=s)\n", "o.update(**more)\n"]
)  # fmt: skip
def test_other_updates_stay(said):
    before = f"{HEAD}o = dict(batch_size=4)\n{said}t = DataLoader(d, **o)\nv = DataLoader(e, sampler=DistributedSampler(e))\n"
    assert said in migrated(before, CODE).text


def test_a_dictionary_of_the_same_name_elsewhere_stays():
    other = "def g(o):\n    o.update(shuffle=True)\n"
    text = f"{HEAD}{other}def f(d):\n    o = {{}}\n    o.update(sampler=DistributedSampler(d))\n    return DataLoader(d, **o)\n"
    assert other in migrated(text, CODE).text


RETURNS = "def make(d):\n    s = {}\n    return {}\n\n{} = make(d)\n{}"


@pytest.mark.parametrize(
    ("returned", "unpacked", "left", "names"),
    [
        ("DataLoader(d, sampler=s), s", "t, s", "DataLoader(d, shuffle=True)", "t"),
        ("(DataLoader(d, sampler=s), s)", "t, s", "DataLoader(d, shuffle=True)", "t"),
        ("s, DataLoader(d, sampler=s), len(d)", "(s, t, n)", "DataLoader(d, shuffle=True), len(d)", "(t, n)"),
        ("DataLoader(d, sampler=s), len(d), s", "t, n, s", "DataLoader(d, shuffle=True), len(d)", "t, n"),
    ],
)
def test_a_sampler_that_is_returned_beside_its_loader(returned, unpacked, left, names):
    before = RETURNS.format("DistributedSampler(d)", returned, unpacked, "s.set_epoch(1)\n")
    after = f"def make(d):\n    return {left}\n\n{names} = make(d)\n"
    check(HEAD + before, HEAD + after, attention=[], select=CODE)


def test_two_samplers_that_are_returned():
    before = (
        "def make(d, e):\n    s, v = DistributedSampler(d), DistributedSampler(e, shuffle=False)\n"
        "    return DataLoader(d, sampler=s), DataLoader(e, sampler=v), s, v\n\n"
        "t, val, s, v = make(a, b)\nif s is not None:\n    s.set_epoch(2)\nprint(t)\n"
    )
    after = "def make(d, e):\n    return DataLoader(d, shuffle=True), DataLoader(e)\n\nt, val = make(a, b)\nprint(t)\n"
    check(HEAD + before, HEAD + after, attention=[], select=CODE)


@pytest.mark.parametrize(
    ("returned", "unpacked", "then"),
    [
        ("DataLoader(d, sampler=s), s", "t, s", "print(len(s))\n"),
        ("DataLoader(d, sampler=s), s", "both", "both[1].set_epoch(1)\n"),
        ("DataLoader(d, sampler=s), s", "t, *s", ""),
        ("[DataLoader(d, sampler=s), s]", "t, s", "s.set_epoch(1)\n"),
        ("s", "s", "t = DataLoader(d, sampler=s)\n"),
        ("DataLoader(d, sampler=s), s", "t, a.s", "a.s.set_epoch(1)\n"),
    ],
)
def test_a_sampler_that_is_returned_otherwise_stays(returned, unpacked, then):
    one = "DistributedSampler(d, num_replicas=1, rank=0)"
    before, after = (RETURNS.format(s, returned, unpacked, then) for s in ("DistributedSampler(d)", one))
    check(HEAD + before, HEAD + after, attention=["PTM401 line"], select=CODE)


@pytest.mark.parametrize(("name", "stays"), [("make", True), ("_make", False)])
def test_what_other_files_may_unpack_stays(name, stays):
    use = f"def both(d):\n    t, s = {name}(d)\n    s.set_epoch(1)\n    return t\n"
    text = migrated(
        f"{HEAD}def {name}(d):\n    s = DistributedSampler(d)\n    return DataLoader(d, sampler=s), s\n\n{use}", CODE
    )
    assert ("sampler=s), s\n" in text.text) is stays and bool(text.attention) is stays
