"""A network that a script without devices works with elsewhere: between the epochs, by who calls the loop's function,
or by its object.
"""

import pytest

from tests.migrate.running import check_on_card

FUNCTION = """\
import torch
from torch import nn


def train(model, data):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in data:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    return model


def show(m):
    print(m(torch.ones(2, 4)).tolist())


def evaluate(m, data):
    m.eval()
    for x, y in data:
        print(m(x).argmax(1).tolist())


torch.manual_seed(0)
net = nn.Linear(4, 3)
samples = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,)))
loader = torch.utils.data.DataLoader(samples, 4)
"""
OBJECT = """\
import torch
from torch import nn


class Learner:
    def __init__(self, net, data):
        self.net, self.data = net, data
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def fit(self, n):
        for epoch in range(n):
            for x, y in self.data:
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.net(x), y)
                loss.backward()
                self.optimizer.step()
            print(epoch, loss.item())

    def predict(self, x):
        return self.net(x).argmax(1)

    def score(self, x):
        return self.predict(x).sum().item()


torch.manual_seed(0)
net = nn.Linear(4, 3)
samples = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,)))
loader = torch.utils.data.DataLoader(samples, 4)
learner = Learner(net, loader)
learner.fit(2)
"""
BACK = "back_on_cpu=True"


@pytest.mark.parametrize(
    "calls",
    [
        "train(net, loader)\nprint(net(torch.ones(2, 4)).tolist())",
        "trained = train(net, loader)\nprint(trained(torch.ones(2, 4)).tolist())",
        "train(net, loader)\nshow(net)",
        "def main():\n    train(net, loader)\n    print(net(torch.ones(2, 4)).tolist())\n\n\nmain()",
        "for again in range(2):\n    train(net, loader)\n    print(net(torch.ones(2, 4)).tolist())  # no cuda",
    ],
)
def test_by_who_calls_the_loops_function(tmp_path, calls):
    assert BACK in check_on_card(tmp_path, f"{FUNCTION}{calls}\n")


@pytest.mark.parametrize(
    "calls",
    [
        "train(net, loader)",
        "train(net, loader)\nprint(sum(p.numel() for p in net.parameters()))",
        "train(net, loader)\nevaluate(net, loader)",
        "train(net, loader)\nnet.eval()\nfor x, y in loader:\n    print(net(x).argmax(1).tolist())",
        "net = train(net, loader)\nother = nn.Linear(4, 3)\nprint(other(torch.ones(2, 4)).shape)",
    ],
)
def test_what_gets_the_batches_of_a_loader_is_placed(tmp_path, calls):
    assert BACK not in check_on_card(tmp_path, f"{FUNCTION}{calls}\n")


@pytest.mark.parametrize(
    "calls",
    [
        "print(learner.predict(torch.ones(2, 4)).tolist())",
        "print(learner.score(torch.ones(2, 4)))",
        "print(net(torch.ones(2, 4)).tolist())",
        "print(learner.net(torch.ones(2, 4)).tolist())",
    ],
)
def test_by_way_of_its_object(tmp_path, calls):
    assert BACK in check_on_card(tmp_path, f"{OBJECT}{calls}\n")


@pytest.mark.parametrize(
    "calls",
    ["", "for x, y in loader:\n    print(learner.predict(x).tolist())", "print(learner.net.weight.shape)"],
)
def test_what_its_object_does_with_batches(tmp_path, calls):
    assert BACK not in check_on_card(tmp_path, f"{OBJECT}{calls}\n")


NETWORK = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x)

    def noise(self, n):
        return torch.randn(n, 4)

    def sample(self, n):
        return self.layer(self.noise(n))

    def draw(self):
        return self.layer(torch.ones(2, 4))

    def classify(self, x):
        return self.layer(x).argmax(1)

    def size(self, scale):
        return scale * sum(p.numel() for p in self.parameters())


class Shows:
    def __init__(self, title, model=None):
        self.title, self.size = title, 4
        self.model = model

    def one(self):
        print(self.title, self.model(torch.ones(1, self.size)).tolist())

    def all(self):
        self.one()

    def batches(self, loader):
        for x, y in loader:
            print(self.model(x).argmax(1).tolist())

    def row(self, x):
        print(self.model(x).argmax(1).tolist())

    def rows(self, loader):
        for x, y in loader:
            self.row(x)

    def name(self):
        print(self.title, type(self.model).__name__)


torch.manual_seed(0)
net = Net()
other = nn.Linear(4, 3)
shows, others = Shows("net", net), Shows("other", other)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
samples = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,)))
loader = torch.utils.data.DataLoader(samples, 4)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
"""


@pytest.mark.parametrize(
    "calls",
    [
        "print(net.draw().tolist())",
        "print(net.sample(2).tolist())",
        "print(net.classify(torch.ones(2, 4)).tolist())",
        "def show(m):\n    print(m.classify(torch.ones(2, 4)).tolist())\n\n\nshow(net)",
        "shows.one()",
        "shows.all()",
        "s = Shows(model=net, title='mine')\ns.one()",
    ],
)
def test_by_a_method_of_it_or_of_what_holds_it(tmp_path, calls):
    assert BACK in check_on_card(tmp_path, f"{NETWORK}{calls}\n")


@pytest.mark.parametrize(
    "calls",
    [
        "print(net.size(2))",
        "for x, y in loader:\n    print(net.classify(x).tolist())",
        "shows.name()",
        "shows.batches(loader)",
        "shows.rows(loader)",
        "others.one()",
        "others.all()",
        "Shows('net', other).name()",
    ],
)
def test_and_what_nothing_unmoved_meets_there(tmp_path, calls):
    assert BACK not in check_on_card(tmp_path, f"{NETWORK}{calls}\n")


@pytest.mark.parametrize(
    ("call", "stays"),
    [
        ("print(net.draw().tolist())", True),
        ("shows.one()", True),
        ("shows.all()", True),
        ("shows.row(torch.ones(2, 4))", True),
        ("others.one()", True),  # what the loop has is placed, with the network that it holds
        ("print(net.size(2))", False),
        ("shows.name()", False),
        ("shows.batches(loader)", False),
        ("others.name()", False),
    ],
)
def test_between_the_epochs_it_stays_on_the_cpu(tmp_path, call, stays):
    shown = "    print(epoch, loss.item())\n"
    text = check_on_card(tmp_path, NETWORK.replace(shown, f"{shown}    {call}\n"))
    assert ('accelerator="cpu"' in text) is stays and BACK not in text
