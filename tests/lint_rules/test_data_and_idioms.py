"""PTM5xx and PTM6xx beyond the rules' own examples."""

from __future__ import annotations

import pytest
from checking import found

LOADER = "from torch.utils.data import DataLoader, TensorDataset\nimport torch\n"


def check(code, source, prelude=LOADER):
    return [int(f.split()[1]) for f in found(prelude + source, code)]


@pytest.mark.parametrize(
    ("code", "source"),
    [
        ("PTM501", "DataLoader(d, num_workers=args.workers)\n"),
        ("PTM501", "DataLoader(d, 32, False, None, None, 4)\n"),
        ("PTM501", "data = TensorDataset(x, y)\nDataLoader(data, 32)\n"),
        ("PTM501", "DataLoader(list(zip(x, y)), 32)\n"),
        ("PTM501", "DataLoader(d, *arguments)\n"),
        ("PTM502", "import torch.multiprocessing as mp\nDataLoader(d, num_workers=0)\nmp.spawn(f)\n"),
        ("PTM502", "DataLoader(d, num_workers=8)\nnursery.spawn(f)\n"),
        ("PTM503", "DataLoader(d)\nmodel.cuda()\n"),
        ("PTM503", "for x in DataLoader(d, pin_memory=cuda):\n    model(x.cuda()).backward()\n"),
        ("PTM504", "loader = DataLoader(d, pin_memory=True)\nmodel.to(device)\n"),
        (
            "PTM504",
            "loader = DataLoader(d, pin_memory=True)\nfor x in loader:\n    model(x.to(torch.half)).backward()\n",
        ),
        ("PTM505", "optimizer.zero_grad(args.none)\n"),
    ],
)
def test_data_quiet(code, source):
    assert check(code, source) == []


def test_loaders_of_others():
    assert check("PTM501", "import torch\nfrom dgl.dataloading import DataLoader\nDataLoader(d)\n", "") == []


@pytest.mark.parametrize(
    ("code", "source", "lines"),
    [
        ("PTM501", "torch.utils.data.DataLoader(d)\n", [3]),
        ("PTM501", "from torch.utils.data import DataLoader as Loader\nLoader(d)\n", [4]),
        ("PTM503", "for x in DataLoader(d, pin_memory=False):\n    model(x.cuda()).backward()\n", [3]),
        (
            "PTM504",
            "loader = DataLoader(d, pin_memory=True)\nfor x in loader:\n    x = x.cuda()\n    model(x).backward()\n",
            [5],
        ),
        ("PTM505", "model.zero_grad(False)\n", [3]),
    ],
)
def test_data_found(code, source, lines):
    assert check(code, source) == lines


@pytest.mark.parametrize(
    ("code", "source"),
    [
        ("PTM601", "from tensorflow import Variable\nVariable(x)\n"),
        ("PTM601", "def Variable(x):\n    return x\nVariable(x)\n"),
        ("PTM609", "f(x, volatile=True)\n"),
        ("PTM604", "first = weight.data[0]\n"),
        ("PTM610", "it = iter(a)\ndef f(it):\n    return it.next()\nprefetcher.next()\n"),
        ("PTM604", "loss.data[1]\nloss.data[0] = 1\n"),
        ("PTM602", "from mine import cross_entropy\ncross_entropy(x, y, size_average=True)\n"),
        ("PTM602", "def f(size_average):\n    torch.nn.functional.l1_loss(x, y, size_average=size_average)\n"),
        ("PTM605", "with torch.autocast('cuda'):\n    pass\n"),
        ("PTM606", "torch.normal(x, y)\nx.uniform(0, 1)\nrandom.uniform(0, 1)\n"),
        ("PTM607", "x.softmax(-1)\ntorch.softmax(x, 1)\nF.softmax(x)\n"),
        ("PTM608", "parser.add_argument('--rank')\n"),
    ],
)
def test_idioms_quiet(code, source):
    assert check(code, source, "import torch\n") == []


@pytest.mark.parametrize(
    ("code", "source", "lines"),
    [
        ("PTM601", "from torch import autograd\nx = autograd.Variable(x)\n", [3]),
        ("PTM604", "total += loss_G.mean().data[0]\nerr = errD.data[0]\n", [2, 3]),
        ("PTM602", "torch.nn.MSELoss(reduce=False)\n", [2]),
        ("PTM610", "it = iter(a)\nx = it.next()\ny = iter(b).next()[0]\n", [3, 4]),
        ("PTM605", "@torch.cuda.amp.custom_fwd\ndef forward(ctx, x):\n    pass\n", [2]),
        ("PTM607", "import torch.nn.functional as F\nF.log_softmax(x)\n", [3]),
        ("PTM608", "p.add_argument('--local-rank', type=int)\n", [2]),
    ],
)
def test_idioms_found(code, source, lines):
    assert check(code, source, "import torch\n") == lines


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ("size_average=False", '"sum"'),
        ("size_average=True", '"mean"'),
        ("reduce=False", '"none"'),
        ("reduce=True", '"mean"'),
        ("size_average=False, reduce=False", '"none"'),
        ("size_average=args.average", '"mean" or "sum"'),
    ],
)
def test_what_to_use_instead_of_size_average(arguments, advice):
    from checking import findings

    (finding,) = findings(f"import torch\nloss = torch.nn.MSELoss({arguments})\n", "PTM602")
    assert finding.message.endswith(f"reduction={advice}")
