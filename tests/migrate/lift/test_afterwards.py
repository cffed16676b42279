"""A script without devices that works with its network once it is trained: there the network is back on the CPU."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

SCRIPT = """\
import copy
from functools import partial

import numpy
import torch
from torch import nn

torch.manual_seed(0)
samples = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,)))
loader = torch.utils.data.DataLoader(samples, 4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 3)
        self.register_buffer("order", torch.tensor([1, 0]))

    def forward(self, x):
        return self.f(x)


{above}
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
{below}
"""
BACK = "back_on_cpu=True"
PREDICTOR = """\
class Predictor{base}:
    def __init__(self, model):
        self.model = model{eval}

    def {name}(self, x):
        return self.model(x).argmax(1).tolist()
"""
OBJECT = PREDICTOR.format(base="", eval="", name="predict")


@pytest.mark.parametrize(
    ("above", "below"),
    [
        (OBJECT, "print(Predictor(net).predict(torch.ones(3, 4)))"),
        (f"{OBJECT}\n\nclass Of(Predictor):\n    pass", "p = Of(net)\nprint(p.predict(torch.ones(3, 4)))"),
        (PREDICTOR.format(base="", eval=".eval()", name="p"), "p = Predictor(net)\nprint(p.p(torch.ones(3, 4)))"),
        (PREDICTOR.format(base="", eval="", name="__call__"), "p = Predictor(net)\nprint(p(torch.ones(3, 4)))"),
        (OBJECT, "ps = []\nps.append(Predictor(net))\nprint(ps[0].predict(torch.ones(3, 4)))"),
        ("", "predict = lambda x: net(x).argmax(1)\nprint(predict(torch.ones(3, 4)).tolist())"),
        ("def score(x):\n    return net(x).max().item()", "print(list(map(score, torch.ones(3, 4).split(1))))"),
        ("def score(x):\n    return net(x).max().item()", "print(max(torch.ones(3, 4).split(1), key=score).tolist())"),
        ("def score(m, x):\n    return m(x).sum().item()", "f = partial(score, net)\nprint(f(torch.ones(2, 4)))"),
        (
            "def run():\n    def inner(x):\n        return net(x)\n    return inner(torch.ones(2, 4))",
            "print(run().tolist())",
        ),
        ("", "torch.jit.trace(net, torch.ones(1, 4))\nprint('traced')"),
        ("", "m = net\nprint(m(torch.ones(2, 4)).tolist())"),
        ("", "m = copy.deepcopy(net).eval()\nprint(m(torch.ones(2, 4)).tolist())"),
        ("", "for m in [net, nn.Linear(4, 3)]:\n    print(m(torch.ones(2, 4)).shape)"),
        ("", "models = {'a': net}\nfor name, m in models.items():\n    print(name, m(torch.ones(2, 4)).tolist())"),
        ("", "full = nn.Sequential(net, nn.Softmax(1))\nprint(full(torch.ones(2, 4)).tolist())"),
        ("", "print(net.f(torch.ones(2, 4)).tolist())"),
        ("", "f = net.forward\nprint(f(torch.ones(2, 4)).tolist())"),
        ("", "print((net.f.weight @ torch.ones(4)).tolist())"),
        ("", "print(net.f.weight)"),
        ("", "print(net.f.weight.detach().numpy())"),
        ("", "print([p.data.numpy().shape for p in net.parameters()])"),
        ("", "state = net.state_dict()\nprint(state['f.weight'].numpy())"),
        (
            "def norm(m):\n    return sum((p - torch.zeros(3, 1)).norm() for p in [m.f.weight])",
            "print(norm(net).item())",
        ),
        ("", "print(net(x).argmax(1).tolist(), (y + torch.ones(4)).tolist())"),
        ("", "x, y = next(iter(loader))\nprint(net(x).argmax(1), y)"),
        (
            "",
            "print([net(torch.ones(1, 4)).shape for net in net.children()])",
        ),
        ("", "print(numpy.log(net.f.weight.detach().abs()).shape)"),
        ("", "print((torch.log(net.f.weight.abs()) + torch.ones(4)).shape)"),
        ("", "swa = torch.optim.swa_utils.AveragedModel(net)\nprint(swa(torch.ones(2, 4)).tolist())"),
        ("", "print(torch.eye(3)[net.order].tolist())"),
        ("", "print(f'{net.f.bias}')"),
        ("", "for x, y in loader:\n    print(net(x).argmax(1).tolist())\nprint(net(torch.ones(2, 4)).tolist())"),
    ],
)
def test_what_meets_tensors_of_the_script(tmp_path, above, below):
    text = SCRIPT.format(above=above, below=below)
    assert BACK in check_on_card(tmp_path, text)
    done = migrate_text(text)
    assert any("back on the CPU" in e.message for e in done.edits)
    assert migrate_text(done.text).text == done.text


@pytest.mark.parametrize(
    ("above", "below"),
    [
        (OBJECT, "p = Predictor(nn.Linear(4, 3))\nprint(len(p.predict(torch.ones(3, 4))))"),
        (OBJECT, "p = Predictor(net)\nfor x, y in loader:\n    print(p.predict(x))"),
        ("", "torch.save(net.state_dict(), 'a.pt')"),
        ("", "torch.save({'net': net.state_dict(), 'epoch': epoch}, 'a.pt')"),
        ("", "torch.save(net.state_dict(), 'a.pt')\nnet.load_state_dict(torch.load('a.pt'))\nprint(net)"),
        ("", "print(sum(net.numel() for net in net.parameters()), f'{net}')"),
        ("", "print(net, len(list(net.children())), type(net).__name__)"),
        ("", "print(sum(p.numel() for p in net.parameters() if p.requires_grad))"),
        ("", "print(round(sum(p.norm().item() for p in net.parameters()), 4))"),
        ("", "for name, p in net.named_parameters():\n    print(name, tuple(p.shape), p.requires_grad)"),
        ("", "net.eval()\nfor x, y in loader:\n    print(net(x).argmax(1).tolist())"),
        ("", "net.eval()\nprint([net(x).argmax(1).tolist() for x, y in loader])"),
        (
            "def hits(m, data):\n    return sum((m(x).argmax(1) == y).sum().item() for x, y in data)",
            "print(hits(net, loader))",
        ),
        ("def best(m, n):\n    return m if n > 1 else None", "print(best(net, 2) is None)"),
        ("", "other = Net()\nprint(other(torch.ones(2, 4)).shape)"),
    ],
)
def test_what_does_not(tmp_path, above, below):
    assert BACK not in check_on_card(tmp_path, SCRIPT.format(above=above, below=below))


TREE = """\
def run(net, x):
    return net(x)


class Tree(Net):
    def __init__(self, depth):
        super().__init__()
        self.child = Tree(depth - 1) if depth else None

    def encode(self, x):
        return self.child.encode(self.f(x)) if self.child is not None else x

    def predict(self, x):
        return self(x).argmax(1)

    def given(self, x):
        return run(self, x)

    def weights(self):
        return self.f.weight.detach()

    def bias(self):
        return self.weights()[0]

    def count(self):
        return 1 + (self.child.count() if self.child is not None else 0)


class Holds:
    def __init__(self, net):
        self.net = net

    def one(self):
        return self.net(torch.ones(2, 4))


class Shows(Holds):
    def two(self):
        return self.three()

    def three(self):
        return self.one()

    def name(self):
        return type(self.net).__name__
"""


@pytest.mark.parametrize(
    ("below", "back"),
    [
        ("print(net.count())", False),
        ("print(net.child.count(), net.count())", False),
        ("print(net.encode(torch.ones(2, 4)).shape)", True),
        ("n = net.count()\nprint(net.child.encode(torch.ones(2, 4)).shape, net.encode(torch.ones(1, 4)).shape)", True),
        ("print(net.predict(torch.ones(2, 4)).tolist())", True),
        ("print(net.given(torch.ones(2, 4)).tolist())", True),
        ("print(net.weights().numpy().shape)", True),
        ("print(net.weights().shape)", False),
        ("for x, y in loader:\n    print(net.predict(x).tolist())", False),
        ("print(Shows(net).two().tolist())", True),
        ("print(Shows(net).name())", False),
    ],
)
def test_methods_that_call_themselves_and_those_of_the_class_above(tmp_path, below, back):
    text = SCRIPT.format(above=TREE, below=below).replace("net = Net()", "net = Tree(2)").replace("(0, 3", "(0, 4")
    assert (BACK in check_on_card(tmp_path, text.replace("Linear(4, 3)", "Linear(4, 4)"))) is back


@pytest.mark.parametrize(
    ("kept", "below", "back"),
    [
        ("best = copy.deepcopy(net)", "print(best(torch.ones(1, 4)).tolist())", True),
        ("best = copy.deepcopy(net.state_dict())", "print(best['f.weight'].numpy().shape)", True),
        ("best = copy.deepcopy(net.state_dict())", "net.load_state_dict(best)\nprint(len(best))", False),
        ("best = loss.item()", "print(best)", False),
    ],
)
def test_what_the_loop_keeps_of_it(tmp_path, kept, below, back):
    text = SCRIPT.format(above="", below=below).replace("    print(epoch, ", f"    {kept}\n    print(epoch, ")
    assert (BACK in check_on_card(tmp_path, text)) is back


STOPS = """\
try:
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        if epoch == 1:
            raise KeyboardInterrupt
except KeyboardInterrupt:
    print("stopped")
print(net(torch.ones(2, 4)).tolist())
"""


def test_it_comes_back_when_the_training_is_stopped(tmp_path):
    head = SCRIPT.format(above="", below="").partition("for epoch")[0]
    assert BACK in check_on_card(tmp_path, head + STOPS)


def test_methods_that_all_call_one_another_are_each_asked_once():
    calls = "".join(f"        self.m{i}(x)\n" for i in range(12))
    methods = "".join(f"    def m{i}(self, x):\n{calls}        return self.f(x)\n\n" for i in range(12))
    text = SCRIPT.format(above="", below="net.m0(torch.ones(2, 4))").replace(
        "    def forward", f"{methods}    def forward"
    )
    assert BACK in migrate_text(text).text
