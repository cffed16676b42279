"""The tensors of a whole data set: nothing places them, so whoever moves them does still; batches are placed."""

import ast

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.facts.whole_data import is_whole_data
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.running import check_on_card

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def evaluate(model, x, y):
    with torch.no_grad():
        return nn.functional.mse_loss(model(x.to(device)), y.to(device)).item()


def train(data, model):
    loader = DataLoader(data, batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for step, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 2 == 1:
                USED


torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 3), torch.randn(16, 1))
model = nn.Linear(3, 1).to(device)
train(data, model)
"""
WHOLE = [
    "print(evaluate(model, *data.tensors))",
    "print(evaluate(model, data.tensors[0], data.tensors[1]))",
    "print(evaluate(model, data.tensors[0][:4], y=data.tensors[1][:4]))",
    "a, b = data.tensors\n                print(evaluate(model, a, b))",
    "print(evaluate(model, *loader.dataset.tensors))",
]


@pytest.mark.parametrize("used", WHOLE)
def test_the_moves_of_whole_data_stay(tmp_path, used):
    """The network on the card was evaluated on what is on the CPU."""
    result = check_on_card(tmp_path, SCRIPT.replace("USED", used))
    f = result[result.index("def evaluate") : result.index("class ")]
    assert f.count(".to(") == 2, f


@pytest.mark.parametrize("used", ["print(evaluate(model, x, y))", "print(evaluate(model, *(x, y)))"])
def test_those_of_batches_go(used):
    text = migrate_text(SCRIPT.replace("USED", used), Options()).text
    assert ".to(" not in text


PARTS = """\
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

def report(model, held):
    print(model(held.tensors))

def train(data, model, other, x):
    loader = DataLoader(data, sampler=RandomSampler(data))
    kept = TensorDataset(x, x)
    report(model, kept)
    for batch in loader:
        model({part})
"""


@pytest.mark.parametrize(
    "part", ["data.tensors", "*data.tensors", "data.tensors[0]", "kept.tensors", "test_set.tensors"]
)
def test_what_is_of_whole_data(part):
    assert _is_whole(part)


@pytest.mark.parametrize(
    "part", ["batch.tensors", "batch.tensors[0]", "other.tensors", "data.mean", "x.tensors", "data", "*batch"]
)
def test_what_is_not(part):
    assert not _is_whole(part)


def test_of_what_a_function_is_given():
    facts = Facts(PARTS.replace("{part}", "batch"))
    (held,) = facts.attributes["tensors"]
    assert is_whole_data(facts, held)


def _is_whole(part: str) -> bool:
    facts = Facts(PARTS.replace("{part}", part))
    calls = [c for c in facts.walk(ast.Call) if isinstance(c.func, ast.Name) and c.func.id == "model"]
    last = max(calls, key=lambda c: c.lineno)
    return is_whole_data(facts, last.args[0])
