"""Comments go with the statement that they stand at, wherever they stand at it; none goes twice."""

import re

import pytest

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
loader = DataLoader(torch.randn(8, 4), batch_size=4)
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
# below the optimizer

# between

n = 0

def train(epoch):
    global n
    # above total
    total = 0
    # below total

    for x in loader:
        # first in the loop
        n += 1
        # below n

        # a paragraph

        # a second one
        # of two lines

        loss = (net(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        # above if
        if n > 3:
            # first in if
            print(n)
            # end of if
        # end of the loop
    # after the loop
    print(f'{total:.5f}')
    # end of the function

# above the epochs
for epoch in range(2):
    train(epoch)
    print(epoch)
    # end of the epochs
# after the epochs
print(n)
"""


@pytest.fixture(scope="module")
def result():
    return check_same(TEXT, "module")


def test_none_is_lost_and_none_goes_twice(result):
    for comment in re.findall("# .*", TEXT):
        assert len(re.findall(f"{comment}$", result, re.MULTILINE)) == 1, comment


@pytest.mark.parametrize(
    "lines",
    [
        "        # below the optimizer\n        return optimizer\n",
        "        self.total = 0\n        # below total\n\n    def training_step",
        "        self.n += 1\n        # below n\n\n        # a paragraph\n\n        # a second one\n        # of two",
        "            self.print(self.n)\n            # end of if\n        # end of the loop\n        return loss\n",
        "        # end of the function\n        self.print(epoch)\n        # end of the epochs\n\n",
        "\n# above the epochs\ntrainer = ",
        "\n# after the epochs\nrank_zero_print(n)\n",
    ],
)
def test_they_stand_where_they_stood(result, lines):
    assert lines in result


def test_of_the_script_that_stays_they_stay(result):
    assert "\n# between\n\nn = 0\n" in result


@pytest.mark.parametrize(
    "end",
    [
        "loss.backward()\n        optimizer.step()",
        "loss.backward(); optimizer.step()",
        "loss.backward()\n        optimizer.step()\n        del loss",
    ],
)
def test_those_below_what_the_trainer_does_itself_stay(end):
    head = TEXT.partition("        loss.backward()\n")[0]
    text = f"{head}        {end}\n\n        # net.eval()\n\n        # end\n\nfor epoch in range(2):\n    train(epoch)\n"
    assert re.search(r"\n        # net.eval\(\)\n        # end\n        return ", check_same(text, "module"))


CALLED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def train(loader, model, optimizer):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def test(loader, model):
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.mse_loss(model(x), y).item()
    return total

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    # train for one epoch
    train(loader, model, optimizer)

    # evaluate on the validation set:
    # the splits do not overlap
    loss = test(loader, model)
    print(epoch, loss)
"""
PHASES = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loaders = {p: DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=4) for p in ("train", "val")}
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for phase in ["train", "val"]:
        total = 0.0
        for x, y in loaders[phase]:
            # the targets are small
            y = y * 0.1

            # y = y.clamp(-1, 1)
            # x = x.clamp(-1, 1)

            with torch.set_grad_enabled(phase == "train"):
                loss = nn.functional.mse_loss(model(x), y)

                # clipped?

                x = x + 0
                if phase == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()

            total += loss.item()
        print(phase, total)
"""


def test_what_stands_above_the_call_of_a_pass_stands_in_its_step():
    text = check_same(CALLED, "module")
    step = text[text.index("def training_step") : text.index("def validation_step")]
    evaluation = text[text.index("def validation_step") :]
    assert "        # train for one epoch\n" in step and text.count("# train for one epoch") == 1
    assert "        # evaluate on the validation set:\n        # the splits do not overlap\n" in evaluation


def test_comments_between_the_statements_of_a_phase_stay():
    text = check_same(PHASES, "module")
    for comment in ("the targets are small", "y = y.clamp(-1, 1)", "x = x.clamp(-1, 1)", "clipped?"):
        assert text.count(f"# {comment}\n") == 2
    assert "        y = y * 0.1\n\n        # y = y.clamp" in text


LONE = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def pair():
    return torch.ones(1, 4), torch.ones(1, 3)

def train(x, y):
    net.zero_grad()
    out = net(x)
    loss = (out - y).pow(2).sum()
    loss.backward()
    optimizer.step()
    return out, loss.item()

for epoch in range(3):
    # a pair of the training set
    x, y = pair()
    output, loss = train(x, y)
    print(epoch, loss, output.sum().item())
"""


def test_of_a_lone_loop_they_stand_once_and_no_name_is_given_itself():
    text = check_same(LONE, "module")
    assert text.count("# a pair of the training set") == 1
    assert "output, loss = " not in text and "self.output = self.output" not in text
