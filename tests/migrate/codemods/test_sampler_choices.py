"""T4: samplers that a phase or an option of the data decides on, and the class as a value."""

import pytest
from helpers import check, check_unchanged, migrated

HEAD = (
    "import functools\n"
    "from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, SequentialSampler\n"
    "import torch\n"
)
CODE = "PTM401"
ONE = "DistributedSampler(d, num_replicas=1, rank=0)"


@pytest.mark.parametrize("test", ["is_training", "shuffle", "args.mode == 'train'", "split != 'val'", "self.training"])
@pytest.mark.parametrize(
    "form",
    [
        "s = {} if {} else SequentialSampler(d)\n",
        "if {1}:\n    s = {0}\nelse:\n    s = SequentialSampler(d)\n",
    ],
)
def test_another_phase_is_not_the_plain_script(form, test):
    """The sampler of training may not become that of evaluation: the order was shuffled."""
    loader = "train = DataLoader(d, sampler=s)\n"
    before = HEAD + form.format("DistributedSampler(d)", test) + loader
    check(before, HEAD + form.format(ONE, test) + loader, attention=[f"{CODE} line"], select=CODE)


@pytest.mark.parametrize(
    "test", ["distributed", "args.world_size > 1", "train and ddp", "many", "n_gpu > 1", "not distilled and multi"]
)
def test_several_processes_or_one(test):
    before = HEAD + f"s = DistributedSampler(d) if {test} else RandomSampler(d)\nt = DataLoader(d, sampler=s)\n"
    check(before, HEAD + "s = RandomSampler(d)\nt = DataLoader(d, sampler=s)\n", attention=[], select=CODE)


@pytest.mark.parametrize("test", ["shuffle", "not args.shuffle", "phase == 'train'"])
def test_what_decides_on_it_decides_on_shuffling(test):
    before = HEAD + f"s = DistributedSampler(d) if {test} else None\nloader = DataLoader(d, sampler=s)\n"
    check(before, HEAD + f"loader = DataLoader(d, shuffle={test})\n", attention=[], select=CODE)


@pytest.mark.parametrize(
    "made",
    [
        "s = {} if config.get('shuffle') else None\nloader = DataLoader(d, sampler=s)\n",
        "if mode == 'train':\n    s, shuffle = None, 1\n    s = {}\n    shuffle = False\nelse:\n    s = None\n"
        "    shuffle = False\nloader = DataLoader(d, sampler=s, shuffle=shuffle)\n",
    ],
)
def test_where_it_cannot_be_said_again_it_stays_and_is_told(made):
    result = migrated(HEAD + made.format("DistributedSampler(d)"), CODE)
    assert result.text == HEAD + made.format(ONE) and [n.code for n in result.attention] == [CODE]


def test_a_choice_of_classes():
    before = (
        "kind = DistributedSampler if args.distributed else RandomSampler\nloader = DataLoader(d, sampler=kind(d))\n"
    )
    after = "kind = RandomSampler\nloader = DataLoader(d, sampler=kind(d))\n"
    check(HEAD + before, HEAD + after, attention=[], select=CODE)


def test_a_partial_of_the_class():
    before = "make = functools.partial(DistributedSampler{}, shuffle=False)\n"
    after = "make = functools.partial(DistributedSampler, shuffle=False, num_replicas=1, rank=0)\n"
    check(HEAD + before.format(""), HEAD + after, attention=[f"{CODE} line 4"], select=CODE)


@pytest.mark.parametrize(
    "source",
    ["kinds = {'many': DistributedSampler, 'one': RandomSampler}", "use(DistributedSampler)"],
)
def test_the_class_handed_on_is_told(source):
    check_unchanged(HEAD + source + "\n", [f"{CODE} line 4"], select=CODE)


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(s, (DistributedSampler, RandomSampler))",
        "class Own(DistributedSampler):\n    pass",
        "def f(s: DistributedSampler | None = None) -> DistributedSampler:\n    return s",
        "s: DistributedSampler = get()",
        "if type(s) is DistributedSampler:\n    s.set_epoch(1)",
        "Sampler = DistributedSampler",
        "DistributedSampler.__doc__",
        "functools.partial(DistributedSampler, num_replicas=1, rank=0)",
        "def f(DistributedSampler):\n    return [DistributedSampler]",
    ],
)
def test_what_makes_nothing_is_not_told(source):
    check_unchanged(HEAD + source + "\n", [], select=CODE)


@pytest.mark.parametrize(
    ("made", "plain"),
    [
        ("make = functools.partial(DataLoader, sampler={})\nt = make(d, 4)", "DataLoader, shuffle=True)"),
        ("t = functools.partial(DataLoader, batch_size=4, sampler={})(d)", "DataLoader, batch_size=4, shuffle=True)"),
        ("s = {}\nmake = functools.partial(DataLoader, sampler=s)\nt = make(d)", "DataLoader, shuffle=True)"),
    ],
)
def test_a_partial_of_the_loader(made, plain):
    result = migrated(HEAD + made.format("DistributedSampler(d)") + "\n", CODE)
    assert plain in result.text and not result.attention and "DistributedSampler(d)" not in result.text


@pytest.mark.parametrize(
    "made",
    [
        "make = functools.partial(DataLoader, sampler={})\nt = make(d)\nv = make(e, sampler=None)\n",
        "make = functools.partial(DataLoader, sampler={})\nt = make(d)\nv = make(e, **options)\n",
        "make = functools.partial(DataLoader, sampler={})\nt = loaders(make)\n",
        "make = functools.partial(loaders, sampler={})\nt = make(d)\n",
        "make = functools.partial(DataLoader, d, sampler={})\nt = make()\n",
    ],
)
def test_a_partial_of_which_others_have_the_last_word_keeps_it(made):
    """An evaluation that says `sampler=None` may not shuffle."""
    before = HEAD + made.format("DistributedSampler(d)")
    check(before, HEAD + made.format(ONE), attention=[f"{CODE} line"], select=CODE)


COUNTS = "n = 0\ndef is_dist():\n    global n\n    n += 1\n    return False\n"
ASKS = "def is_dist():\n    return torch.distributed.is_initialized()\n"


@pytest.mark.parametrize(
    ("test", "made"),
    [("kw.pop('dist', False)", ""), ("is_dist()", COUNTS), ("(c := is_dist())", ASKS), ("next(kw.values()).pop()", "")],
)
def test_a_condition_that_does_more_than_ask_is_still_met(test, made):
    before = f"{HEAD}{made}s = DistributedSampler(d) if {test} else None\ntrain = DataLoader(d, sampler=s, **kw)\n"
    after = f"{HEAD}{made}{test}\ntrain = DataLoader(d, **kw)\n"
    check(before, after)


@pytest.mark.parametrize(
    ("test", "made"),
    [("kw.get('dist', False)", ""), ("is_dist()", ASKS), ("args.dist", ""), ("torch.distributed.is_initialized()", "")],
)
def test_one_that_asks_goes_with_the_sampler(test, made):
    before = f"{HEAD}{made}s = DistributedSampler(d) if {test} else None\ntrain = DataLoader(d, sampler=s, **kw)\nf()\n"
    assert f"{test}\n" not in migrated(before).text.replace(made, "")


@pytest.mark.parametrize(
    "source",
    [
        "train = DataLoader(d, sampler=DistributedSampler(d) if kw.pop('dist') else None, **kw)\n",
        "s = DistributedSampler(d) if kw.pop('dist') else RandomSampler(d)\ntrain = DataLoader(d, sampler=s, **kw)\n",
    ],
)
def test_where_no_statement_can_stay_the_sampler_is_that_of_one_process(source):
    result = migrated(HEAD + source)
    assert "num_replicas=1, rank=0" in result.text and "kw.pop('dist')" in result.text
    assert any("does more than ask" in n.message for n in result.attention)


def test_a_branch_of_which_the_condition_counts_keeps_it():
    branches = "if is_dist():\n    s = DistributedSampler(d)\nelse:\n    s = RandomSampler(d)\n"
    result = migrated(f"{HEAD}{COUNTS}{branches}train = DataLoader(d, sampler=s)\n")
    assert "if is_dist():\n" in result.text
