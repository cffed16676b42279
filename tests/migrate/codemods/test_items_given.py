"""A data set's item that callers give a function: on a card it is placed as the original placed it."""

import pytest

from tests.migrate.running import check_on_card

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
xs = torch.randn(32, 8)
dataset = TensorDataset(xs, (xs.sum(1) > 0).long())
loader = DataLoader(dataset, batch_size=8, shuffle=True)
net = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

FUNCTION

for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
    with torch.no_grad():
        CALLS
"""
ITEM = "show(dataset[0]); show(dataset[epoch])"
FUNCTIONS = {
    "an item that is unpacked": (
        "def show(sample):\n    x, y = sample\n    x = x.to(device)\n    print(net(x[None]).sum().item(), y.item())",
        ITEM,
    ),
    "a part of an item": (
        "def show(sample):\n    x = sample[0].to(device).unsqueeze(0)\n    print(net(x)[0, sample[1]].item())",
        ITEM,
    ),
    "an input and a network": (
        "def show(net, x):\n    print(net(x.unsqueeze(0).to(device)).argmax(1).item())",
        "show(net, dataset[1][0])",
    ),
    "an item spread": (
        "def show(x, y):\n    x, y = x.to(device), y.to(device)\n    print((net(x) - y).sum().item())",
        "show(*dataset[1])",
    ),
    "inputs and targets": (
        "def show(x, y):\n    x, y = x.to(device), y.to(device)\n    print((net(x) - y).sum().item())",
        "show(dataset[1][0], dataset[1][1])",
    ),
    "several, one after another": (
        "def one(x):\n    x = x.to(device)\n    return net(x).sum().item()\n\n"
        "def show(samples):\n    for s in samples:\n        print(one(s))",
        "show([dataset[k][0] for k in range(3)])",
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_goes_where_the_network_is(name, tmp_path):
    function, calls = FUNCTIONS[name]
    check_on_card(tmp_path, SCRIPT.replace("FUNCTION", function).replace("CALLS", calls))


def test_a_batch_that_callers_unpack_is_the_runtimes(tmp_path):
    function = "def show(batch):\n    x, y = batch\n    x = x.to(device)\n    print(net(x).sum().item())"
    result = check_on_card(
        tmp_path, SCRIPT.replace("FUNCTION", function).replace("CALLS", "for batch in loader:\n            show(batch)")
    )
    assert ".to(" not in result
