"""Lengths that a script brings to the CPU, as packing wants them there: all else stays where the network is."""

import ast

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.called_networks import is_network

from tests.migrate.running import check_on_card, check_same

SCRIPT = """\
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 5, 4), torch.randint(1, 6, (16,)), torch.randint(0, 3, (16,)))
loader = DataLoader(data, batch_size=4, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 6, batch_first=True)
        self.out = nn.Linear(6, 3)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.out(self.rnn(packed)[1][0])


def evaluate(model, iterator, criterion):
    total = 0
    model.eval()
    with torch.no_grad():
        for batch in iterator:
            x, lengths, y = batch
            LENGTHS
            out = model(x.to(device), lengths)
            total += criterion(out, y.to(device)).item()
    return total / len(iterator)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net().to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5], device=device))
for epoch in range(2):
    model.train()
    for x, lengths, y in loader:
        x, y = x.to(device), y.to(device)
        LENGTHS
        loss = criterion(model(x, lengths), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    EVALUATED
"""
SPELLED = ["lengths = lengths.cpu()", "lengths = lengths.to('cpu')", "lengths = lengths.long().cpu()"]
EVALUATED = [
    "print(epoch, evaluate(model, loader, criterion))",
    "print(epoch, evaluate(model, loader, criterion) + evaluate(model, loader, criterion))",
]


def script(lengths, evaluated):
    return SCRIPT.replace("LENGTHS", lengths).replace("EVALUATED", evaluated)


@pytest.mark.parametrize("evaluated", EVALUATED, ids=["once", "twice"])
@pytest.mark.parametrize("lengths", SPELLED)
def test_lengths_stay_on_the_cpu_and_nothing_follows_them(tmp_path, lengths, evaluated):
    result = check_on_card(tmp_path, script(lengths, evaluated))
    assert "on_device(iterator, " not in result
    assert "criterion.cpu()" not in result


@pytest.mark.parametrize("evaluated", EVALUATED, ids=["once", "twice"])
def test_one_process_has_the_same_losses(evaluated):
    check_same(script(SPELLED[0], evaluated), "module")


def test_lengths_in_the_call():
    text = script("pass", EVALUATED[0]).replace("model(x, lengths)", "model(x, lengths.cpu())")
    assert "criterion.cpu()" not in check_same(text, "module")


def test_lengths_are_no_network():
    facts = Facts(script(SPELLED[0], EVALUATED[0]))
    assert not any(is_network(facts, n) for n in facts.walk(ast.Name) if n.id == "lengths")


def test_a_network_that_is_made_for_each_batch_is_asked_for_no_place_above():
    own = f"{SPELLED[0]}\n            net = copy.deepcopy(model)\n            net.cpu()"
    text = "import copy\n" + script(SPELLED[0], EVALUATED[0]).replace(SPELLED[0], own, 1)
    text = text.replace("out = model(x.to(device)", "out = net(x").replace("y.to(device)).item()", "y).item()")
    assert "on_device(iterator, net)" not in check_same(text, "module")
