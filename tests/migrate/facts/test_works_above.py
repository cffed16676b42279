"""A network that works above the training on what the script moved keeps its own move, too."""

import pytest

from tests.migrate.running import check_on_card

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"


def prepare(rows):
    return torch.tensor(rows, device=device)


def moved(x):
    return x.to(device)


def several(n):
    return [torch.ones(1, 4).to(device) * i for i in range(n)]


def rate(network, batches):
    return sum(network(b).sum().item() for b in batches)


def loaded(rows):
    rows = torch.tensor(rows)
    rows = rows.to(device)
    return rows


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(8, 4), torch.randn(8, 1)), batch_size=4)
net = nn.Linear(4, 1)
net.to(device)
{above}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = (net(x.to(device)) - y.to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
print(net(prepare([[1.0, 2, 3, 4]])).item())
"""
KEPT = [
    "print(net(prepare([[1.0, 2, 3, 4]])).item())",
    "with torch.no_grad():\n    print(f'{net(loaded([[1.0, 2, 3, 4]])).item():.4f}')",
    "a, b = torch.ones(2, 4).to(device), torch.ones(1, 4, device=device)\nprint(net(a).sum().item(), net(b).item())",
    "given = prepare([[1.0, 2, 3, 4]])\nprint(net(given).item())",
    "made = several(2)\nprint(rate(net, made))",
    "print(rate(net, several(2)))",
    "a, b = prepare([[1.0, 2, 3, 4]]), 2\nfor i in range(b):\n    print(net(a[:1]).item())",
]


@pytest.mark.parametrize("above", KEPT)
def test_it_stays_where_the_script_put_it(tmp_path, above):
    assert "\nnet.to(device)\n" in check_on_card(tmp_path, SCRIPT.format(above=above))


GOES = [
    "",
    "for x, y in loader:\n    print(net(moved(x)).sum().item())",
    "print(net(torch.ones(1, 4).to(device)).item())",
    "print(net(torch.ones(1, 4, device=device)).item())",
]


@pytest.mark.parametrize("above", GOES)
def test_one_that_works_on_what_is_not_placed_yet_goes(tmp_path, above):
    assert "net.to(device)" not in check_on_card(tmp_path, SCRIPT.format(above=above))


def test_in_a_function_that_gives_something_back_itself(tmp_path):
    """What the function of the training moves goes with its network, as at the top of a file."""
    above = "given = torch.ones(2, 4).to(device)\nfixed = net(given).detach()"
    head, _, rest = SCRIPT.format(above=above).partition("torch.manual_seed")
    lines = (f"    {line}\n" if line else "\n" for line in f"torch.manual_seed{rest}".splitlines())
    text = f"{head}def main():\n{''.join(lines)}    print((net(given) - fixed).norm().item())\n"
    text += "    return net\n\n\nmain()\n"
    assert "    net.to(device)" not in check_on_card(tmp_path, text)
