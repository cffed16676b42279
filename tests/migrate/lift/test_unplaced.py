"""What a network is given before its loop begins, when the Trainer has not placed it yet."""

import pytest

from tests.migrate.running import check_project_on_card, check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

use_cuda = torch.cuda.is_available()
device = torch.device('cuda' if use_cuda else 'cpu')
torch.manual_seed(0)
loader = DataLoader(torch.randn(8, 4), batch_size=4)
net = nn.Linear(4, 4).to(device)

def count(net, x):
    return net(x).numel()

class Keeper:
    def __init__(self, net, x):
        self.net, self.x = net, x

    def show(self):
        with torch.no_grad():
            print(f'{self.net(self.x).sum().item():.5f}')

BEFORE
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in loader:
        x = x.to(device)
        loss = (net(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
AFTER
"""


def result_of(before, after=""):
    return check_same(TEXT.replace("BEFORE", before).replace("AFTER", after), "module")


@pytest.mark.parametrize(
    ("before", "result"),
    [
        ("print(net(torch.ones(1, 4).to(device)).shape)", "net(torch.ones(1, 4)).shape"),
        ("print(net.forward(torch.ones(1, 4, device=device)).shape)", "net.forward(torch.ones(1, 4))"),
        ("traced = torch.jit.trace(net, (torch.ones(1, 4).to(device),))", "torch.jit.trace(net, (torch.ones(1, 4),))"),
        ("print(count(net, x=torch.ones(1, 4).to(device)))", "count(net, x=torch.ones(1, 4))"),
        ("given = torch.ones(1, 4).to(device)\nprint(count(net, given), given.shape)", "given = torch.ones(1, 4)\n"),
        ("given = torch.ones(1, 4, device=device)\nprint(net(given).shape)", "given = torch.ones(1, 4)\n"),
        ("given = torch.ones(1, 4)\nprint(net(given.cuda() if use_cuda else given).shape)", "net(given).shape"),
        (
            "given = torch.ones(1, 4)\nif use_cuda:\n    given = given.cuda()\nprint(count(net, given))",
            "given = torch.ones(1, 4)\nrank_zero_print(count",
        ),
    ],
)
def test_it_stays_where_it_was_made_as_the_network_does(before, result):
    assert result in result_of(before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "print(net(torch.ones(1, 4).to(device)).shape)"),  # the network has moved
        ("given = torch.ones(1, 4).to(device)\nprint(net(given).shape)", "print(net(given).shape)"),
        ("given = torch.ones(1, 4, device=device)\nprint(net(given).shape)", "print(net(given).shape)"),
        ("keeper = Keeper(net, torch.ones(1, 4).to(device))", "keeper.show()"),  # kept until it has
    ],
)
def test_what_meets_it_later_keeps_its_place(before, after):
    result = result_of(before, after)
    kept = ["torch.ones(1, 4).to(device)", "torch.ones(1, 4, device=device)"]
    moved = [f"{given}.to(next(net.parameters()).device)" for given in ("torch.ones(1, 4)", "given")]
    assert any(k in result for k in [*kept, *moved])


NETS = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 5)

    def forward(self, x):
        return self.a(x).relu()
"""
PROBE = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
from nets import Net

torch.manual_seed(0)
net = Net()
if torch.cuda.is_available():
    net.cuda()
given = torch.ones(2, 4)
features = net(given.cuda() if torch.cuda.is_available() else given)
both = nn.Sequential(net, nn.Linear(features.shape[1], 1))
if torch.cuda.is_available():
    both.cuda()
optimizer = torch.optim.SGD(both.parameters(), lr=0.1)
for epoch in range(2):
    for x in DataLoader(torch.randn(8, 4), batch_size=4):
        loss = both(x.cuda() if torch.cuda.is_available() else x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""


def test_a_network_of_another_file(tmp_path):
    assert "features = net(given)\n" in check_project_on_card(tmp_path, main=PROBE, nets=NETS)["main"]
