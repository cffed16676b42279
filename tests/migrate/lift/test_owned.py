"""Networks that an object keeps, and that its methods call within a step: they are parts of the Module, or nothing
would place them or average their gradients.
"""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_project_on_card, check_same

HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,))), batch_size=4)


def loss_of(net, x, y):
    return nn.functional.cross_entropy(net(x), y)


class Learner:
    def __init__(self, net, loader):
        self.net = net.to(device)
        self.loader = loader
        self.opt = torch.optim.SGD(PARAMETERS, lr=0.1)

    def move(self, batch):
        return [v.to(device) if torch.is_tensor(v) else v for v in batch]

    def step(self, batch):
        x, y = self.move(batch)
        return loss_of(self.net, x, y)
"""
TRAINS = """\

    def fit(self):
        for epoch in range(2):
            for batch in self.loader:
                loss = self.step(batch)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            print(loss.item(), AFTER)


Learner(nn.Linear(4, 3), loader).fit()
"""
BESIDE = """\


learner = Learner(nn.Linear(4, 3), loader)
for epoch in range(2):
    for batch in loader:
        loss = learner.step(batch)
        learner.opt.zero_grad()
        loss.backward()
        learner.opt.step()
    print(loss.item(), AFTER)
"""


def script(rest=TRAINS, parameters="net.parameters()", after="0"):
    return (HEAD + rest).replace("PARAMETERS", parameters).replace("AFTER", after)


@pytest.mark.parametrize("parameters", ["net.parameters()", "self.net.parameters()"])
def test_of_the_object_that_trains(tmp_path, parameters):
    assert "self.net = owner.net\n" in check_on_card(tmp_path, script(parameters=parameters))


def test_of_one_beside_the_loop(tmp_path):
    assert "self.net = learner.net\n" in check_on_card(tmp_path, script(BESIDE))


def test_of_one_that_is_called(tmp_path):
    text = script(BESIDE).replace("def step(self, batch)", "def __call__(self, batch)")
    migrated = check_on_card(tmp_path, text.replace("learner.step(batch)", "learner(batch)"))
    assert "self.net = learner.net\n" in migrated


RUNNER = """\


class Net(nn.Linear):
    def train_step(self, batch):
        return {'loss': nn.functional.cross_entropy(self(batch[0]), batch[1])}


class Runner(Learner):
    def train(self, loader):
        for batch in loader:
            batch = self.move(batch)
            self.outputs = self.net.train_step(batch)
            self.opt.zero_grad()
            self.outputs['loss'].backward()
            self.opt.step()
        print(self.outputs['loss'].item())

    def run(self, modes):
        for mode in modes:
            getattr(self, mode)(self.loader)


Runner(Net(4, 3), loader).run(['train', 'train'])
"""


def test_of_the_object_whose_step_calls_a_method_of_the_network(tmp_path):
    """As mmcv's Runner does."""
    assert "self.net = owner.net\n" in check_on_card(tmp_path, script(RUNNER))


def test_of_a_class_in_another_file(tmp_path):
    learner = script("").replace("torch.manual_seed(0)\n", "")
    main = HEAD.partition("def loss_of")[0] + "from learner import Learner\n" + BESIDE.replace("AFTER", "0")
    texts = check_project_on_card(tmp_path, main=main, learner=learner)
    assert "self.net = learner.net\n" in texts["main"]


def test_one_that_may_not_be_there(tmp_path):
    text = script(BESIDE, "self.net.parameters()").replace("self.net = net.to(device)", "self.setup(net)")
    text = text.replace("    def move", "    def setup(self, net):\n        self.net = net.to(device)\n\n    def move")
    assert 'self.net = getattr(learner, "net", None)\n' in check_on_card(tmp_path, text)


def test_one_that_the_module_has_is_not_named_twice():
    text = script(after="self.net.training", parameters="self.net.parameters()")
    assert "owner.net" not in check_same(text, "module")


def test_one_that_the_steps_set_again_is_not_taken():
    text = script().replace("x, y = self.move(batch)", "x, y = self.move(batch)\n        self.net = self.net.train()")
    assert "owner.net" not in migrate_text(text).text


def test_what_is_no_network_is_not_taken():
    text = script(BESIDE).replace(
        "        self.loader = loader\n", "        self.loader = loader\n        self.k = 2\n"
    )
    result = migrate_text(
        text.replace("return loss_of(self.net, x, y)", "return loss_of(self.net, x, y) * self.k")
    ).text
    assert "learner.k" not in result and "learner.loader" not in result


EVALUATED = ["sum(learner.step(b).item() for b in loader)", "[learner.step(b).item() for b in loader]"]


@pytest.mark.parametrize("after", EVALUATED)
def test_what_a_method_evaluates_in_a_comprehension_is_placed(tmp_path, after):
    assert "for b in on_device(" in check_on_card(tmp_path, script(BESIDE, after=after))


def test_that_of_another_file_too(tmp_path):
    learner = script("").replace("torch.manual_seed(0)\n", "")
    main = HEAD.partition("def loss_of")[0] + "from learner import Learner\n" + BESIDE.replace("AFTER", EVALUATED[0])
    assert "for b in on_device(" in check_project_on_card(tmp_path, main=main, learner=learner)["main"]


ABSTRACT = """\

class Abstract(Generic[T]):
    def __init__(self, net: T, loader):
        self.net: T = net.to(device)
        self.loader = loader
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)

    @abstractmethod
    def step(self, batch): ...
"""
BELOW = """\


class Mine(Abstract[nn.Linear]):
    def step(self, batch):
        return loss_of(self.net, *[v.to(device) for v in batch])


Mine(nn.Linear(4, 3), loader).fit()
"""


@pytest.mark.parametrize("generic", [True, False])
def test_of_an_object_whose_step_stands_in_a_class_below(tmp_path, generic):
    head = "from abc import abstractmethod\nfrom typing import Generic, TypeVar\nT = TypeVar('T')\n"
    text = head + HEAD.partition("class Learner")[0] + ABSTRACT + TRAINS.partition("\n\nLearner")[0] + BELOW
    text = text.replace("AFTER", "0")
    text = text if generic else text.replace("(Generic[T])", "").replace("Abstract[nn.Linear]", "Abstract")
    assert "self.net = owner.net\n" in check_on_card(tmp_path, text)


def test_a_step_of_a_class_beside_is_not_looked_at(tmp_path):
    beside = "class Other:\n    def step(self, batch):\n        return self.second(batch)\n\n\n"
    text = script().replace("class Learner", beside + "class Learner")
    text = text.replace("self.net = net", "self.second = self.net = net")
    assert "owner.second" not in check_on_card(tmp_path, text)
