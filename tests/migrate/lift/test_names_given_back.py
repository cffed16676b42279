"""Parameters that the lift names anew to know what calls give have their names again where a function stays."""

import pytest

from tests.migrate.running import check_same

SCRIPT = """
import torch
from torch import nn


class Data:
    def batches(self, x, y, size):
        for i in range(0, len(x), size):
            yield x[i : i + size], y[i : i + size]


def evaluate(data, x, y, model, size=4):
    model.eval()
    total = 0.0
    for x, y in data.batches(x, y, size):
        total += (model(x) - y).pow(2).sum().item()
    return total


def train(data, x, y, model, size=4):
    model.train()
    for x, y in data.batches(x, y, size):
        model.zero_grad()
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()
    return model


torch.manual_seed(0)
data, xs, ys = Data(), torch.randn(16, 4), torch.randn(16, 1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    model = train(data, xs, ys, model)
    print(epoch, f"{EVALUATE:.5f}")
"""
CALLS = ["evaluate(data, xs, ys, model)", "evaluate(data, y=ys, x=xs, model=model)", "evaluate(data, *[xs, ys], model)"]


@pytest.mark.parametrize("call", CALLS)
def test_an_evaluation_that_stays_reads_as_it_did(call):
    result = check_same(SCRIPT.replace("EVALUATE", call), "module")
    assert "def evaluate(data, x, y, model, size=4):\n    model.eval()\n" in result
    assert "_given" not in result.partition("    def train_dataloader")[0]


def test_a_name_that_the_script_has_itself_stays():
    own = SCRIPT.replace(
        "data, x, y, model, size=4):\n    model.eval()", "data, x_given, y, model, size=4):\n    x = x_given"
    )
    result = check_same(own.replace("EVALUATE", CALLS[0]), "module")
    assert "def evaluate(data, x_given, y, model, size=4):\n    x = x_given\n" in result


def test_what_a_pass_gives_back_is_not_given_to_itself():
    assert "self.model = self.model" not in check_same(SCRIPT.replace("EVALUATE", CALLS[0]), "module")
