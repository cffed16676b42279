"""What is done after the optimizer's step by an object that holds the model is done after it. Run before and after."""

import pytest

from tests.migrate.lift.test_same_run import HEAD
from tests.migrate.running import check_same

TEXT = (
    HEAD
    + """
import copy

class Average:
    def __init__(self, net):
        self.net = net
        self.slow = copy.deepcopy(net)

    def update(self):
        for a, b in zip(self.slow.parameters(), self.net.parameters()):
            a.data.mul_(0.5).add_(b.data, alpha=0.5)

class Meter:
    def __init__(self):
        self.sum, self.n = 0.0, 0

    def update(self, value):
        self.sum += value
        self.n += 1

class Learner:
    def __init__(self, net):
        self.net, self.slow = net, copy.deepcopy(net)
        self.meter, self.average = Meter(), Average(net)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def follow(self):
        self.pull(0.5)

    def pull(self, by):
        for a, b in zip(self.slow.parameters(), self.net.parameters()):
            a.data.mul_(by).add_(b.data, alpha=by)

    def fit(self):
        for epoch in range(2):
            for x, y in train_loader:
                loss = criterion(self.net(x), y) + (self.slow(x) - self.net(x)).pow(2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                {done}

Learner(model).fit()
"""
)
PLAIN = (
    TEXT.split("class Learner")[0]
    + """
average = Average(model)
meter = Meter()
for epoch in range(2):
    for x, y in train_loader:
        loss = criterion(model(x), y) + average.slow(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {done}
"""
)


@pytest.mark.parametrize("done", ["self.follow()", "self.pull(0.5)", "self.average.update()"])
def test_a_method_that_reads_the_model_keeps_its_place(done):
    check_same(TEXT.format(done=done), "manual")


def test_an_object_made_with_the_model_keeps_its_place():
    check_same(PLAIN.format(done="average.update()"), "manual")


def test_a_method_that_reads_no_model_is_no_reason():
    check_same(TEXT.format(done="print(loss.item())"), "module")
