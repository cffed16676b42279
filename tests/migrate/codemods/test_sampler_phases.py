# ruff: noqa: E501
"""T4: a DataLoader for evaluation never gains `shuffle`, whatever tells that it is one."""

import pytest
from helpers import check

HEAD = "from torch.utils.data import DataLoader, DistributedSampler\nimport torch\n"
CODE = "PTM401"
MADE = "DataLoader(x, sampler=DistributedSampler(x))"


@pytest.mark.parametrize(
    "source",
    [
        "v = DataLoader(dataset=val_set, sampler=DistributedSampler(val_set))",
        "def make(x):\n    return {}\n\nval_loader = make(a)",
        "loaders = {{'a': b, 'val': {}}}",
        "def make(x):\n    return len(x), {}\n\nn, val_loader = make(a)",
        "def make(x):\n    return {}\n\nloader = make(test_set)",
        "for x in [val_set, test_set]:\n    loaders.append({})",
        "for i, x in enumerate((val_set, test_set)):\n    loaders.append({})",
    ],
)
def test_for_evaluation_alone(source):
    after = source.replace(", sampler=DistributedSampler(val_set)", "").format("DataLoader(x)")
    check(HEAD + source.format(MADE) + "\n", HEAD + after + "\n", attention=[], select=CODE)


@pytest.mark.parametrize(
    "source",
    [
        "sets = {'train': a, 'val': b}\nfor i, x in enumerate(sets.values()):\n    loaders.append(%s)",
        "loaders = [%s for x in (train_set, valid_set)]",
        "class T:\n    def __init__(self, a, b):\n        self.train_loader = self.make(a)\n"
        "        self.test_loader = self.make(b) if b else None\n\n    def make(self, x):\n        return %s",
        "train_loader, val_loader = [%s for x in (a, b)]",
        "def make(x):\n    return %s\n\ntrain_loader, val_loader = make(a), make(b)",
        "x = y = a\nsets = [train_set, val_set]\nfor i in range(2):\n    use(sets[i], %s)",
        "def make(x, names=('train', 'val')):\n    for i in range(len(names)):\n        loaders[names[i]] = %s",
        "class Data:\n    def train_dataloader(self):\n        return self.make(self.a)\n\n    def val_dataloader(self):\n"
        "        return self.make(self.b)\n\n    def make(self, x):\n        return %s",
    ],
)
def test_for_training_and_evaluation_alike_it_stays(source):
    after = source % MADE.replace("(x))", "(x, num_replicas=1, rank=0))")
    says = "DistributedSampler kept: training and evaluation get their DataLoaders here alike"
    line = 3 + (source % MADE)[: (source % MADE).index(MADE)].count("\n")
    check(HEAD + source % MADE + "\n", HEAD + after + "\n", attention=[f"{CODE} line {line}: {says}"], select=CODE)


@pytest.mark.parametrize(
    ("source", "shuffle"),
    [
        ("for name, x in zip(['train', 'val'], [a, b]):\n    loaders[name] = {}", "name == 'train'"),
        ("sets = dict(train=a, val=b)\nloaders = {{k: {} for k, x in sets.items()}}", "k == 'train'"),
        ("sets = {{}}\nsets['train'] = a\nsets['val'] = b\nl = {{k: {} for k, x in sets.items()}}", "k == 'train'"),
        ("for i, (p, x) in enumerate([('train', a), ('val', b)]):\n    loaders.append({})", "p == 'train'"),
        ("def make(x, train):\n    return {}\n\nt = make(a, True)\nval = make(b, False)", "train"),
        ("def make(x):\n    return {}\n\na = make(train_set)\nb = make(extra)", "True"),
        ("def make(x, y):\n    return {}, y\n\ntrain, val = make(a, b)", "True"),
        ("for x in parts:\n    loaders.append({})", "True"),
        ("for i in range(2):\n    use(parts[i], {})", "True"),
        ("sets = [first_train, more_train]\nfor i in range(2):\n    use(sets[i], {})", "True"),
    ],
)
def test_what_tells_them_apart_says_which_shuffles(source, shuffle):
    after = source.format(f"DataLoader(x, shuffle={shuffle})")
    check(HEAD + source.format(MADE) + "\n", HEAD + after + "\n", attention=[], select=CODE)
