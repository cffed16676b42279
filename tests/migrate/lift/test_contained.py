"""Networks in a list or a dictionary, which the Module does not have by being given it."""

import pytest

from tests.migrate.running import check_project_on_card, check_same

HEAD = """
import torch
from torch import nn
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
torch.manual_seed(0)
xs = torch.randn(8, 3)
"""
LOOP = """
for i in range(3):
    x = xs[i:i + 4].to(device)
    loss = (FIRST(x) + SECOND(x)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f'{loss.item():.5f}')
"""
MADE = "nn.Linear(3, 2).to(device)"
SGD = "opt = torch.optim.SGD(net.parameters(), 0.1)\n"
ALL = "opt = torch.optim.SGD([p for n in NETS for p in n.parameters()], 0.1)\n"
LIST, VALUES = "enumerate(nets):", "enumerate(nets.values()):"
HELD = [
    (f"nets = [{MADE}, {MADE}]\n" + ALL.replace("NETS", "nets"), "nets[0]", "nets[1]", LIST),
    (f"nets = [{MADE} for _ in range(2)]\n" + ALL.replace("NETS", "nets"), "nets[0]", "nets[1]", LIST),
    (f"nets = []\nfor _ in 'ab':\n    nets.append({MADE})\n" + ALL.replace("NETS", "nets"), "nets[0]", "nets[1]", LIST),
    (f"nets = ({MADE}, {MADE})\n" + ALL.replace("NETS", "nets"), "nets[0]", "nets[1]", LIST),
    (f"a, b = {MADE}, {MADE}\nnets = [a, b]\n" + ALL.replace("NETS", "nets"), "nets[0]", "nets[1]", LIST),
    (f"nets = list({MADE} for _ in 'ab')\n" + ALL.replace("NETS", "nets"), "nets[0]", "nets[1]", LIST),
    (f"def one():\n    return {MADE}\nnets = [one(), one()]\n"
     + ALL.replace("NETS", "nets"), "nets[0]", "nets[1]", LIST),
    (f"nets = tuple([{MADE}, {MADE}])\n" + ALL.replace("NETS", "nets"), "nets[0]", "nets[1]", LIST),
    (
        "a, b = nn.Linear(3, 2), nn.Linear(3, 2)\nnets = [n.to(device) for n in (a, b)]\n"
        + ALL.replace("NETS", "nets"),
        "nets[0]",
        "nets[1]",
        LIST,
    ),
    (f"nets = {{'a': {MADE}, 'b': {MADE}}}\n" + ALL.replace("NETS", "nets.values()"), "nets['a']", "nets['b']", VALUES),
    (f"nets = {{}}\nnets['a'] = {MADE}\n" + ALL.replace("NETS", "nets.values()"), "nets['a']", "nets['a']", VALUES),
    (
        f"def make():\n    net = {MADE}\n    return {{'net': net, 'n': 2}}, torch.optim.SGD(net.parameters(), 0.1)\n"
        "nets, opt = make()\n",
        "nets['net']",
        "nets['n'] * torch.mean",
        VALUES,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("made", "first", "second", "over"), HELD)
def test_they_become_parts_of_the_module(made, first, second, over):
    """They stayed on the CPU, and nothing averaged their gradients."""
    text = check_same(HEAD + made + LOOP.replace("FIRST", first).replace("SECOND", second), "module")
    assert f"for number, network in {over}" in text and 'self.add_module(f"nets_{number}", network)' in text
    assert ("hasattr" in text) == ("'n'" in made)


IN_LISTS = [
    (f"own = [{MADE}, {MADE}]\nnets = {{'a': own, 'n': 2}}\n", "nets['a'][0]", "nets['a'][1]"),
    (f"own = []\nfor _ in 'ab':\n    own.append({MADE})\nnets = {{'a': own}}\n", "nets['a'][0]", "nets['a'][1]"),
    (f"own = [None] + [{MADE} for _ in 'ab']\nnets = [own]\n", "nets[0][1]", "nets[0][2]"),
    (f"nets = {{'a': [{MADE}], 'b': {MADE}}}\n", "nets['a'][0]", "nets['b']"),
]


@pytest.mark.parametrize(("made", "first", "second"), IN_LISTS)
def test_so_do_those_of_a_list_in_it(made, first, second):
    """The list is read for the optimizer alone, of which the script makes one or another."""
    net = f"net = {MADE}\n"
    chosen = f"if len(nets):\n    {SGD}else:\n    {SGD}"
    text = check_same(
        HEAD + net + made + chosen + LOOP.replace("FIRST", f"net(x) * {first}").replace("SECOND", second), "module"
    )
    assert "enumerate(held if isinstance(held, list) else [held]):" in text
    assert 'self.add_module(f"nets_{number}_{place}", network)' in text


@pytest.mark.parametrize(
    ("made", "first", "second"),
    [
        (f"net = {MADE}\nkinds = {{'a': [1.0, 2.0]}}\n{SGD}", "net", "kinds['a'][0] * net"),
        (f"net = {MADE}\nown = [3.0]\nkinds = {{'a': own}}\n{SGD}", "net", "kinds['a'][0] * net"),
        (f"a, b = {MADE}, {MADE}\nnets = [a, b]\n{ALL.replace('NETS', '(a, b)')}", "nets[0]", "b"),
        (f"net = {MADE}\nscales = [2.0, 3.0]\n{SGD}", "net", "scales[0] * net"),
        (f"nets = nn.ModuleList([{MADE}, {MADE}])\n{ALL.replace('NETS', 'nets')}", "nets[0]", "nets[1]"),
        (
            f"nets = nn.ModuleList([])\nfor _ in 'ab':\n    nets.append({MADE})\n{ALL.replace('NETS', 'nets')}",
            "nets[0]", "nets[1]",
        ),
    ],
)  # fmt: skip
def test_what_it_has_already_and_what_is_no_network_are_left_alone(made, first, second):
    text = check_same(HEAD + made + LOOP.replace("FIRST", first).replace("SECOND", second), "module")
    assert "add_module" not in text


def test_where_the_trainer_would_switch_their_modes_the_switches_stay_the_scripts():
    made = f"net = {MADE}\nteachers = [{MADE}, {MADE}]\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
    loaders = "from torch.utils.data import DataLoader\nloader, val_loader = DataLoader(xs, 4), DataLoader(xs, 2)\n"
    loop = (
        "for epoch in range(2):\n    net.train()\n    for x in loader:\n        x = x.to(device)\n"
        "        loss = (net(x) - teachers[0](x)).pow(2).mean()\n        opt.zero_grad()\n        loss.backward()\n"
        "        opt.step()\n    net.eval()\n    total = 0\n    with torch.no_grad():\n        for x in val_loader:\n"
        "            x = x.to(device)\n            total += (net(x) - teachers[1](x)).pow(2).mean().item()\n"
        "    print(total / len(val_loader))\n"
    )
    text = check_same(HEAD + made + loaders + loop, "module")
    assert "add_module" in text and "self.net.eval()" in text and "validation_step" not in text


def test_those_of_another_files_class_are_parts_too(tmp_path):
    kinds = "import torch\n\n\nclass Net(torch.nn.Linear):\n    pass\n\n\nclass Wide(torch.nn.Module):\n"
    kinds += "    def __init__(self):\n        super().__init__()\n        self.fc = torch.nn.Linear(3, 2)\n\n"
    kinds += "    def forward(self, x):\n        return self.fc(x)\n"
    made = "from kinds import Wide\nnets = [Wide(), Wide()]\n[n.to(device) for n in nets]\n" + ALL.replace(
        "NETS", "nets"
    )
    text = HEAD + made + LOOP.replace("FIRST", "nets[0]").replace("SECOND", "nets[1]")
    texts = check_project_on_card(tmp_path, main=text, kinds=kinds)
    assert 'self.add_module(f"nets_{number}", network)' in texts["main"]
