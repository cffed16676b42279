"""Batches that a training loop cuts of what its function is given: their moves are the script's own."""

import ast

import pytest
from ptmigrate.migrate.facts.by_hand import is_cut_by_hand
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import Options, migrate_text

SCRIPT = """\
import torch
from data import load
from torch import nn

device = torch.device("cuda")


def train(net, X, Y):
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(2):
        order = torch.randperm(X.shape[0])
        for i in range(0, X.shape[0], 8):
            {cut}
            loss = (net(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main():
    X, Y = load()
    net = nn.Linear(4, 4).to(device)
    train(net, X, Y)


main()
"""
CUTS = [
    "x, y = X[i : i + 8].to(device), Y[i : i + 8].to(device)",
    "x, y = X[order[i : i + 8]], Y[order[i : i + 8]]\n            x, y = x.to(device), y.to(device)",
    "part = order[i : i + 8]\n            x, y = X[part].to(device), Y[part].to(device)",
]
OF_CLASS = """\
import torch
from torch import nn


class Fit:
    def __init__(self, net, X):
        self.net = net
        self.X = X
        self.optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def train(self):
        for epoch in range(2):
            for i in range(0, 32, 8):
                x = self.X[i : i + 8].cuda()
                loss = self.net(x).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
"""


def migrated(text: str) -> str:
    return migrate_text(text, Options()).text


@pytest.mark.parametrize("cut", CUTS)
def test_the_moves_stay(cut):
    """The network on the card met a batch on the CPU."""
    listed = SCRIPT.replace("range(0, X.shape[0], 8)", "[*range(0, X.shape[0], 8)]")
    text = migrated(listed.replace("{cut}", cut))
    assert text.count(".to(self.device)") == 2 and "X.device" not in text
    text = migrate_text(SCRIPT.replace("{cut}", cut), Options(plan="loop")).text
    assert text.count(".to(device)") == 3 and "X.device" not in text


@pytest.mark.parametrize("cut", CUTS)
def test_those_of_batches_are_the_trainers(cut):
    text = migrated(SCRIPT.replace("{cut}", cut))
    assert "Batches(self.X, self.Y, at=" in text and ".to(" not in text


ONE_LINE = OF_CLASS.replace("self.net = net\n        self.X = X", "self.net, self.X = net, X")


@pytest.mark.parametrize("source", [OF_CLASS, ONE_LINE], ids=["two lines", "one"])
def test_of_what_an_object_keeps_too(source):
    text = migrated(source)
    assert "= self.X[i : i + 8].cuda()" in text or ".X[i : i + 8].to(" in text


@pytest.mark.parametrize(
    "cut",
    [
        "x, y = X.to(device), Y.to(device)",
        "x, y = X[0].to(device), Y[0].to(device)",
        "x, y = net(X[i]).to(device), Y",
    ],
)
def test_what_the_loop_does_not_choose_is_as_it_was(cut):
    assert "x.to(" not in migrated(SCRIPT.replace("{cut}", cut)).replace("\n", "")


RUN = """\
import torch
from torch import nn


class Fit:
    def __init__(self, net, opt, x):
        self.net, self.opt, self.x = net, opt, x

    def run(self, y, n):
        for i in range(n):
            loss = self.net({part}).mean()
            loss.backward()
            self.opt.step()
"""


@pytest.mark.parametrize(
    "part, edit, cut",
    [
        ("y[i]", ("", ""), True),
        ("self.x[i]", ("", ""), True),
        ("y[0]", ("", ""), False),
        ("self.x[n]", ("", ""), False),
        ("y[i]", ("for i", "y = y.float()\n        for i"), False),
        ("self.x[i]", ("for i", "self.x = self.net(y)\n        for i"), False),
        ("self.z[i]", ("", ""), False),
        ("y[i]", ("Fit:", "Fit(nn.Module):"), False),
        ("self.x[i]", ("Fit:", "Fit(nn.Module):"), False),
        ("y[i]", ("            loss.backward()\n            self.opt.step()\n", ""), False),
    ],
)
def test_what_is_cut_by_hand(part, edit, cut):
    facts = Facts(RUN.replace("{part}", part).replace(*edit))
    (node,) = (n for n in facts.walk(ast.Subscript) if ast.unparse(n) == part)
    assert is_cut_by_hand(facts, node) is cut


GIVEN = """\
import torch

def train(net, optimizer, x):
    for i in range(x.shape[0]):
        loss = net(x[i].cuda()).mean()
        loss.backward()
        optimizer.step()

for epoch in range(2):
    for batch in loader:
        train(net, optimizer, {given})
"""


@pytest.mark.parametrize(
    "given, placed", [("batch", True), ("batch[0]", True), ("batch['x'][:4]", True), ("torch.ones(4, 2)", False)]
)
def test_parts_of_what_the_callers_have_are_where_that_is(given, placed):
    facts = Facts(GIVEN.replace("{given}", given))
    part = next(n for n in facts.walk(ast.Subscript) if ast.unparse(n) == "x[i]")
    assert facts.placed.by_runtime(part) is placed
