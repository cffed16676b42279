"""A pass over data above the training, with no network in it, keeps its moves: nothing is placed by then."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def mean_of(batches):
    total = torch.zeros(3, device=device)
    for x, y in batches:
        x = x.to(device)
        total += x.sum(0) / 16
    return total


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 3) + 1, torch.randn(16, 1)), batch_size=8)
net = nn.Linear(3, 1).to(device)
{above}
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = ((net(x - mean) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
"""
ABOVE = [
    "mean = torch.zeros(3, device=device)\nfor x, y in loader:\n    x = x.to(device)\n    mean += x.sum(0) / 16",
    "mean = torch.zeros(3).to(device)\nfor batch in loader:\n    x = batch[0].to(device)\n    mean += x.sum(0) / 16",
    "mean = 0.0\nfor x, y in loader:\n    mean = mean + x.to(device).sum(0) / 16",
    "mean = torch.cat([x.to(device) for x, _ in loader]).mean(0)",
    "xs = []\nfor x, _ in loader:\n    xs.append(x.to(device))\nmean = torch.cat(xs).mean(0)",
    "mean = mean_of(loader)",
    "pairs = [(x.to(device), y.to(device)) for x, y in loader]\nmean = sum((x * y).mean(0) for x, y in pairs)",
    "mean = 0.0\nfor x, y in loader:\n    mean = mean + (x.to(device).t() @ y.to(device)).flatten()",
]


@pytest.mark.parametrize("above", ABOVE)
def test_its_moves_stay(tmp_path, above):
    text = check_on_card(tmp_path, SCRIPT.format(above=above))
    assert "on_device(loader)" not in text and ".to(device)" in text


WORKS = [
    "mean = 0.0\nfor x, y in loader:\n    mean = mean + net(x.to(device)).mean().item() / 2",
    "mean = sum(net(x.to(device)).mean().item() for x, _ in loader)",
]


@pytest.mark.parametrize("above", WORKS)
def test_one_in_which_a_network_works_goes_where_that_is(tmp_path, above):
    assert ".to(device)" not in check_on_card(tmp_path, SCRIPT.format(above=above)).partition("class Linear")[0]


ELSEWHERE = [
    "mean = 0.0\nfor x, y in loader:\n    mean = mean + net.forward(x.to(device)).mean().item() / 2",
    "mean = 0.0\nfor x, y in loader:\n    mean = mean + scored(x.to(device)) / 2",
]


@pytest.mark.parametrize("above", ELSEWHERE)
def test_so_does_one_by_a_method_and_what_may_be_one(above):
    text = SCRIPT.replace("import torch\n", "import torch\nfrom scores import scored\n", 1)
    assert "for x, y in on_device(loader" in migrate_text(text.format(above=above)).text


def test_what_a_loop_over_anything_else_moves_goes(tmp_path):
    above = "mean = 0.0\nlosses = [nn.L1Loss(), nn.MSELoss()]\nfor c in losses:\n    c = c.to(device)"
    assert "c.to(device)" not in check_on_card(tmp_path, SCRIPT.format(above=above))


def test_one_below_the_training_is_placed():
    below = "mean = 0.0\n{}print(mean_of(loader))\n"
    text = migrate_text(SCRIPT.format(above="mean = 0.0") + below.format("").replace("mean = 0.0\n", "")).text
    assert "for x, y in on_device(batches):" in text
