"""What a network computes above the loop, before the Trainer has placed it, and the step or the lines below read."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE
torch.manual_seed(0)
data = torch.randn(8, 4)
loader = DataLoader(TensorDataset(data, torch.arange(8)), batch_size=4)

def of(model, x):
    model.eval()
    with torch.no_grad():
        return model(x.to(device))

net = nn.Linear(4, 4).to(device)
other = nn.Linear(4, 4).to(device)
probe = torch.ones(2, 4).to(device)
ABOVE
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, i in loader:
        x = x.to(device)
        loss = (net(x) - STEP).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{epoch} {loss.item():.5f}")
BELOW
"""
DEVICE = "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')"
LISTED = """
found = []
with torch.no_grad():
    for x, i in loader:
        found.append(other(x.to(device)))
found = torch.cat(found)
"""


def _text(above: str, step: str = "x", below: str = "", device: str = DEVICE) -> str:
    text = TEXT.replace("ABOVE", above).replace("STEP", step).replace("BELOW", below)
    return text.replace("DEVICE", device)


@pytest.mark.parametrize(
    ("above", "step", "below"),
    [
        ("fixed = net(probe)", "x", "print('%.5f' % (net(probe) - fixed).abs().mean().item())"),
        ("fixed = net(probe).detach()", "x", "print('%.5f' % torch.dist(net(probe), fixed).item())"),
        ("with torch.no_grad():\n    made = other(data.to(device))", "made[i]", "print('%.5f' % made.sum().item())"),
        (
            "a, b = net(probe).mean(0), other(probe).std(0)",
            "a.detach()",
            "print('%.5f' % (net(probe) - b).sum().item())",
        ),
        ("was = of(net, data[:2])", "x", "print('%.5f' % (of(net, data[:2]) - was).norm().item())"),
        (LISTED, "found[i]", "print('%.5f' % (net(probe).mean() - found.mean()).item())"),
    ],
)
def test_it_goes_where_the_module_is(tmp_path, above, step, below):
    text = _text(above, step, below)
    result = check_same(text, "module")
    assert above.splitlines()[-1].replace(".to(device)", "") + "\n" in result  # nothing is placed there yet
    check_on_card(tmp_path, text)


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("fixed = net(probe).detach().cpu()", "print('%.5f' % fixed.sum().item())"),
        ("fixed = net(probe).sum().item()", "print('%.5f' % fixed)"),
        ("fixed = data.mean(0)", "print('%.5f' % fixed.sum().item())"),
        ("fixed = net(probe)", ""),
    ],
)
def test_what_is_elsewhere_or_read_no_more_stays(above, below):
    result = check_same(_text(above, below=below), "module")
    assert "fixed.to(" not in result and "module = " not in result


def test_a_script_whose_network_comes_back_to_the_cpu_moves_nothing(tmp_path):
    text = _text("fixed = net(probe)", below="print('%.5f' % (net(probe) - fixed).sum().item())", device="")
    result = check_same(text.replace(".to(device)", ""), "module")
    assert "back_on_cpu=True" in result and ".to(" not in result
    check_on_card(tmp_path, text.replace(".to(device)", ""))


def test_what_a_network_gives_several_of_is_told():
    pair = "class Two(nn.Module):\n    def forward(self, x):\n        return x + 1, x - 1\n\ntwo = Two().to(device)\n"
    text = _text(pair + "a, b = two(probe)", below="print('%.5f' % (net(probe) - a).mean().item())")
    result = migrate_text(text)
    told = [n for n in result.attention if "two(probe)" in n.message]
    assert len(told) == 1 and told[0].code == "PTM101" and "on the CPU" in told[0].message


@pytest.mark.parametrize(
    "above",
    [
        "def get_model(n):\n    return nn.Linear(n, n), nn.Tanh()\n\nmade, last = get_model(4)",
        "from parts import load_network\nmade = load_network(4)",
        "from parts import source\nmade = source.generator(4)",
        "def my_generator(data):\n    while True:\n        yield from data\n\nmade = my_generator(loader)",
    ],
)
def test_a_function_that_is_named_for_networks_computes_nothing(above):
    result = migrate_text(_text(above, below="print(made)"))
    assert result.plan == "module" and not [n for n in result.attention if "on the CPU" in n.message]
