"""T4: DataLoaders that partial() makes, keywords that are joined or spread, and `shuffle` beside the sampler."""

import pytest
from helpers import check, check_unchanged, migrated

HEAD = """\
from functools import partial
from torch.utils.data import DataLoader, RandomSampler
from torch.utils.data.distributed import DistributedSampler


"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "make = partial(DataLoader, batch_size=4)\nloader = make(data, sampler=DistributedSampler(data))\n",
            "make = partial(DataLoader, batch_size=4)\nloader = make(data, shuffle=True)\n",
        ),
        (
            "make = partial(DataLoader, batch_size=4)\n"
            "val_loader = make(val, sampler=DistributedSampler(val, shuffle=False))\n",
            "make = partial(DataLoader, batch_size=4)\nval_loader = make(val)\n",
        ),
        (
            "loader = DataLoader(data, **(options | {'sampler': DistributedSampler(data), 'drop_last': True}))\n",
            "loader = DataLoader(data, **(options | {'shuffle': True, 'drop_last': True}))\n",
        ),
        (
            "loader = DataLoader(data, sampler=DistributedSampler(data, **{'shuffle': False, 'seed': 1}))\n",
            "loader = DataLoader(data)\n",
        ),
        (
            "options = dict(shuffle=False)\nloader = DataLoader(data, sampler=DistributedSampler(data, **options))\n",
            "options = dict(shuffle=False)\nloader = DataLoader(data)\n",
        ),
        (
            "options = {'seed': 1}\nloader = DataLoader(data, sampler=DistributedSampler(data, **options))\n",
            "options = {'seed': 1}\nloader = DataLoader(data, shuffle=True)\n",
        ),
    ],
)
def test_the_sampler_goes(before, after):
    result = migrated(HEAD + before, "PTM401")
    assert result.text == HEAD + after and not result.attention


@pytest.mark.parametrize(
    "text",
    [
        "sampler = DistributedSampler(data, **config.sampler)\nloader = DataLoader(data, sampler=sampler)\n",
        "options = {'shuffle': config.shuffle}\n"
        "loader = DataLoader(data, sampler=DistributedSampler(data, **options))\n",
        "options = {}\noptions['shuffle'] = False\n"
        "loader = DataLoader(data, sampler=DistributedSampler(data, **options))\n",
        "make = partial(DataLoader, shuffle=False)\nloader = make(data, sampler=DistributedSampler(data))\n",
        "make = partial(DataLoader, data)\nloader = make(4, sampler=DistributedSampler(data))\n",
        "make = partial(Loader, batch_size=4)\nloader = make(data, sampler=DistributedSampler(data))\n",
        "loader = DataLoader(data, **({'sampler': DistributedSampler(data)} | options))\n",
        "options = {'sampler': RandomSampler(data)}\n"
        "loader = DataLoader(data, **(options | {'sampler': DistributedSampler(data)}))\n",
    ],
)
def test_a_sampler_of_which_too_little_shows_stays_as_that_of_one_process(text):
    result = migrated(HEAD + text, "PTM401")
    assert "num_replicas=1, rank=0" in result.text and len(result.attention) == 1
    assert "shuffle=True" not in result.text
    assert migrated(result.text, "PTM401").text == result.text


def test_shuffle_keeps_what_it_was_given_where_it_is_turned_off_beside_the_sampler():
    check(
        HEAD
        + """\
def build(data, shuffle=True, distributed=False):
    sampler = None
    if distributed:
        sampler = DistributedSampler(data, shuffle=shuffle)
        shuffle = False
    return DataLoader(data, 4, shuffle=shuffle, sampler=sampler)
""",
        HEAD
        + """\
def build(data, shuffle=True, distributed=False):
    return DataLoader(data, 4, shuffle=shuffle)
""",
        attention=[],
        select="PTM401",
    )


@pytest.mark.parametrize(
    "branch",
    [
        "        shuffle = False\n        sampler = DistributedSampler(data, shuffle=shuffle)\n",
        "        sampler = DistributedSampler(data, shuffle=shuffle)\n        shuffle = data.ordered\n",
        "        shuffle = shuffle and not data.ordered\n        sampler = DistributedSampler(data, shuffle=shuffle)\n",
    ],
)
def test_shuffle_that_is_another_value_by_then(branch):
    text = (
        HEAD + "def build(data, shuffle=True, distributed=False):\n    sampler = None\n    if distributed:\n" + branch
    )
    text += "    return DataLoader(data, 4, shuffle=shuffle, sampler=sampler)\n"
    result = migrated(text, "PTM401")
    assert "num_replicas=1" in result.text and "another value" in result.attention[0].message


@pytest.mark.parametrize(
    "text",
    [
        "make = partial(DataLoader, batch_size=4)\nloader = make(data, sampler=RandomSampler(data))\n",
        "loader = DataLoader(data, **(options | {'sampler': RandomSampler(data)}))\n",
    ],
)
def test_other_samplers_stay(text):
    check_unchanged(HEAD + text, [], select="PTM401")


@pytest.mark.parametrize(
    "made",
    [
        "DistributedSamplerWrapper(RandomSampler(data))",
        "samplers.OrderedDistributedSampler(data)",
        "RASampler(data, shuffle=True)",
        "DistributedWeightedSampler(weights)",
    ],
)
def test_a_sampler_of_a_package_that_divides_by_rank_is_told(made):
    text = HEAD + f"from packages import *\nloader = DataLoader(data, sampler={made})\n"
    name = made.partition("(")[0].rpartition(".")[2]
    check_unchanged(text, [f"PTM401 line 7: `{name}` divides the samples by rank itself"], select="PTM401")


@pytest.mark.parametrize(
    "made",
    [
        "WeightedSampler(data)",
        "get_dist_sampler(data)",
        "DistributedOnes(data)",
        "DistributedWeightedSampler(data, num_replicas=1, rank=0)",
    ],
)
def test_other_samplers_of_packages_are_not_told(made):
    check_unchanged(HEAD + f"loader = DataLoader(data, sampler={made})\n", [], select="PTM401")


def test_a_class_of_the_script_that_only_sounds_so_is_not_told():
    own = "class DistributedKindSampler(RandomSampler):\n    pass\n"
    check_unchanged(HEAD + own + "loader = DataLoader(data, sampler=DistributedKindSampler(data))\n", [], "PTM401")
