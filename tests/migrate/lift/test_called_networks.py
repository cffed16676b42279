"""Comprehensions and loops that give batches to a network by another name: these go where the model is, too."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,)))
train_loader, test_loader = DataLoader(data, batch_size=4), DataLoader(data, batch_size=8)
several = False
DEFINED


def run(epochs=2):
    net = nn.Linear(4, 3)
    NAMED
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(epochs):
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            found = FOUND
        print(loss.item(), found)


run()
"""
HITS = "[int((raw(x).argmax(1) == y).sum()) for x, y in test_loader]"
RIGHT = "def right(f, held):\n    return sum(int((f(x).argmax(1) == y).sum()) for x, y in held)"
IN_A_LOOP = """\
def right(f, held):
    n = 0
    for x, y in held:
        n += int((f(x).argmax(1) == y).sum())
    return n
"""
GIVEN = [
    ("", "raw = net", HITS),
    ("", "raw = net.module if several else net", HITS),
    ("", "raw = net.eval()", HITS),
    ("", "raw = None; raw = net; raw = raw.float()", HITS),
    ("", "raw = torch.compile(net) if several else net", HITS),
    ("", "raw = net", "[int((raw(x).argmax(1).cpu() == y).sum()) for x, y in test_loader]"),
    (RIGHT, "pass", "right(net, test_loader)"),
    (IN_A_LOOP, "raw = net", "right(raw, test_loader)"),
    (RIGHT, "raw = net", "right(raw, test_loader), right(net, train_loader)"),
]


def script(defined, named, found):
    return TEXT.replace("DEFINED", defined).replace("NAMED", named).replace("FOUND", found)


@pytest.mark.parametrize(("defined", "named", "found"), GIVEN)
def test_another_name_of_the_network(tmp_path, defined, named, found):
    assert "in on_device(" in check_on_card(tmp_path, script(defined, named, found))


OTHER = "def top(x):\n    return x.argmax(1)"
STAY = [
    (OTHER, "raw = top", HITS.replace(".argmax(1)", "")),
    ("", "raw = torch.sigmoid", HITS),
    ("", "raw = lambda x: x", HITS),
    ("", "raw = nn.Flatten()", HITS),
    ("", "raw = net", "[raw.weight.sum().item() for x, y in test_loader]"),
    ("", "raw = net", "[[raw(x) for x in rows.split(2)] and 0 for rows in ()]"),
    (f"{OTHER}\n{IN_A_LOOP}", "pass", "right(top, test_loader)"),
    (f"{OTHER}\n{RIGHT}", "pass", "right(top, test_loader)"),
    (f"{OTHER}\n{RIGHT}", "pass", "right(top, test_loader), right(net, test_loader)"),
]


@pytest.mark.parametrize(("defined", "named", "found"), STAY)
def test_what_is_no_network_is_given_batches_as_they_are(defined, named, found):
    result = migrate_text(script(defined, named, found))
    assert result.plan == "module" and "on_device" not in result.text


STEPS = """\
class Steps(nn.Module):
    def measure(self, batch):
        x, y = batch
        return (CALL.argmax(1) == y).sum().item()

class Net(Steps):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x)

class Plain:
    def __call__(self, x):
        return x

    def measure(self, batch):
        return CALL.argmax(1)[0].item()

def right(f, held):
    return [f.measure(batch) for batch in held]
"""


@pytest.mark.parametrize("call", ["self(x)", "self.forward(x)"])
def test_a_method_of_a_network_that_calls_itself(tmp_path, call):
    text = script(STEPS.split("class Plain")[0].replace("CALL", call) + "def right" + STEPS.split("def right")[1],
                  "net = Net()", "right(net, test_loader)")  # fmt: skip
    assert "for batch in on_device(held)" in check_on_card(tmp_path, text)


def test_a_method_of_a_plain_object_that_calls_itself():
    plain = "class Plain" + STEPS.split("class Plain")[1].replace("CALL", "self(batch[0])")
    result = migrate_text(script(plain, "plain = Plain()", "right(plain, test_loader)"))
    assert result.plan == "module" and "on_device" not in result.text
