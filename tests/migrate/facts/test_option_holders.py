"""What holds a script's options is known by what gives it, whatever its name."""

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

MADE = "import argparse\np = argparse.ArgumentParser()\n"
HOLDERS = {
    "assigned": "ns = p.parse_args()",
    "with a type": "ns: argparse.Namespace = p.parse_args([])",
    "a walrus": "print((ns := p.parse_args()))",
    "with the rest": "ns, rest = p.parse_known_args()",
    "the first of two": "ns = p.parse_known_args()[0]",
    "another name": "first = p.parse_args()\nns = first",
    "handed on": "def main(ns):\n    print(ns)\nmain(p.parse_args())",
    "handed on by its name": "def main(ns):\n    print(ns)\nns = p.parse_args()\nmain(ns)",
    "handed on twice": "def run(k, ns):\n    print(ns)\ndef main(x):\n    run(1, x)\nmain(p.parse_args())",
    "an attribute": "class A:\n    def __init__(self):\n        self.ns = p.parse_args()",
}
NOT = {
    "no parser's": "ns = make()",
    "something else, too": "ns = p.parse_args()\nns = 3",
    "something else elsewhere": "ns = p.parse_args()\ndef f():\n    for ns in range(3):\n        print(ns)",
    "a parameter of others": "ns = p.parse_args()\ndef f(ns):\n    return ns\nf(3)",
    "given something else by another call": "def f(ns):\n    return ns\nf(p.parse_args())\nf(torch.ones(2))",
    "the rest": "x, ns = p.parse_known_args()",
    "a part of it": "ns = p.parse_args().device",
}


@pytest.mark.parametrize("text", HOLDERS.values(), ids=HOLDERS.keys())
def test_a_parser_gave_it(text):
    assert Facts(MADE + text).devices.options.has("ns")


@pytest.mark.parametrize("text", NOT.values(), ids=NOT.keys())
def test_it_may_be_something_else(text):
    options = Facts(MADE + text).devices.options
    assert not options.has("ns") and options.has("args") and options.has("cfg")


SCRIPT = """
import argparse
import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", default=-1, type=int)
parser.add_argument("--gpu", type=int, default=-1)
ns = parser.parse_args()
is_dist = ns.local_rank != -1
if is_dist:
    torch.cuda.set_device(ns.local_rank)
    dist.init_process_group("nccl")
ns.device = torch.device("cuda:%d" % ns.gpu if ns.gpu >= 0 else "cpu")
net = nn.Linear(3, 1).to(ns.device)
if is_dist:
    net = nn.parallel.DistributedDataParallel(net, device_ids=[ns.local_rank])
opt = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.randn(12, 3), 4):
        x = x.to(ns.device)
        loss = net(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if not is_dist or dist.get_rank() == 0:
            print(epoch, loss.item())
"""


@pytest.mark.parametrize("name", ["args", "ns", "hp", "parsed"])
def test_options_are_options_by_any_name(name):
    result = migrate_text(SCRIPT.replace("ns", name))
    assert result.plan == "module" and not result.attention
    assert "local_rank" not in result.text and "is_dist" not in result.text and ".to(" not in result.text
    assert "self.print(epoch, self.batch_mean(loss.item()))" in result.text
