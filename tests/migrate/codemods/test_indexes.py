"""PTM114: what a batch gives as indexes of arrays, and of tensors that stay on the CPU."""

import pytest
from helpers import check, check_unchanged

HEAD = """import numpy as np
import torch
from torch.utils.data import DataLoader
train_loader = DataLoader(data)
kept, weights = torch.zeros(9), np.ones(9)
"""
LOOP = HEAD + "for x, y, i in train_loader:\n    x = x.cuda()\n    loss = model(x)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("kept[i] = loss.detach().cpu()", "kept[i.cpu()] = loss.detach().cpu()"),
        ("kept[i] += loss.detach().cpu()", "kept[i.cpu()] += loss.detach().cpu()"),
        ("kept[i.view(-1), 0] = loss.data.cpu()", "kept[i.view(-1).cpu(), 0] = loss.data.cpu()"),
        ("kept[i, y] = loss.detach().to('cpu')", "kept[i.cpu(), y.cpu()] = loss.detach().to('cpu')"),
        ("old = kept[i]\n    kept[i] = loss.data.cpu()", "old = kept[i.cpu()]\n    kept[i.cpu()] = loss.data.cpu()"),
        ("w = weights[i]", "w = weights[i.cpu()]"),
        ("weights[i] = 2.0", "weights[i.cpu()] = 2.0"),
        ("w = torch.from_numpy(weights[i, :])", "w = torch.from_numpy(weights[i.cpu(), :])"),
    ],
)
def test_they_are_brought_there(before, after):
    check(LOOP + f"    {before}\n", LOOP + f"    {after}\n", select="PTM114")


@pytest.mark.parametrize(
    "step",
    [
        "kept[i] = loss.detach()",
        "kept[x] = loss.detach().cpu()",
        "kept[3] = loss.detach().cpu()[0]",
        "kept[:4] = loss.detach().cpu()",
        "kept[i.cpu()] = loss.detach().cpu()",
        "kept[i.tolist()] = loss.detach().cpu()",
        "w = weights[0]",
        "w = weights[i.tolist()]",
        "w = x[i]",
        "w = kept[i]",
        "n = int(i[0])\n    w = weights[n]",
    ],
)
def test_unchanged(step):
    check_unchanged(LOOP + f"    {step}\n", select="PTM114")


@pytest.mark.parametrize(
    "made", ["found = {}", "found = dict(a=1)", "names, found = [], defaultdict(list)", "found = {k: 0 for k in keys}"]
)
def test_the_keys_of_a_dictionary_may_be_names_of_files(made):
    text = LOOP.replace("train_loader = ", f"{made}\ntrain_loader = ")
    check_unchanged(text + "    found[i] = loss.detach().cpu()\n", select="PTM114")


NUMBERS = [
    "for i, (x, y) in enumerate(train_loader):",
    "bar = tqdm(enumerate(train_loader))\nfor i, (x, y) in bar:",
    "for i, (x, y) in tqdm(enumerate(train_loader), total=3):",
    "counted = enumerate(train_loader, 1)\nfor i, (x, y) in counted:",
    "for i, (x, y) in zip(range(9), train_loader):",
    "for (x, y), i in zip(train_loader, [3, 4]):",
    "steps = ((k, b) for k, b in enumerate(train_loader))\nfor i, (x, y) in steps:",
]


@pytest.mark.parametrize("loop", NUMBERS)
def test_unchanged_where_it_is_a_number(loop):
    step = "\n    x = x.cuda()\n    loss = model(x)\n    weights[i] = 1.0\n    kept[i] = loss.cpu()\n"
    check_unchanged(HEAD + loop + step, select="PTM114")


def test_what_the_script_collates_itself_may_be_a_list():
    before = LOOP.replace("(data)", "(data, collate_fn=mine)") + "    weights[i] = 1.0\n"
    check(before, before.replace("[i]", '[torch.as_tensor(i, device="cpu")]'), select="PTM114")


def test_unchanged_out_of_loops_over_batches():
    check_unchanged(HEAD + "def f(i):\n    kept[i] = net(i).cpu()\n    return weights[i]\n", select="PTM114")
