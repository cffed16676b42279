"""A collate_fn that pads to what is longest in its batch: a share of one may be shorter."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

SCRIPT = """\
import functools
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

data = [(torch.randn(i % 4 + 1, 2), i % 2) for i in range(16)]


def fill(xs, n):
    return torch.stack([nn.functional.pad(x, (0, 0, 0, n - len(x))) for x in xs])

COLLATE

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(2, 2)

    def forward(self, x, given=None):
        FORWARD
        return self.out(x.mean(1))

loader = DataLoader(data, batch_size=4, GIVEN)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
PAD = "def collate(batch):\n    xs, ys = zip(*batch)\n    return {}, torch.tensor(ys)\n"
LONGEST = PAD.format("fill(xs, max(len(x) for x in xs))")
SORTED = """\
def collate(batch):
    xs, ys = zip(*sorted(batch, key=lambda b: len(b[0]), reverse=True))
    lengths = {}
    return fill(xs, {}), torch.tensor(ys)
"""
CLASS = "class Collate:\n    def __call__(self, batch):\n        return {}, torch.tensor([y for _, y in batch])\n"
OF_SHAPES = PAD.format("fill(xs, max([x.shape[0] for x in xs]))")
SEQUENCES = "pad_sequence(xs, batch_first=True)"


def result(collate: str, given: str, forward: str = "pass"):
    return migrate_text(SCRIPT.replace("COLLATE", collate).replace("GIVEN", given).replace("FORWARD", forward))


@pytest.mark.parametrize(
    ("collate", "given"),
    [
        (PAD.format(SEQUENCES), "collate_fn=collate"),
        (LONGEST, "collate_fn=collate"),
        (OF_SHAPES, "collate_fn=lambda b: collate(b)"),
        (LONGEST.replace("(batch)", "(batch, pad)"), "collate_fn=functools.partial(collate, pad=0)"),
        (CLASS.format(SEQUENCES.replace("xs", "[x for x, _ in batch]")), "collate_fn=Collate()"),
        (PAD.format("longest(xs)") + f"\ndef longest(xs):\n    return {SEQUENCES}\n", "**{'collate_fn': collate}"),
        (LONGEST, "num_workers=0, shuffle=False, collate_fn=collate"),
        (SORTED.format("[len(x) for x in xs]", "lengths[0]"), "collate_fn=collate"),
        (SORTED.format("[x.size(0) for x in xs]", "lengths[0]"), "collate_fn=collate"),
        (SORTED.format("list(map(len, xs))", "sorted(lengths)[-1]"), "collate_fn=collate"),
        (PAD.format("fill(xs, sorted(x.shape[0] for x in xs)[-1])"), "collate_fn=collate"),
    ],
)
def test_batches_stay_whole(collate, given):
    made = result(collate, given)
    assert "divide_batches = False" in made.text
    (told,) = [n.message for n in made.attention if n.code == "PTM703"]
    assert "pads a batch to its longest sample" in told


@pytest.mark.parametrize(
    ("collate", "given", "forward"),
    [
        (PAD.format("fill(xs, 4)"), "collate_fn=collate", "pass"),
        (LONGEST, "shuffle=False", "pass"),
        (LONGEST, "collate_fn=collate", "x = x * given if given is not None else x  # the mask"),
        (LONGEST, "collate_fn=collate", "packed = nn.utils.rnn.pack_padded_sequence(x, given) if given else x"),
        (PAD.format("fill(xs, 4)") + "print(max(len(x) for x, _ in data))\n", "collate_fn=collate", "pass"),
        (SORTED.format("[len(x) for x in xs]", "4") + "    print(lengths)\n", "collate_fn=collate", "pass"),
        (PAD.format("fill([x[:2] for x in xs], [x.shape for x in xs][0][1])"), "collate_fn=collate", "pass"),
        (SORTED.format("[len(x) for x in xs]", "lengths[0]"), "shuffle=False", "pass"),
        (PAD.format("fill(xs, [len(x) for x in xs][0])"), "collate_fn=collate", "pass"),  # all as long as the first
        (PAD.format("torch.stack([x.max(0).values for x in xs])[:, None]"), "collate_fn=collate", "pass"),
    ],
)
def test_of_one_length_or_told_what_is_padding_they_are_divided(collate, given, forward):
    assert "divide_batches" not in result(collate, given, forward).text


THERE = "import torch\nfrom torch.nn.utils.rnn import pad_sequence\n\n\n"
DATA = "class Data(torch.utils.data.Dataset):\n    @staticmethod\n    def collate(batch):\n        return {}\n"
MADE = "def make(pad):\n    def collate(batch):\n        return {}\n    return collate\n"
EACH = "[pad_sequence([b[i] for b in batch]) for i in range(2)]"
FIXED = "torch.stack([b[0][:3] for b in batch]), torch.tensor([b[1] for b in batch])"


def of_files(folder, imports: str, given: str, there: str, net: str = ""):
    script = SCRIPT.replace("COLLATE", imports).replace("GIVEN", given).replace("FORWARD", "pass")
    for name, text in (("train.py", script), ("batches.py", THERE + there), ("nets.py", net)):
        (folder / name).write_text(text)
    return migrate_all(collect([folder / "train.py"]), Options())[0].result


@pytest.mark.parametrize(
    ("imports", "given", "there"),
    [
        ("from batches import collate", "collate_fn=collate", PAD.format(SEQUENCES)),
        ("from batches import *", "collate_fn=collate", LONGEST),
        ("from batches import *", "collate_fn=lambda b: collate(b)", PAD.format(SEQUENCES)),
        ("from batches import collate as c", "collate_fn=lambda b: c(b)", PAD.format(SEQUENCES)),
        ("import batches", "collate_fn=batches.collate", PAD.format(SEQUENCES)),
        ("from batches import Collate", "collate_fn=Collate()", CLASS.format("pad_sequence([x for x, _ in batch])")),
        ("from batches import make", "collate_fn=make(0)", MADE.format(EACH)),
        ("from batches import Data", "collate_fn=Data.collate", DATA.format(EACH)),
        ("from batches import Data\nown = Data()", "collate_fn=own.collate", DATA.format(EACH)),
    ],
)
def test_so_they_do_where_another_file_pads(tmp_path, imports, given, there):
    made = of_files(tmp_path, imports, given, there)
    assert "divide_batches = False" in made.text
    assert any(n.code == "PTM703" and "pads a batch to its longest sample" in n.message for n in made.attention)


@pytest.mark.parametrize(
    ("imports", "given", "there", "net"),
    [
        ("from batches import collate", "collate_fn=collate", PAD.format(FIXED), ""),
        ("from batches import make", "collate_fn=make(0)", MADE.format(FIXED), ""),
        ("from batches import Data", "collate_fn=Data.collate", DATA.format(FIXED), ""),
        ("from batches import collate", "shuffle=False", LONGEST, ""),
        (
            "from batches import collate\nimport nets",
            "collate_fn=collate",
            LONGEST,
            "from torch import nn\n\n\nclass Other(nn.Module):\n    def forward(self, x, lengths):\n        return x\n",
        ),
    ],
)
def test_another_file_that_does_not_leaves_them_divided(tmp_path, imports, given, there, net):
    assert "divide_batches" not in of_files(tmp_path, imports, given, there, net).text


METHODS = "return self.out(x.mean(1))\n\n    def {}\n        {}\n\n    def other(self, x):\n        x = x"


@pytest.mark.parametrize(
    ("signature", "body", "whole"),
    [
        ("out_lengths(self, n):", "return n // 2", True),
        ("make_mask(self, n):", "return torch.ones(n)", True),
        ("scored(self, x, lengths):", "return self.out(x.sum(1) / lengths)", False),
        ("scored(self, x, mask):", "return self(x * mask)", False),
    ],
)
def test_lengths_of_a_method_tell_a_network_where_it_runs_its_layers(signature, body, whole):
    text = result(PAD.format(SEQUENCES), "collate_fn=collate", METHODS.format(signature, body)).text
    assert ("divide_batches = False" in text) is whole
