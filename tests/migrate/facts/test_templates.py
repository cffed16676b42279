"""A network of which the script trains copies alone keeps its move; one that it trains itself does not."""

import ast
from textwrap import dedent

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.facts.templates import is_template

HEAD = """\
import copy
from copy import deepcopy
import torch

def fit(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = model(x).sum()
        loss.backward()
        opt.step()
    return model.state_dict()

def near(model, other, loader):
    for x in loader:
        far = sum((p - q).norm() for p, q in zip(model.parameters(), other.parameters()))
        (model(x).sum() + far).backward()

def test(model, loader):
    model.eval()
    return [model(x) for x in loader]

"""


def asked(source: str) -> bool:
    facts = Facts(HEAD + dedent(source))
    (call,) = (c for c in facts.walk(ast.Call) if isinstance(c.func, ast.Attribute) and c.func.attr in ("to", "cuda"))
    return is_template(facts, call.func.value)


@pytest.mark.parametrize(
    "source",
    [
        "net = Net().to(device)\nw = fit(copy.deepcopy(net), loader)\nnet.load_state_dict(w)\ntest(net, loader)\n",
        "net = Net()\nnet.cuda()\nw = fit(deepcopy(net), loader)\nnet.load_state_dict(w)\nprint(net)\n",
        "net = Net()\nnet = net.to(device)\nnet.train()\nlocal = copy.deepcopy(net)\nfit(local, loader)\n",
        "net = Net().cuda()\nnear(copy.deepcopy(net), net, loader)\n",
        "net = Net().cuda()\nfit(copy.deepcopy(net), loader)\nout = net(x)\n",
        "import others\nnet = Net().cuda()\nfit(deepcopy(net), loader)\nothers.evaluate(net, loader)\n",
        "def main():\n    net = Net().cuda()\n    fit(model=deepcopy(net), loader=1)\n    test(net, loader=1)\n",
    ],
)
def test_a_network_that_is_only_copied(source):
    assert asked(source)


@pytest.mark.parametrize(
    "source",
    [
        "net = Net().to(device)\nfit(net, loader)\nbest = copy.deepcopy(net)\n",
        "net = Net().to(device)\nbest = copy.deepcopy(net)\nopt = torch.optim.SGD(net.parameters(), 0.1)\n",
        "net = Net().to(device)\nbest = copy.deepcopy(net)\nimport others\nothers.train(net)\n",
        "net = Net().to(device)\nbest = copy.deepcopy(net)\nkept = [net]\n",
        "net = Net().to(device)\ntarget = copy.deepcopy(net)\nfor x in loader:\n    net(x).sum().backward()\n",
        "net = Net().to(device)\nfit(net, loader)\n",
        "net = Net()\nlocal = copy.deepcopy(net).to(device)\nfit(local, loader)\n",
        "def run(net):\n    net.to(device)\n    fit(copy.deepcopy(net), loader)\n",
    ],
)
def test_a_network_that_is_trained_itself_or_may_be(source):
    assert not asked(source)
