# ruff: noqa: E501
"""T4: a sampler goes where its DataLoader goes over the same data, and says who shuffles where several could."""

import pytest
from helpers import check, check_unchanged, migrated

HEAD = "from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, Subset\nimport torch\n"
CODE = "PTM401"
ONE = "num_replicas=1, rank=0"


@pytest.mark.parametrize(
    ("sampler", "loader"),
    [
        ("DistributedSampler(part)", "DataLoader(d, 4, sampler=s)"),
        ("DistributedSampler(d)", "DataLoader(Subset(d, part), 4, sampler=s)"),
        ("DistributedSampler(d)", "DataLoader(d, 4, sampler=s), DataLoader(part, 4, sampler=s)"),
        ("DistributedSampler(made())", "DataLoader(dataset=d, sampler=s)"),
        ("DistributedSampler(part)", "DataLoader(d, **{'sampler': s})"),
    ],
)
def test_a_sampler_of_other_data_stays(sampler, loader):
    result = migrated(f"{HEAD}s = {sampler}\ntrain = {loader}\n", CODE)
    assert result.text == f"{HEAD}s = {sampler[:-1]}, {ONE})\ntrain = {loader}\n"
    assert any("its DataLoader of" in n.message for n in result.attention)


@pytest.mark.parametrize(
    ("names", "data", "own"),
    [("", "d", "d"), ("e = d\n", "d", "e"), ("e = d\nf = e\n", "f", "d"), ("a.d = d\n", "d", "a.d")],
)
def test_the_same_data_by_another_name(names, data, own):
    before = f"{HEAD}{names}s = DistributedSampler({data})\nt = DataLoader({own}, sampler=s)\n"
    check(before, f"{HEAD}{names}t = DataLoader({own}, shuffle=True)\n", attention=[], select=CODE)


@pytest.mark.parametrize(
    "share",
    [
        "t = DataLoader(d, sampler=DistributedSampler(d, num_replicas=10, rank=3))\n",
        "t = DataLoader(d, sampler=DistributedSampler(d, num_replicas=args.folds, rank=args.fold))\n",
        "k = args.cv_fold\nt = DataLoader(d, sampler=DistributedSampler(d, num_replicas=5, rank=k))\n",
        "k = args.parts\ns = DistributedSampler(d, k, i)\nt = DataLoader(d, sampler=s)\ns.set_epoch(1)\n",
        "t = [DataLoader(d, sampler=DistributedSampler(d, clients, i)) for i in range(clients)]\n",
        "if k:\n    s = DistributedSampler(d, k, fold)\nelse:\n    s = RandomSampler(d)\nt = DataLoader(d, sampler=s)\n",
    ],
)
def test_a_share_that_is_chosen_stays(share):
    result = check_unchanged(HEAD + share, select=CODE)
    assert [(n.code, "draws a share" in n.message) for n in result.attention] == [(CODE, True)]


def test_a_share_beside_a_sampler_of_processes():
    one = "DistributedSampler(d, k, fold) if k else DistributedSampler(d{})"
    before, after = (f"{HEAD}s = {one.format(x)}\nt = DataLoader(d, sampler=s)\n" for x in ("", f", {ONE}"))
    check(before, after, attention=[f"{CODE} line 3"] * 2, select=CODE)


@pytest.mark.parametrize(
    ("world", "rank"),
    [
        ("dist.get_world_size()", "dist.get_rank()"),
        ("args.world_size", "args.local_rank"),
        ("hvd.size()", "hvd.rank()"),
        ("n", "i"),
        ("some", "one"),
    ],
)
def test_the_share_of_a_process_goes(world, rank):
    head = HEAD + "import torch.distributed as dist\nn = dist.get_world_size()\ni = dist.get_rank()\n"
    before = f"{head}t = DataLoader(d, sampler=DistributedSampler(d, {world}, {rank}))\n"
    check(before, f"{head}t = DataLoader(d, shuffle=True)\n", attention=[], select=CODE)


def test_what_it_was_told_of_shuffling_has_another_value_later():
    before = HEAD + "shuffle = True\ns = DistributedSampler(d, shuffle=shuffle)\nshuffle = False\n"
    loader = "t = DataLoader(d, shuffle=shuffle, sampler=s)\n"
    after = before.replace("shuffle=shuffle)", f"shuffle=shuffle, {ONE})")
    check(before + loader, after + loader, attention=[f"{CODE} line 4"], select=CODE)


@pytest.mark.parametrize(
    ("test", "branches"),
    [
        ("s is not None", "if {}:\n    t = DataLoader(d, sampler=s)\n"),
        ("s", "if {}:\n    t = DataLoader(d, sampler=s)\nelse:\n    t = DataLoader(d, shuffle=True)\n"),
        ("s is None", "if {}:\n    t = DataLoader(d, shuffle=True)\nelse:\n    t = DataLoader(d, sampler=s)\n"),
        ("not s", "if {}:\n    t = DataLoader(d, shuffle=True)\nelse:\n    t = DataLoader(d, sampler=s)\n"),
    ],
)
@pytest.mark.parametrize("made", ["DistributedSampler(d)", "DistributedSampler(d) if many else None"])
def test_branches_that_ask_for_it(made, test, branches):
    """One that was always there is asked for in vain; of one that there may be, there is none now."""
    before = f"{HEAD}t = None\ns = {made}\n{branches.format(test)}"
    after = "" if "if many" in made and test == "s is not None" else "t = DataLoader(d, shuffle=True)\n"
    check(before, f"{HEAD}t = None\n{after}", attention=[], select=CODE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("k = {'shuffle': False, 'a': 1}\nt = DataLoader(d, sampler={}, **k)", "k = {'a': 1}\nt = DataLoader(d, shuffle=True, **k)"),
        ("k = dict(a=1, shuffle=False)\nt = DataLoader(d, sampler={}, **k)", "k = dict(a=1)\nt = DataLoader(d, shuffle=True, **k)"),
        ("k = {'shuffle': False}\no = {'sampler': {}, **k}\nt = DataLoader(d, **o)", "k = {}\no = {'shuffle': True, **k}\nt = DataLoader(d, **o)"),
        ("o = {'sampler': {}}\nk = {'a': 1, 'shuffle': False}\no.update(k)\nt = DataLoader(d, **o)", "o = {'shuffle': True}\nk = {'a': 1}\no.update(k)\nt = DataLoader(d, **o)"),
        ("o = {'sampler': {}}\no.update(a=1, shuffle=False)\nt = DataLoader(d, **o)", "o = {'shuffle': True}\no.update(a=1)\nt = DataLoader(d, **o)"),
    ],
)  # fmt: skip
def test_shuffle_false_that_comes_along_goes(before, after):
    """Beside `shuffle=True` it was an error, or put that out."""
    check(f"{HEAD}{before.replace('{}', 'DistributedSampler(d)')}\n", f"{HEAD}{after}\n", attention=[], select=CODE)


def test_shuffle_false_stays_where_nothing_shuffles():
    before = HEAD + "k = {'shuffle': False}\nt = DataLoader(d, sampler=DistributedSampler(d, shuffle=False), **k)\n"
    check(before, HEAD + "k = {'shuffle': False}\nt = DataLoader(d, **k)\n", select=CODE)


@pytest.mark.parametrize(
    ("own", "goes"),
    [
        ("EpochSampler(e)", False),
        ("mine.sampler(e)", False),
        ("DistributedSampler(part)", False),
        ("RandomSampler(e)", True),
        ("DistributedSampler(e)", True),
    ],
)
def test_epochs_of_a_sampler_that_stays(own, goes):
    before = f"{HEAD}a = DataLoader(d, sampler=DistributedSampler(d))\nb = DataLoader(e, sampler={own})\n"
    text = migrated(f"{before}a.sampler.set_epoch(1)\nb.sampler.set_epoch(1)\n", CODE).text
    assert "a.sampler.set_epoch" not in text and ("b.sampler.set_epoch" not in text) is goes


PHASES = "def f(d, {}):\n    return DataLoader(d, 4, sampler=DistributedSampler(d))\na, b = f(x, {}), f(y, {})\n"


@pytest.mark.parametrize(
    ("parameter", "one", "other", "shuffle"),
    [
        ("mode", "'train'", "'val'", "shuffle=mode == 'train'"),
        ("mode='train'", "", "'val'", "shuffle=mode == 'train'"),
        ("split", "'val'", "'test'", ""),
        ("is_train=True", "", "False", "shuffle=is_train"),
        ("evaluate", "False", "True", "shuffle=not evaluate"),
        ("mode", "mode", "'val'", "shuffle=True"),
        ("mode", "'train'", "'train_all'", "shuffle=True"),
        ("train", "x", "y", "shuffle=True"),
        ("size", "'train'", "'val'", "shuffle=True"),
    ],
)
def test_the_phase_that_a_function_is_called_with(parameter, one, other, shuffle):
    """What evaluates never gains shuffling, where the phase shows."""
    text = migrated(HEAD + PHASES.format(parameter, one, other), CODE).text
    assert f"return DataLoader(d, 4{', ' if shuffle else ''}{shuffle})" in text


@pytest.mark.parametrize("over", ["(('train', x), ('val', y))", "[('train', x), ('test', y)]"])
def test_the_phase_of_a_loop(over):
    before = f"{HEAD}for k, d in {over}:\n    a[k] = DataLoader(d, sampler=DistributedSampler(d))\n"
    check(before, f"{HEAD}for k, d in {over}:\n    a[k] = DataLoader(d, shuffle=k == 'train')\n", select=CODE)


@pytest.mark.parametrize(
    ("sets", "loop", "shuffle"),
    [
        ("{'train': x, 'val': y}", "for k, d in sets.items()", "k == 'train'"),
        ("{'train': x, 'val': y}", "for k in sets", "k == 'train'"),
        ("{p: f(p) for p in ('train', 'test')}", "for k in sets.keys()", "k == 'train'"),
        ("['val', 'train']", "for k in sets", "k == 'train'"),
        ("{'a': x, 'b': y}", "for k, d in sets.items()", "True"),
        ("load()", "for k, d in sets.items()", "True"),
        ("{**more, 'val': y}", "for k, d in sets.items()", "True"),
    ],
)
def test_the_phases_that_a_dictionary_or_a_list_has(sets, loop, shuffle):
    before = f"{HEAD}sets = {sets}\n{loop}:\n    a[k] = DataLoader(d, sampler=DistributedSampler(d))\n"
    text = migrated(before, CODE).text
    assert f"DataLoader(d, shuffle={shuffle})" in text


@pytest.mark.parametrize(
    ("name", "evaluates"),
    [("testset", True), ("valloader", True), ("val_ds", True), ("contest", False), ("device_data", False), ("trainset", False)],
)  # fmt: skip
def test_names_of_evaluation(name, evaluates):
    text = migrated(f"{HEAD}a = DataLoader({name}, sampler=DistributedSampler({name}))\n", CODE).text
    assert ("shuffle=True" not in text) is evaluates


MADE = "def create(d, {}):\n    {}\n    return DataLoader(d, 4, {}sampler=s)\n\nd = torch.arange(8)\na, b = create(d, {}), create(d, {})\n"


@pytest.mark.parametrize(
    ("parameter", "sampler", "beside", "one", "other"),
    [
        ("shuffle=False", "s = DistributedSampler(d, n, r, shuffle=shuffle)", "", "shuffle=True", "shuffle=False"),
        ("shuffle", "s = DistributedSampler(d, n, r, shuffle)", "", "True", "False"),
        ("shuffle, many=False", "s = DistributedSampler(d, n, r, shuffle) if many else None", "shuffle=shuffle and s is None, ", "True", "False"),
        ("train", "s = DistributedSampler(d, n, r) if train else None", "", "True", "False"),
        ("train", "s = None\n    if train:\n        s = DistributedSampler(d, n, r)", "", "True", "False"),
        ("o", "s = DistributedSampler(d, n, r, shuffle=o.shuffle)", "", "types.SimpleNamespace(shuffle=True)", "types.SimpleNamespace(shuffle=False)"),
        ("o", "way = bool(o)\n    s = DistributedSampler(d, n, r, shuffle=way)", "", "1", "0"),
    ],
)  # fmt: skip
def test_what_the_restored_shuffle_reads_stays(parameter, sampler, beside, one, other):
    """A parameter or a name that only the sampler read is read by its loader now."""
    text = migrated(HEAD + "import types\nn, r = 1, 0\n" + MADE.format(parameter, sampler, beside, one, other)).text
    names: dict = {}
    exec(compile(text, "script", "exec"), names)
    assert "DistributedSampler(" not in text
    assert [type(names[k].sampler).__name__ for k in "ab"] == ["RandomSampler", "SequentialSampler"]
