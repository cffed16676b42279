"""Which calls of backward() a file trains by: none of a class of its own that differentiates nothing."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.running import check_same, on_one_and_two

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tape:
    def __init__(self, loss=None):
        self.place, self.loss = 0, loss

    def backward(self):
        BODY


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(40, 3), torch.randn(40, 1)), batch_size=8)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
tape = Tape()
for epoch in range(2):
    for x, y in loader:
        loss = (net(x) - y).pow(2).mean()
        opt.zero_grad()
        CALL
        opt.step()
    print(epoch, loss.item(), tape.place)
"""


def source(body, call):
    return SOURCE.replace("BODY", body).replace("CALL", call)


KEPT = "the loop is kept: `Tape(loss).backward()` takes the gradients itself"
WOUND = source("self.place -= 1", "loss.backward()\n        tape.backward()")


def test_a_tape_is_wound_back_on_every_process(tmp_path):
    result = check_same(WOUND, "module")
    assert "self.tape.backward()" in result and "manual_backward" not in result
    on_one_and_two(tmp_path, WOUND, result)


def test_it_is_wound_back_in_a_loop_that_is_kept():
    text = migrate_text(WOUND, Options(plan="loop")).text
    assert "        tape.backward()\n" in text and "runtime.backward(loss)" in text


@pytest.mark.parametrize(
    ("body", "imported"),
    [
        ("self.loss.backward()", ""),
        ("torch.autograd.backward(self.loss)", ""),
        ("run(self.loss)", "from others import run\n"),
        ("others.run(self.loss)", "import others\n"),
    ],
)
def test_what_differentiates_is_no_tape(body, imported):
    result = migrate_text(imported + source(body, "Tape(loss).backward()"))
    assert [n.message for n in result.attention if n.code == "PTM701"] == [KEPT]
    assert "        Tape(loss).backward()\n" in result.text


BY_HAND = """

class Logistic:
    def __init__(self):
        self.weight = torch.zeros(3, 1)

    def backward(self, x, y):
        return x.t() @ (y - x @ self.weight)

    def train(self, x, y):
        for epoch in range(2):
            self.weight += 0.01 * self.backward(x, y)


logistic = Logistic()
logistic.train(torch.randn(8, 3), torch.randn(8, 1))
print(logistic.weight.sum().item())
torch.manual_seed(0)
"""


def test_gradients_by_hand_beside_a_training_are_none_of_it():
    """Its loop became a second Module, which called manual_backward() of the object."""
    text = source("self.place -= 1", "loss.backward()").replace("torch.manual_seed(0)\n", BY_HAND, 1)
    result = check_same(text, "module")
    assert "self.weight += 0.01 * self.backward(x, y)" in result and result.count("(Module)") == 1
