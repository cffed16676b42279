"""What keeps a loop whatever its shape is said before anything is tried, and nothing else is."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.hopeless import check_hopes
from ptmigrate.migrate.lift.recipe import CannotLift
from ptmigrate.migrate.migrate import migrate_text

TRAINER = """
import torch
from base import BaseTrainer


class Trainer(BaseTrainer):
    def train_epoch(self, loader):
        self.model.train()
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
"""
CHECKED = """
import torch


def check_gradients():
    x = torch.ones(2, requires_grad=True)
    x.sum().backward()
    assert x.grad.sum() == 2


"""


def test_a_network_that_another_file_sets():
    result = migrate_text(TRAINER)
    told = [
        (n.line, "`self.model` is set in another file, by `BaseTrainer`" in n.message)
        for n in result.attention
        if n.code == "PTM701"
    ]
    assert result.plan == "loop" and told == [(10, True)]
    with pytest.raises(CannotLift, match="is set elsewhere than in the constructor"):
        check_hopes(Facts(TRAINER.replace("(BaseTrainer)", "")))


def test_a_backward_that_nothing_repeats():
    with pytest.raises(CannotLift, match=r"stands in check_gradients\(\), outside any loop"):
        check_hopes(Facts(CHECKED))
    with pytest.raises(CannotLift, match="stands outside any loop"):
        check_hopes(Facts("import torch\ntorch.ones(2, requires_grad=True).sum().backward()\n"))
    with pytest.raises(CannotLift, match=r"stands in check_gradients\(\), outside any loop"):
        check_hopes(Facts(CHECKED + "def main():\n    check_gradients()\n\n\nmain()\n"))


@pytest.mark.parametrize(
    "text",
    [
        TRAINER + "\n    def configure(self):\n        self.optimizer = torch.optim.Adam(self.model.parameters())\n",
        TRAINER + "\n    def build(self):\n        self.model = torch.nn.Linear(2, 2)\n",
        TRAINER.replace("self.model.train()\n", "pass\n"),  # it may be a method of the base class
        CHECKED + "for _ in range(3):\n    check_gradients()\n",
        CHECKED + "def main():\n    check_gradients()\n\n\nfor _ in range(3):\n    main()\n",
        CHECKED + "def main():\n    return [check_gradients() for _ in range(3)]\n",
        CHECKED + "checks = {'gradients': check_gradients}\n",
        "import torch\nfor x in torch.ones(3, 2, requires_grad=True):\n    x.sum().backward()\n",
    ],
)
def test_what_a_shape_may_mend(text):
    check_hopes(Facts(text))


NAMED = """
import torch
def {0}(loss):
    print(loss.item())
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in torch.utils.data.DataLoader(data, batch_size=4):
        loss = (net(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {0}(loss)
"""


def test_names_that_a_class_takes_for_its_own():
    """Python reads `__report` within `class Net` as `_Net__report`."""
    result = migrate_text(NAMED.format("__report"))
    assert result.plan == "loop" and any("takes `__report`" in n.message for n in result.attention)
    with pytest.raises(CannotLift, match="a name of its own"):
        check_hopes(Facts(NAMED.format("__report")))


@pytest.mark.parametrize("name", ["_report", "__report__", "report"])
def test_other_names_are_nobody_elses(name):
    assert migrate_text(NAMED.format(name)).plan == "module"
