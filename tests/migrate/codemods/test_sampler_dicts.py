# ruff: noqa: E501
"""T4: samplers that a dictionary has by the names of phases."""

import pytest
from helpers import check, migrated

HEAD = "from torch.utils.data import DataLoader, DistributedSampler, RandomSampler\nimport torch\ngo()\n"
CODE = "PTM401,PTM102"
LOADERS = "t = DataLoader(d, 4, sampler=s['train'])\nv = DataLoader(e, 4, sampler=s['val'])\n"
EACH = "l = {{{0}: DataLoader(data[{0}], sampler=s[{0}]) for {0} in ['train', 'val']}}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s = {'train': DistributedSampler(d), 'val': DistributedSampler(e, shuffle=False)}\n" + LOADERS + "s['train'].set_epoch(1)\n", "t = DataLoader(d, 4, shuffle=True)\nv = DataLoader(e, 4)\n"),
        ("s = {'train': DistributedSampler(d), 'val': RandomSampler(e)}\n" + LOADERS, "s = {'val': RandomSampler(e)}\nt = DataLoader(d, 4, shuffle=True)\nv = DataLoader(e, 4, sampler=s['val'])\n"),
        ("s = {'train': DistributedSampler(d) if many else None}\nt = DataLoader(d, shuffle=s['train'] is None, sampler=s['train'])\nif s['train'] is not None:\n    s['train'].set_epoch(1)\n", "t = DataLoader(d, shuffle=True)\n"),
        ("s = {x: DistributedSampler(data[x], shuffle=x == 'train') for x in ['train', 'val']}\n" + EACH.format("x") + "s['train'].set_epoch(1)\n", "l = {x: DataLoader(data[x], shuffle=x == 'train') for x in ['train', 'val']}\n"),
        ("s = {x: DistributedSampler(data[x]) for x in ['train', 'val']}\n" + EACH.format("x"), "l = {x: DataLoader(data[x], shuffle=x == 'train') for x in ['train', 'val']}\n"),
    ],
)  # fmt: skip
def test_they_go_by_their_keys(before, after):
    check(HEAD + before, HEAD + after, attention=[], select=CODE)


@pytest.mark.parametrize(
    "kept",
    [
        "s = {'train': {}, 'val': {}}\n" + LOADERS + "for k in s:\n    s[k].set_epoch(1)\n",
        "s = {'train': {}, 'val': {}}\n" + LOADERS + "use(s)\n",
        "s = {'train': {}, 'val': {}}\n" + LOADERS + "s['val'] = None\n",
        "s = {'train': {}, 'val': {}}\n" + LOADERS + "print(len(s['train']), len(s['val']))\n",
        "s = {'train': {}, **others}\n" + LOADERS,
        "s = {x: {}, y: {}}\n" + LOADERS,
        "s = {x: {} if x == 'train' else RandomSampler(d) for x in ['train', 'val']}\n" + EACH.format("x"),
    ],
)
def test_what_is_read_otherwise_stays(kept):
    one = "DistributedSampler(d, num_replicas=1, rank=0)"
    before, after = (HEAD + kept.replace("{}", s) for s in ("DistributedSampler(d)", one))
    check(before, after, attention=["PTM401 line"] * kept.count("{}"), select=CODE)


@pytest.mark.parametrize("form", ["{}", "{} if many else None"])
def test_what_asks_for_another_key_stays(form):
    made = (
        "s = {x: " + form.format("DistributedSampler(data[x], shuffle=x == 'train')") + " for x in ['train', 'val']}\n"
    )
    text = migrated(HEAD + made + EACH.format("p"), CODE).text
    assert "num_replicas=1, rank=0)" in text and EACH.format("p") in text


SPREAD = "def make(d, **more):\n    return DataLoader(d, {}**more)\n"


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (SPREAD, True),
        (SPREAD + "a = make(x, num_workers=2)\n", False),
        (SPREAD + "a = make(x, shuffle=False)\n", True),
        (SPREAD + "a = make(x, **options)\n", True),
        (
            "more = {{'num_workers': 2}} if cuda else {{}}\nmore.update(pin_memory=True)\na = DataLoader(d, {}**more)\n",
            False,
        ),
        ("more = dict(shuffle=args.shuffle)\na = DataLoader(d, {}**more)\n", True),
        ("a = DataLoader(d, {}**config['loader'])\n", True),
    ],
)
def test_options_that_may_say_shuffle_again_are_told(before, told):
    after = before.format("shuffle=True, ")
    line = 4 + before[: before.index("DataLoader")].count("\n")
    notes = [f"PTM401 line {line}: `**"] if told else []
    check(HEAD + before.format("sampler=DistributedSampler(d), "), HEAD + after, attention=notes, select="PTM401")


def test_options_beside_a_sampler_that_keeps_the_order_say_nothing_twice():
    before = SPREAD.format("sampler=DistributedSampler(d, shuffle=False), ")
    check(HEAD + before, HEAD + SPREAD.format(""), attention=[], select="PTM401")


def test_a_sampler_of_another_branch_is_the_reason():
    made = "if many:\n    if again:\n        s = mine(d)\n    else:\n        s = {}\nelse:\n    s = RandomSampler(d)\n"
    used = made + "a = DataLoader(d, sampler=s)\n"
    one = "DistributedSampler(d, num_replicas=1, rank=0)"
    says = "PTM401 line 8: DistributedSampler kept: another sampler takes its place in another branch"
    check(HEAD + used.format("DistributedSampler(d)"), HEAD + used.format(one), attention=[says], select="PTM401")
