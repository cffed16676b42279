"""T1: what is moved once, above the loop that trains, and is no network stays moved: no loader gives it."""

import textwrap

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_project_on_card

GRAPHS = """\
import torch


class Graph:
    def __init__(self, held):
        self.held = held

    def int(self):
        return self

    def to(self, device):
        return Graph({k: v.to(device) for k, v in self.held.items()})


class Data:
    def __getitem__(self, i):
        return graph()


def graph():
    return Graph({"x": torch.linspace(0, 1, 24).reshape(6, 4), "y": torch.tensor([0, 1, 2, 0, 1, 2])})


def load(args):
    return graph()


def both(args):
    return graph(), 3
"""
TRAIN = """\
import torch
from graphs import Data, both, graph, load

class args:
    gpu, name = "cuda", "g"

def train(data):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
{moved}
    x, y = g.held["x"], g.held["y"]
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    model = model.to(device)
    loss_fcn = torch.nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        loss = loss_fcn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item(), model(x).sum().item())

train({given})
"""


@pytest.mark.parametrize(
    ("given", "moved"),
    [
        ("Data()", "g = data[0].to(device)"),
        ("Data()", "g = data[0]\nif device.type != 'x':\n    g = g.to(device)"),
        ("Data()", "g = data[0].int().to(device)"),
        ("None", "data = Data()\ng = data[0]\ng = g.to(args.gpu)"),
        ("args", "g = load(data)\ng = g.int().to(device)"),
        ("args", "g, n = both(args)\ng = g.to(device)"),
        ("graph()", "g = data.to(device)"),
        ("graph()", "graph = data\ngraph = graph.to(device)\ng = graph"),
    ],
)
def test_what_is_moved_once_stays_moved(tmp_path, given, moved):
    text = TRAIN.format(given=given, moved=textwrap.indent(moved, "    "))
    after = check_project_on_card(tmp_path, main=text, graphs=GRAPHS)
    assert "model.to(device)" not in after["main"] and after["graphs"] == GRAPHS


@pytest.mark.parametrize(
    "moved",
    [
        "D, G = nets[0].to(device), nets[1].to(device)",
        "D = nets['d']\nD = D.to(device)",
        "D = make(args)\nD = D.cuda()",
        "D = disc.to(device)",
    ],
)
def test_a_network_is_the_trainers(moved):
    """By its name, or by what it is asked for."""
    text = f"""import torch
from other import make, loader, args, device

def train(nets, disc):
{textwrap.indent(moved, "    ")}
    optimizer = torch.optim.SGD(D.parameters(), lr=0.1)
    for epoch in range(3):
        for x in loader:
            optimizer.zero_grad()
            D(x.to(device)).mean().backward()
            optimizer.step()
"""
    assert "device" not in migrate_text(text).text.replace("args, device", "")


def test_what_the_loop_takes_of_its_batch_is_the_runtimes():
    text = """import torch
from other import loader

def train(device):
    net = torch.nn.Linear(3, 1).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for batch in loader:
            x = batch[0].to(device)
            optimizer.zero_grad()
            net(x).mean().backward()
            optimizer.step()
"""
    assert "x = batch[0]\n" in migrate_text(text).text
