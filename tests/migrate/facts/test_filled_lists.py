"""Lists that a function fills itself: the tensors that it makes stay moved, and what it is given is placed."""

import ast

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import Options, migrate_text

ROWS = """\
import torch

def rows_of(rows, given, model):
    {fill}
    {use}
    return xs
"""
MADE = [
    "xs = []\n    for r in rows:\n        xs.append(torch.tensor(r))",
    "xs = list()\n    for r in rows:\n        t = torch.tensor(r)\n        xs.append(t)",
    "xs, n = [], 0\n    xs.insert(0, torch.tensor(rows))",
    "xs = []\n    xs += [torch.tensor(r) for r in rows]",
    "xs = []\n    xs.extend(torch.tensor(r) for r in rows)",
    "xs = [torch.tensor(r) for r in rows]",
    "xs = [None] * len(rows)\n    for i, r in enumerate(rows):\n        xs[i] = torch.tensor(r)",
    "xs = [torch.zeros(3)] * len(rows)",
    "xs = []\n    xs.append((torch.tensor(rows), 3))",
    "xs = []\n    xs.append(given)\n    xs.append(torch.tensor(rows))",
    "ys = [torch.tensor(rows)]\n    xs = []\n    xs.append(ys[0])",
]
GIVEN = [
    "xs = []\n    for g in given:\n        xs.append(g)",
    "xs = []\n    xs.append(model(given))",
    "xs = [given] * 3",
    "xs = []\n    xs += given",
    "xs = []\n    xs.append(given)\n    xs.append(xs[-1])",
    "xs, ys = [given], [given]\n    xs.append(ys[-1])\n    ys.append(xs[-1])",
    "xs = given\n    xs[0] = given[1]",
]
USES = [
    "xs[0] = xs[0].cuda()",
    "xs = [x.cuda() for x in xs]",
    "return torch.stack(xs).cuda()",
    "for i in range(len(xs)):\n        xs[i] = xs[i].cuda()",
]
OF_KEYS = ["xs['a'] = xs['a'].cuda()", "xs = {k: x.cuda() for k, x in xs.items()}"]


def is_placed(fill: str, use: str) -> bool:
    facts = Facts(ROWS.replace("{fill}", fill).replace("{use}", use))
    (move,) = facts.calls_of("cuda")
    assert isinstance(move.func, ast.Attribute)
    return facts.placed.by_runtime(move.func.value)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("fill", MADE)
def test_nothing_places_what_is_made(fill, use):
    assert not is_placed(fill, use)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("fill", GIVEN)
def test_what_is_given_is_placed(fill, use):
    assert is_placed(fill, use)


@pytest.mark.parametrize("use", OF_KEYS)
@pytest.mark.parametrize(
    "fill, placed",
    [
        ("xs = {}\n    xs['a'] = torch.tensor(rows)\n    xs['n'] = 3", False),
        ("xs = dict()\n    xs['a'] = torch.tensor(rows)", False),
        ("xs = {'a': torch.tensor(rows)}", False),
        ("xs = {}\n    xs['a'] = given\n    xs['b'] = torch.tensor(rows)", True),
        ("xs = {'a': model(given), 'b': torch.zeros(3)}", True),
    ],
)
def test_all_of_a_dictionary_is_to_be_made(fill, placed, use):
    assert is_placed(fill, use) is placed


def test_a_parameter_is_what_it_is_given():
    text = "import torch\n\ndef f(xs):\n    xs.append(torch.zeros(3))\n    return [x.cuda() for x in xs]\n"
    facts = Facts(text)
    (move,) = facts.calls_of("cuda")
    assert facts.placed.by_runtime(move.func.value)


SCRIPT = """\
import torch
from torch import nn

def batch_of(rows):
    word = torch.tensor([r[0] for r in rows])
    parts = []
    for k in range(2):
        parts.append(torch.tensor([r[1][k] for r in rows]))
    {inside}
    return word, parts

def train(rows):
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for b in range(4):
            word, parts = batch_of(rows[b * 8 : b * 8 + 8])
            {outside}
            loss = model(word, parts).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

train(read())
"""


@pytest.mark.parametrize("parts", ["[p.cuda() for p in parts]", "[parts[0].cuda(), parts[1].cuda()]"])
@pytest.mark.parametrize("place", ["inside", "outside"])
def test_parts_go_where_the_others_do(place, parts):
    """The words were on the card, and their features on the CPU, where an embedding fails."""
    other = "outside" if place == "inside" else "inside"
    moves = f"word, parts = word.cuda(), {parts}"
    text = migrate_text(SCRIPT.replace(f"{{{place}}}", moves).replace(f"{{{other}}}", "pass"), Options()).text
    assert "(Trainer" not in text and "Trainer(" in text
    assert text.count(".to(") == 1 + moves.count("p.cuda") + moves.count("].cuda"), text
