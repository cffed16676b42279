"""The object that has the loop: what its constructor makes, by itself or by a method, is the Module's own."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

SOLVER = """
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Solver:
    def __init__(self, loader, lr):
        self.loader, self.lr = loader, lr
        self.device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
        self.build_model()

    def build_model(self):
        self.net = torch.nn.Linear(4, 2)
        self.net.to(self.device)
        self.make_optimizer()

    def make_optimizer(self):
        self.opt = torch.optim.Adam(self.net.parameters(), self.lr)

    def train(self):
        for epoch in range(3):
            self.net.train()
            for x, y in self.loader:
                x, y = x.to(self.device), y.to(self.device)
                loss = F.cross_entropy(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            print(f'{epoch} {loss.item():.6f}')


x = torch.randn(30, 4)
solver = Solver(DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8, shuffle=True), 0.01)
solver.train()
"""


def test_a_network_that_a_method_of_the_constructor_makes():
    result = check_same(SOLVER, "module")
    assert "self.net = net" in result and "divide_batches = False" not in result


def test_a_constructor_that_makes_it_in_one_of_two_ways():
    ways = "if lr > 1:\n            self.build_model()\n        else:\n            self.build_model()\n"
    assert "self.net = net" in check_same(SOLVER.replace("self.build_model()\n", ways, 1), "module")


OF_A_BASE = SOLVER.replace(
    "torch.manual_seed(0)\n",
    """torch.manual_seed(0)
import sys, types
sys.modules['base_of_solvers'] = types.ModuleType('base_of_solvers')
exec('''import torch

class Base:
    def __init__(self):
        self.model = torch.nn.Linear(4, 2)
''', sys.modules['base_of_solvers'].__dict__)
from base_of_solvers import Base
""",
).replace("class Solver:", "class Solver(Base):")
OF_A_BASE = OF_A_BASE.replace(
    "        self.loader, self.lr", "        super().__init__()\n        self.loader, self.lr"
)
OF_A_BASE = OF_A_BASE.replace("        self.net = torch.nn.Linear(4, 2)\n        self.net.to(self.device)\n", "")
OF_A_BASE = OF_A_BASE.replace("self.net", "self.model")


def test_a_network_that_a_base_class_of_another_file_makes():
    result = check_same(OF_A_BASE, "module")
    assert "self.model = model" in result and "owner.model" not in result


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            print(f", "            self.model = self.model\n            print(f"),  # made anew
        ("class Solver(Base)", "class Base:\n    pass\n\n\nclass Solver(Base)"),  # of this file, which does not make it
        ("self.model.parameters()", "list(made(self))"),  # nothing shows that it is one
    ],
)
def test_what_a_base_class_may_not_have_made_stays_the_owners(old, new):
    assert old in OF_A_BASE
    assert "self.model = model\n" not in migrate_text(OF_A_BASE.replace(old, new)).text


# made in a method that the run begins with, under placeholders, and with a pass that is named like the switch of modes
LATE = """
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Solver(object):
    def __init__(self, loader, epochs):
        self.net = None
        self.opt = None
        self.loader, self.epochs = loader, epochs

    def build_model(self):
        self.net = torch.nn.Linear(4, 2).cuda() if torch.cuda.is_available() else torch.nn.Linear(4, 2)
        self.opt = torch.optim.Adam(self.net.parameters(), 0.01)

    def train(self):
        self.net.train()
        total = 0
        for x, y in self.loader:
            loss = F.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item()
        print(f'{total:.4f}')

    def run(self):
        self.build_model()
        for epoch in range(self.epochs):
            self.train()


torch.manual_seed(0)
x = torch.randn(30, 4)
solver = Solver(DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8, shuffle=True), 3)
solver.run()
print(f'{solver.net.weight.sum().item():.6f}')
"""


def test_a_network_that_a_method_makes_above_the_loop():
    result = check_same(LATE, "module")
    assert "Trainer(max_epochs=self.epochs)" in result and "divide_batches = False" not in result


def test_an_optimizer_that_the_method_makes_of_the_network():
    made = "        self.opt = torch.optim.Adam(self.net.parameters(), self.lr)\n"
    text = SOLVER.replace(made, "        pass\n").replace(
        "        for epoch in range(3):\n", f"{made.replace('self.opt', 'opt')}        for epoch in range(3):\n"
    )
    result = check_same(text.replace("self.opt.", "opt."), "module")
    assert "torch.optim.Adam(self.net.parameters(), self.owner.lr)" in result


NOT_BEFORE = {
    "under a condition, below the loop": (
        "            self.train()\n",
        "            self.train()\n        if self.epochs > 9:\n            self.build_model()\n",
    ),
    "in the loop": ("            self.train()\n", "            self.train()\n            self.build_model()\n"),
    "in the pass": ("        self.net.train()\n", "        self.build_model()\n        self.net.train()\n"),
    "by the script": ("solver.run()\n", "solver.build_model()\nsolver.run()\n"),
}


@pytest.mark.parametrize("old, new", NOT_BEFORE.values(), ids=NOT_BEFORE.keys())
def test_a_network_that_is_made_elsewhere_too_is_not_lifted(old, new):
    assert "runtime.backward(loss)" in check_same(LATE.replace(old, new, 1), "loop")


def test_a_network_of_the_solver_s_own_class_keeps_its_loop():
    """`self.net.train()` is then a call of the pass."""
    text = LATE.replace("class Solver(object)", "class Solver(torch.nn.Module)").replace(
        "        self.net = None\n", "        super().__init__()\n        self.net = None\n"
    )
    assert "Trainer(max_epochs=self.epochs)" not in migrate_text(text).text


ASKED = SOLVER.replace(
    "        self.device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n",
    "        self.cuda = USED torch.cuda.is_available()\n"
    "        self.device = torch.device('cuda' if self.cuda else 'cpu')\n",
).replace("def __init__(self, loader, lr)", "def __init__(self, loader, lr, gpu=False)")


def test_a_flag_of_its_own_that_only_asks_the_machine_goes():
    result = check_same(ASKED.replace("USED", ""), "module")
    assert "accelerator=" not in result and "cuda" not in result


def test_a_flag_of_its_own_that_the_user_sets_is_read_by_the_trainer():
    text = ASKED.replace("USED", "gpu and")
    result = check_same(text, "module")
    assert 'accelerator="auto" if self.cuda else "cpu"' in result and "self.cuda = gpu and" in result
    assert not [n for n in migrate_text(text).attention if "stays" in n.message]


ELSEWHERE = {
    "the script calls it too": ("solver.train()", "solver.build_model()\nsolver.train()"),
    "the loop makes a new one": (
        "            self.net.train()\n",
        "            self.build_model()\n            self.net.train()\n",
    ),
    "a method of another name": (
        "    def train(self):",
        "    def again(self):\n        self.build_model()\n\n    def train(self):",
    ),
    "it is handed on": ("solver.train()", "make = solver.build_model\nsolver.train()"),
    "somebody else sets it": (
        "solver.train()",
        "solver.net = torch.nn.Linear(4, 2)\nsolver.make_optimizer()\nsolver.train()",
    ),
}


@pytest.mark.parametrize("old, new", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_a_network_that_may_be_another_by_then_is_not_lifted(old, new):
    """A Module with the network in another object would not place it, nor average its gradients."""
    text = SOLVER[::-1].replace(old[::-1], new[::-1], 1)[::-1]
    assert text != SOLVER
    assert "runtime.backward(loss)" in check_same(text, "loop")


RESUMED = LATE.replace(
    "self.build_model()", "self.build_model()\n        if self.epochs > 1:\n            self.net = load(self.net)"
)
RESUMED = RESUMED.replace(
    "class Solver", "def load(net):\n    net.weight.data.mul_(0.5)\n    return net\n\n\nclass Solver"
)


def test_a_network_that_is_set_again_above_the_loop():
    """`if resume: self.net = load(self.net)`: from the loop on nothing sets it."""
    check_same(RESUMED, "module")


def test_a_network_that_is_set_again_in_the_loop_is_not_lifted():
    text = LATE.replace(
        "            self.train()\n", "            self.net = load(self.net)\n            self.train()\n"
    )
    text = text.replace("class Solver", "def load(net):\n    return net\n\n\nclass Solver")
    assert "runtime.backward(loss)" in check_same(text, "loop")


SECOND = LATE[LATE.index("class Solver") : LATE.index("torch.manual_seed(0)")]
SECOND = SECOND.replace("Solver(object)", "Deep").replace("Linear(4, 2)", "Sequential(torch.nn.Linear(4, 2))")
TWO = (
    LATE.replace("torch.manual_seed(0)\n", f"{SECOND}torch.manual_seed(0)\n")
    .replace(
        "solver.run()\n", "solver.run()\nif solver.epochs > 2:\n    solver = Deep(solver.loader, 2)\nsolver.run()\n"
    )
    .replace("print(f'{solver.net.weight", "print(f'{next(solver.net.parameters())")
)


def test_two_solvers_whose_methods_have_the_same_names():
    result = check_same(TWO, "module")
    assert result.count(".fit(") == 2 and result.count("(Module):") == 2


def test_a_solver_that_is_made_of_another_is_not_told_apart_from_it():
    assert "runtime.backward(loss)" in check_same(TWO.replace("class Deep:", "class Deep(Solver):"), "loop")


GIVEN = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(32, 4)


class Solver:
    def __init__(self, model, optimizer, train_loader):
        self.model = model
        self.optimizer = optimizer
        self.train_loader = train_loader

    def fit(self, epochs):
        for epoch in range(1, epochs + 1):
            total, last = self.train()
            print(epoch, total, last)

    def train(self):
        self.model.train()
        total = 0
        for a, b in self.train_loader:
            loss = (self.model(a) - b).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total, loss.item()


def run(epochs):
    net = torch.nn.Linear(4, 1)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
    solver = Solver(net, torch.optim.SGD(net.parameters(), lr=0.1), loader)
    solver.fit(epochs)


run(3)
"""


def test_a_network_that_is_given_and_whose_train_is_no_pass_of_the_solver():
    text = check_same(GIVEN, "module")
    assert "max_epochs=epochs" in text and "def train(" not in text


def test_a_solver_that_can_be_called_may_be_its_own_network():
    called = GIVEN.replace("    def fit(", "    def __call__(self, a):\n        return self.model(a)\n\n    def fit(")
    assert "def train(self)" in migrate_text(called).text
