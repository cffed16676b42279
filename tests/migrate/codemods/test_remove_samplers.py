# ruff: noqa: E501
import re

import pytest
from helpers import check, check_unchanged, migrated

HEAD = """\
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, WeightedRandomSampler
import torch.utils.data.distributed
from torch.utils.data.distributed import DistributedSampler
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s = DistributedSampler(d)\ntrain = DataLoader(d, 32, sampler=s)", "train = DataLoader(d, 32, shuffle=True)"),
        ("s = DistributedSampler(d)\ntrain = DataLoader(d, 32, False, s, None, 4)", "train = DataLoader(d, 32, True, batch_sampler=None, num_workers=4)"),
        ("s = DistributedSampler(d)\ntrain = DataLoader(d, 32, False, s, None, 4, f, True, True, 9)", "train = DataLoader(d, 32, True, batch_sampler=None, num_workers=4, collate_fn=f, pin_memory=True, drop_last=True, timeout=9)"),
        ("val = DataLoader(d, 32, False, DistributedSampler(d, shuffle=False), None, 0, None, False, False, 0, w, m, g)", "val = DataLoader(d, 32, False, batch_sampler=None, num_workers=0, collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=w, multiprocessing_context=m, generator=g)"),
        ("s = torch.utils.data.distributed.DistributedSampler(d, 2, 0, False)\ntrain = DataLoader(d, sampler=s)", "train = DataLoader(d)"),
        ("train = DataLoader(d, sampler=DistributedSampler(d, shuffle=flag))", "train = DataLoader(d, shuffle=flag)"),
        ("val = DataLoader(d, sampler=DistributedSampler(d))", "val = DataLoader(d)"),
        ("def test_loader(d):\n    return DataLoader(d, sampler=DistributedSampler(d))", "def test_loader(d):\n    return DataLoader(d)"),
        ("def loader(d):\n    return DataLoader(d, sampler=DistributedSampler(d))", "def loader(d):\n    return DataLoader(d, shuffle=True)"),
        ("s = DistributedSampler(d) if c else None\ntrain = DataLoader(d, shuffle=s is None, sampler=s)", "train = DataLoader(d, shuffle=True)"),
        ("s = None\nif c:\n    s = DistributedSampler(d)\ntrain = DataLoader(d, shuffle=not s, sampler=s)", "train = DataLoader(d, shuffle=True)"),
        ("s = None\nif c:\n    s = DistributedSampler(d)\ntrain = DataLoader(d, shuffle=not c, sampler=s)", "train = DataLoader(d, shuffle=True)"),
        ("s = DistributedSampler(d) if a.c else None\ntrain = DataLoader(d, shuffle=False if a.c else b, sampler=s)", "train = DataLoader(d, shuffle=b)"),
        ("s = DistributedSampler(d) if c else None\ntrain = DataLoader(d, shuffle=b and not c, sampler=s)", "train = DataLoader(d, shuffle=b)"),
        ("k = {}\ns = DistributedSampler(d) if c else None\nk['sampler'] = s\nk['shuffle'] = s is None\ntrain = DataLoader(d, **k)", "k = {}\nk['shuffle'] = True\ntrain = DataLoader(d, **k)"),
        ("k = {}\ns = DistributedSampler(d, shuffle=b) if c else None\nk['sampler'] = s\nk['shuffle'] = not c and b\ntrain = DataLoader(d, **k)", "k = {}\nk['shuffle'] = b\ntrain = DataLoader(d, **k)"),
        ("k = {}\ns = DistributedSampler(d, shuffle=b) if c else None\nk['sampler'] = s\nk['shuffle'] = b if s is None else False\ntrain = DataLoader(d, **k)", "k = {}\nk['shuffle'] = b\ntrain = DataLoader(d, **k)"),
        ("k = dict(shuffle=True)\ns = None\nif c:\n    s = DistributedSampler(d)\n    k['shuffle'] = False\nk['sampler'] = s\ntrain = DataLoader(d, **k)", "k = dict(shuffle=True)\ntrain = DataLoader(d, **k)"),
        ("s = DistributedSampler(d, shuffle=False)\ntrain = DataLoader(d, shuffle=s is None, sampler=s)", "train = DataLoader(d)"),
        ("s = DistributedSampler(d, shuffle=b) if c else None\ntrain = DataLoader(d, shuffle=b and s is None, sampler=s)", "train = DataLoader(d, shuffle=b)"),
        ("s = DistributedSampler(d) if c else None\ntrain = DataLoader(d, shuffle=c, sampler=s)", "train = DataLoader(d)"),
        ("s = DistributedSampler(d) if c else None\ntrain = DataLoader(d, shuffle=b, sampler=s)", "train = DataLoader(d, shuffle=b)"),
        ("s = None\nif c:\n    s = DistributedSampler(d)\ntrain = DataLoader(d, sampler=s)", "train = DataLoader(d)"),
        ("s = DistributedSampler(d) if c else RandomSampler(d)\ntrain = DataLoader(d, sampler=s)", "s = RandomSampler(d)\ntrain = DataLoader(d, sampler=s)"),
        ("s = DistributedSampler(d) if c else RandomSampler(d)\ntrain = DataLoader(d, sampler=s, shuffle=s is None)", "s = RandomSampler(d)\ntrain = DataLoader(d, sampler=s, shuffle=s is None)"),
        ("s = DistributedSampler(d) if c else RandomSampler(d)\ntrain = DataLoader(d, sampler=s)\nfor e in range(3):\n    if isinstance(s, DistributedSampler):\n        s.set_epoch(e)\n    go(train)", "s = RandomSampler(d)\ntrain = DataLoader(d, sampler=s)\nfor e in range(3):\n    go(train)"),
        ("train = DataLoader(d, sampler=DistributedSampler(d) if c else RandomSampler(d))", "train = DataLoader(d, sampler=RandomSampler(d))"),
        ("if c:\n    s = DistributedSampler(d)\nelse:\n    s = RandomSampler(d)\ntrain = DataLoader(d, sampler=s)\nif c:\n    s = DistributedSampler(v, shuffle=False)\nelse:\n    s = None\nval = DataLoader(v, sampler=s)", "s = RandomSampler(d)\ntrain = DataLoader(d, sampler=s)\ns = None\nval = DataLoader(v, sampler=s)"),
        ("kw = dict(sampler=DistributedSampler(d), shuffle=False)\ntrain = DataLoader(d, **kw)", "kw = dict(shuffle=True)\ntrain = DataLoader(d, **kw)"),
        ("kw = {'sampler': DistributedSampler(d, shuffle=flag), 'shuffle': False}\ntrain = DataLoader(d, **kw)", "kw = {'shuffle': flag}\ntrain = DataLoader(d, **kw)"),
        ("train = DataLoader(d, **{'shuffle': False, 'sampler': DistributedSampler(d)})", "train = DataLoader(d, **{'shuffle': True})"),
        ("val = DataLoader(d, **{'shuffle': False, 'sampler': DistributedSampler(d, shuffle=False)})", "val = DataLoader(d, **{'shuffle': False})"),
        ("s = DistributedSampler(d)\nkw = dict(sampler=s, num_workers=2)\ntrain = DataLoader(d, **kw)", "kw = dict(shuffle=True, num_workers=2)\ntrain = DataLoader(d, **kw)"),
        ("s = DistributedSampler(d)\nkw = {'sampler': s, 'num_workers': 2}\ntrain = DataLoader(d, **kw)", "kw = {'shuffle': True, 'num_workers': 2}\ntrain = DataLoader(d, **kw)"),
        ("s = DistributedSampler(d)\ntrain = DataLoader(d, sampler=s)\nfor e in range(3):\n    s.set_epoch(e)\n    go(train)", "train = DataLoader(d, shuffle=True)\nfor e in range(3):\n    go(train)"),
        ("train = DataLoader(d, sampler=DistributedSampler(d))\nfor e in range(3):\n    if dist:\n        train.sampler.set_epoch(e)\n    go(train)", "train = DataLoader(d, shuffle=True)\nfor e in range(3):\n    go(train)"),
        ("class D:\n    def make(self):\n        self.s = DistributedSampler(d)\n        return DataLoader(d, sampler=self.s)\n    def epoch(self, e):\n        self.s.set_epoch(e)\n        go()", "class D:\n    def make(self):\n        return DataLoader(d, shuffle=True)\n    def epoch(self, e):\n        go()"),
        ("s = DistributedSampler(d) if c else None\ntrain = DataLoader(d, sampler=s)\nfresh = s is None", "train = DataLoader(d)\nfresh = True"),
        ("def f(d, train):\n    if train:\n        s = DistributedSampler(d)\n    else:\n        s = DistributedSampler(d, shuffle=False)\n    return DataLoader(d, sampler=s)", "def f(d, train):\n    return DataLoader(d, shuffle=train)"),
        ("def f(d, last):\n    s = DistributedSampler(d, shuffle=False) if last > 1 else DistributedSampler(d)\n    return DataLoader(d, sampler=s)", "def f(d, last):\n    return DataLoader(d, shuffle=not (last > 1))"),
        ("def f(d, a, b):\n    return DataLoader(d, sampler=DistributedSampler(d, shuffle=b) if a else DistributedSampler(d))", "def f(d, a, b):\n    return DataLoader(d, shuffle=b if a else True)"),
        ("def f(d, a):\n    s = DistributedSampler(d) if a else DistributedSampler(d, seed=3)\n    return DataLoader(d, sampler=s)", "def f(d, a):\n    return DataLoader(d, shuffle=True)"),
        ("all = {x: DataLoader(d[x], sampler=DistributedSampler(d[x])) for x in ['train', 'val']}", "all = {x: DataLoader(d[x], shuffle=x == 'train') for x in ['train', 'val']}"),
        ("all = {x: DataLoader(d[x], sampler=DistributedSampler(d[x])) for x in ('val', 'test')}", "all = {x: DataLoader(d[x]) for x in ('val', 'test')}"),
        ("for x in ('a', 'b', 'test'):\n    all[x] = DataLoader(d[x], sampler=DistributedSampler(d[x]))", "for x in ('a', 'b', 'test'):\n    all[x] = DataLoader(d[x], shuffle=x in ('a', 'b'))"),
        ("all = [DataLoader(d[x], sampler=DistributedSampler(d[x])) for x in ('a', 'b')]", "all = [DataLoader(d[x], shuffle=True) for x in ('a', 'b')]"),
        ("o = dict(batch_size=2)\no['sampler'] = DistributedSampler(d)\ntrain = DataLoader(d, **o)", "o = dict(batch_size=2)\no[\"shuffle\"] = True\ntrain = DataLoader(d, **o)"),
        ("o = {}\nif many:\n    o['sampler'] = DistributedSampler(d)\nelse:\n    o['shuffle'] = True\ntrain = DataLoader(d, **o)", "o = {}\no['shuffle'] = True\ntrain = DataLoader(d, **o)"),
        ("o = {'shuffle': True}\nif many:\n    s = DistributedSampler(d)\n    o['sampler'] = s\n    o['shuffle'] = False\ntrain = DataLoader(d, **o)", "o = {'shuffle': True}\ntrain = DataLoader(d, **o)"),
        ("def val(d):\n    o = {}\n    o['sampler'] = DistributedSampler(d)\n    return DataLoader(d, **o)", "def val(d):\n    o = {}\n    return DataLoader(d, **o)"),
        ("if many:\n    s = DistributedSampler(d)\n    shuffle = False\nelse:\n    s = None\n    shuffle = True\ntrain = DataLoader(d, 2, shuffle, s)", "shuffle = True\ntrain = DataLoader(d, 2, shuffle)"),
        ("if many:\n    s = DistributedSampler(d)\n    shuffle = False\n    go()\nelse:\n    s = None\n    shuffle = True\ntrain = DataLoader(d, 2, shuffle, s)", "if many:\n    shuffle = True\n    go()\nelse:\n    shuffle = True\ntrain = DataLoader(d, 2, shuffle)"),
        ("def f(d, is_train):\n    s = DistributedSampler(d) if is_train else None\n    return DataLoader(d, sampler=s)", "def f(d, is_train):\n    return DataLoader(d, shuffle=is_train)"),
        ("def f(d, mode):\n    s = None\n    if mode == 'train':\n        s = DistributedSampler(d)\n    return DataLoader(d, sampler=s)", "def f(d, mode):\n    return DataLoader(d, shuffle=mode == 'train')"),
        ("def f(d, train_many):\n    s = DistributedSampler(d) if train_many and dist else None\n    return DataLoader(d, sampler=s)", "def f(d, train_many):\n    return DataLoader(d)"),
        ("train = DataLoader(\n    d,\n    batch_size=4,  # small\n    sampler=DistributedSampler(d),\n)", "train = DataLoader(\n    d,\n    batch_size=4,  # small\n    shuffle=True,\n)"),
    ],
)  # fmt: skip
def test_samplers_go(before, after):
    check(HEAD + before + "\n", HEAD + after + "\n", select="PTM401,PTM102")


@pytest.mark.parametrize(
    "source",
    [
        "DataLoader(d, 32, True)",
        "DataLoader(d, sampler=WeightedRandomSampler(w, 10))",
        "DataLoader(d, batch_sampler=BatchSampler(RandomSampler(d), 4, True))",
        "s = RandomSampler(d)\nDataLoader(d, sampler=s)",
        "DataLoader(d, sampler=sampler)",
        "DataLoader(Stream(), batch_size=None)",
        "from mine import DistributedSampler as S\nDataLoader(d, sampler=S(d))",
        "sampler.set_epoch(3)",
        "train.sampler.set_epoch(3)",
        "isinstance(s, DistributedSampler)",
        "o = {}\no['sampler'] = RandomSampler(d)\nDataLoader(d, **o)",
        "o = dict(sampler=WeightedRandomSampler(w, 3), batch_size=2)\ntrain = DataLoader(d, **o)",
        "o = {'sampler': RandomSampler(d)}\ntrain = DataLoader(d, **o)",
        "class D:\n    def make(self):\n        self.s = RandomSampler(d)\n        return DataLoader(d, sampler=self.s)",
        "train = DataLoader(d, 4, False, RandomSampler(d), drop_last=True)",
        "all = {x: DataLoader(d[x], sampler=RandomSampler(d[x])) for x in ['train', 'val']}",
        "s = RandomSampler(d) if many else None\ntrain = DataLoader(d, shuffle=s is None, sampler=s)",
        "def f(d, s=None):\n    return DataLoader(d, shuffle=s is None, sampler=s)",
        "s = RandomSampler(d)\nfor e in range(3):\n    go(s)\n    if hasattr(s, 'set_epoch'):\n        s.set_epoch(e)",
        "o = {}\nif many:\n    o['sampler'] = WeightedRandomSampler(w, 3)\n    o['shuffle'] = False\nDataLoader(d, **o)",
        "if many:\n    s = RandomSampler(d)\n    shuffle = False\nelse:\n    s, shuffle = None, True\nDataLoader(d, 2, shuffle, s)",
        "def f(d, is_train):\n    return DataLoader(d, sampler=RandomSampler(d) if is_train else None)",
        "class DistributedSampler:\n    def __init__(self, d):\n        self.d = d\nDataLoader(d, sampler=DistributedSampler(d))",
        "def make(DistributedSampler, d):\n    return DataLoader(d, sampler=DistributedSampler(d))",
        "text = 'DistributedSampler(d)'  # DistributedSampler(d)",
        "train = DataLoader(d, sampler=torch.utils.data.SubsetRandomSampler(idx))",
        "DataLoader(d, sampler=torch.utils.data.SequentialSampler(d))",
        "train = DataLoader(d, batch_sampler=Buckets(d))",
        "class Data:\n    def set_epoch(self, e):\n        self.e = e\ndata = Data()\ndata.set_epoch(3)",
        "train.dataset.set_epoch(3)",
        "def f(loader):\n    loader.batch_sampler.sampler.set_epoch(3)",
        "for e in range(3):\n    scheduler.set_epoch(e)",
        "from mine import DataLoader\ntrain = DataLoader(d, sampler=RandomSampler(d))",
        "sampler = Gibbs(n)\nsampler.sample(5)",
        "def f(d, sampler):\n    return DataLoader(d, batch_size=4, sampler=sampler, shuffle=False)",
        "train = DataLoader(d, shuffle=flag and not last)",
        "train = DataLoader(d, **json.load(f))",
        "train = DataLoader(d, sampler=range(10))",
        "train = DataLoader(d, sampler=[3, 1, 2])",
        "def f(s: DistributedSampler) -> int:\n    return len(s)",
        "kinds = {'random': RandomSampler, 'weighted': WeightedRandomSampler}\ntrain = DataLoader(d, sampler=kinds[k](d))",
        "make = partial(DataLoader, sampler=None)",
        "train = DataLoader(d, sampler=RandomSampler(d, replacement=True, num_samples=8))",
        "shuffle = sampler is None\ntrain = DataLoader(d, shuffle=shuffle, sampler=sampler)",
        "val = DataLoader(d, shuffle=False)",
        "train = DataLoader(d, batch_sampler=BatchSampler(WeightedRandomSampler(w, 8), 4, False))",
        "for x in ('train', 'val'):\n    all[x] = DataLoader(d[x], shuffle=x == 'train')",
        "train = DataLoader(d, 4, sampler=sampler or RandomSampler(d))",
        "class D(torch.utils.data.Dataset):\n    def sampler(self):\n        return RandomSampler(self)\ntrain = DataLoader(D(), sampler=D().sampler())",
        "DataLoader(d, sampler=DistributedSampler(d))\nTrainer(replace_sampler_ddp=False)",
    ],
)  # fmt: skip
def test_unchanged(source):
    result = check_unchanged(HEAD + source + "\n")
    assert "Trainer(" in source or not result.attention


@pytest.mark.parametrize(
    "source",
    [
        "s = DistributedSampler(d)\nDataLoader(d, batch_sampler=BatchSampler(s, 4, True))",
        "s = DistributedSampler(d)\nDataLoader(d, sampler=s)\nprint(len(s))",
        "s = DistributedSampler(d)\nDataLoader(d, sampler=s)\ntrain(s)",
        "s = DistributedSampler(d)\nMyLoader(d, s)",
        "if go():\n    s = DistributedSampler(d)\nelse:\n    s = DistributedSampler(d, shuffle=False)\nDataLoader(d, sampler=s)",
        "if a:\n    s = DistributedSampler(d)\nelif b:\n    s = DistributedSampler(d, shuffle=False)\nelse:\n    s = None\nDataLoader(d, sampler=s)",
        "def f(a):\n    s = DistributedSampler(d) if a else DistributedSampler(d, shuffle=False)\n    a = 3\n    DataLoader(d, sampler=s)",
        "def make(d):\n    return DistributedSampler(d)",
        "o = {}\no['sampler'] = DistributedSampler(d)\nDataLoader(d, **o)\nprint(o)",
        "def f(o):\n    o['sampler'] = DistributedSampler(d)\n    DataLoader(d, **o)",
    ],
)
def test_used_for_more_it_draws_every_sample_and_is_told(source):
    after = re.sub(r"DistributedSampler\((.*?)\)", r"DistributedSampler(\1, num_replicas=1, rank=0)", source)
    lines = ["PTM401 line "] * source.count("DistributedSampler")
    check(HEAD + source + "\n", HEAD + after + "\n", lines, lines)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(d, shuffle, many):\n    s = None\n    if many:\n        s = DistributedSampler(d)\n        shuffle = False\n    return DataLoader(d, shuffle=shuffle, sampler=s)", "def f(d, shuffle, many):\n    return DataLoader(d, shuffle=shuffle)"),
        ("if many:\n    s = DistributedSampler(d)\n    t = DistributedSampler(v)\nelse:\n    s = RandomSampler(d)\n    t = RandomSampler(v)\nuse(s, t)", "s = RandomSampler(d)\nt = RandomSampler(v)\nuse(s, t)"),
        ("if many:\n    s = DistributedSampler(d)\nelif train:\n    s = RandomSampler(d)\nelse:\n    s = Order(d)\nuse(s)\nif many:\n    s.set_epoch(1)", "if train:\n    s = RandomSampler(d)\nelse:\n    s = Order(d)\nuse(s)"),
    ],
)  # fmt: skip
def test_the_samplers_of_one_process_stay(before, after):
    check(HEAD + before + "\n", HEAD + after + "\n", select="PTM401,PTM102")


@pytest.mark.parametrize("test", ["args.local_rank == -1", "not args.distributed", "world_size == 1", "not is_ddp()"])
def test_and_where_they_stand_first(test):
    """As in Hugging Face's early examples."""
    branch = "    s = RandomSampler(d)\nelse:\n    s = DistributedSampler(d)\ntrain = DataLoader(d, sampler=s)\n"
    epochs = "if args.local_rank != -1:\n    s.set_epoch(1)\n"
    after = "s = RandomSampler(d)\ntrain = DataLoader(d, sampler=s)\n"
    check(f"{HEAD}if {test}:\n{branch}{epochs}", HEAD + after, select="PTM401")


@pytest.mark.parametrize("test", ["args.balanced", "args.train", "len(d) > 9"])
def test_what_asks_for_something_else_may_be_true_of_several_processes(test):
    branch = (
        "    s = WeightedRandomSampler(w, 9)\nelse:\n    s = DistributedSampler(d)\ntrain = DataLoader(d, sampler=s)\n"
    )
    result = migrated(f"{HEAD}if {test}:\n{branch}", "PTM401")
    assert "WeightedRandomSampler(w, 9)\nelse:\n    s = DistributedSampler(d, num_replicas=1, rank=0)" in result.text
    assert "DistributedSampler kept" in result.attention[0].message


@pytest.mark.parametrize(
    "source",
    [
        "def resample(sound):\n    sampler = Resampler(sound)\n    sampler.set_epoch(3)\n",
        "if many:\n    s = DistributedSampler(d, num_replicas=1, rank=0)\nelse:\n    s = None\nuse(s)",
        "if many:\n    s = DistributedSampler(d, num_replicas=1, rank=0)\n    go()\nelse:\n    s = RandomSampler(d)\nuse(s)",
    ],
)
def test_other_samplers_and_those_of_one_process_are_left(source):
    check_unchanged(HEAD + source + "\n", select="PTM401")


def test_the_epochs_of_a_sampler_of_the_same_name_stay():
    other = "def resample(sound):\n    s = Resampler(sound)\n    s.set_epoch(3)\n"
    here = "if many:\n    s = DistributedSampler(d)\nelse:\n    s = RandomSampler(d)\ns.set_epoch(1)\n"
    check(HEAD + other + here, HEAD + other + "s = RandomSampler(d)\n", select="PTM401")


OWN = """\
import torch
class Every(torch.utils.data.Sampler):
    def __init__(self, data, {parameters}):
        self.data = data
        {kept}
    def __iter__(self):
        return iter(range({taken}))
loader = torch.utils.data.DataLoader(d, sampler=Every(d, 2, 0))
"""


def test_a_sampler_class_that_takes_every_nth_sample_is_told():
    own = OWN.format(
        parameters="num_replicas, rank",
        kept="self.num_replicas, self.rank = num_replicas, rank",
        taken="self.rank, len(self.data), self.num_replicas",
    )
    check_unchanged(own, ["PTM401 line 8: `Every` divides the samples by rank itself"], select="PTM401")


def test_a_sampler_class_that_draws_is_none():
    own = OWN.format(parameters="n, seed", kept="self.n = n", taken="self.n")
    check_unchanged(own, [], select="PTM401")
    check_unchanged(own.replace("Sampler", "Dataset").replace("seed", "rank, num_replicas"), [], select="PTM401")


DERIVED = """
class Repeated(DistributedSampler):
    def __iter__(self):
        return (i for i in super().__iter__() for _ in range(2))
s = Repeated(d{})
"""


def test_an_own_class_of_them_is_told():
    check_unchanged(HEAD + DERIVED.format(""), ["PTM401 line 9: `Repeated` divides the samples by rank itself"])
    check_unchanged(HEAD + DERIVED.format(", num_replicas=1, rank=0"), [], select="PTM401")


def test_a_sampler_that_a_star_brings():
    """Nothing was changed, and nothing told."""
    head = "import torch\nfrom torch.utils.data import *\n"
    check(
        head + "s = DistributedSampler(d)\nx = DataLoader(d, 4, sampler=s)\n",
        head + "x = DataLoader(d, 4, shuffle=True)\n",
    )


@pytest.mark.parametrize(
    ("before", "hides"),
    [
        ("options['sampler'] = mine", True),
        ("options.update(sampler=mine)", True),
        ("options = dict(sampler=mine)", True),
        ("options['batch_size'] = 2", False),
        ("options.update(batch_size=2)", False),
        ("train = DataLoader(d, sampler=mine, **options)", False),
    ],
)
def test_a_sampler_that_hides_another_stays(before, hides):
    source = (
        HEAD + f"options = {{}}\n{before}\ntrain = DataLoader(d, **{{**options, 'sampler': DistributedSampler(d)}})\n"
    )
    text = migrated(source, "PTM401").text
    assert ("num_replicas=1" in text, "'shuffle': True" in text.replace('"', "'")) == (hides, not hides)
