"""Networks that a step reaches through a function are the Module's own: else nothing would place or average them."""

import pytest

from tests.migrate.running import check_same

SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
shared = torch.nn.Linear(4, 4)
head = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(4, 1))


def net(x):
    return head(shared(x))


params = list(shared.parameters()) + list(head.parameters())
opt = torch.optim.Adam(params, lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 1)), batch_size=8)
for epoch in range(3):
    for x, y in loader:
        loss = ((net(x) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
"""
LISTED = "params = list(shared.parameters()) + list(head.parameters())\n"
BOTH = ("self.shared = shared", "self.head = head")


@pytest.mark.parametrize(
    "params",
    [
        LISTED,
        "params = [*shared.parameters()]\nparams.extend(head.parameters())\n",
        "params = list(shared.parameters())\nparams += list(head.parameters())\n",
        "nets = [shared, head]\nparams = []\nfor part in nets:\n    params += list(part.parameters())\n",
        "params = []\nfor part in (shared, head):\n    params.append({'params': part.parameters()})\n",
        "params = [{'params': shared.parameters()}, {'params': head.parameters(), 'lr': 0.1}]\n",
    ],
)
def test_networks_whose_parameters_come_by_another_name(params):
    result = check_same(SCRIPT.replace(LISTED, params), "module")
    assert all(line in result for line in BOTH)


TEACHES = "def teach(x):\n    return head(x)\n\n\ndef net(x):\n    return shared(x) - teach(x)\n"
DISTILLED = SCRIPT.replace(" + list(head.parameters())", "").replace(
    "def net(x):\n    return head(shared(x))\n", TEACHES
)


@pytest.mark.parametrize(
    "head",
    [
        "torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(4, 1))",
        "torch.nn.Linear(4, 1).eval().requires_grad_(False)",
        "torch.nn.Linear(4, 1).to('cuda' if torch.cuda.is_available() else 'cpu')",
        "Head()",
    ],
)
def test_one_that_functions_read_and_no_optimizer_steps(head):
    made = "torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(4, 1))"
    own = "class Head(torch.nn.Module):\n    def forward(self, x):\n        return x.mean(1, keepdim=True)\n\n\n"
    result = check_same(DISTILLED.replace(made, head).replace("shared =", f"{own}shared =", 1), "module")
    assert all(line in result for line in BOTH)


def test_a_global_network_of_a_loop_in_a_function():
    before, loop = SCRIPT.split("for epoch in")
    body = "".join(f"    {line}\n" for line in f"for epoch in{loop}".splitlines())
    result = check_same(f"{before}\n\ndef main():\n{body}\n\nmain()\n", "module")
    assert all(line in result for line in BOTH)


@pytest.mark.parametrize(
    "read",
    [
        "scale = max(0.5, 1.0)",
        "scale = torch.ones(1)",
        "scale = open",
        "class Scale:\n    pass\n\n\nscale = Scale()",
    ],
)
def test_what_functions_read_and_is_no_network_stays_the_scripts(read):
    text = SCRIPT.replace("def net(x):\n", f"{read}\n\n\ndef net(x):\n    assert scale is not None\n")
    assert "self.scale" not in check_same(text, "module")


EVALUATION = """    model.eval()
    with torch.no_grad():
        seen = 0.0
        for x, y in loader:
            seen += (head(x) + model(x)).sum().item()
    print(seen)
    model.train()
"""


def test_networks_keep_their_modes_where_others_are_switched():
    text = DISTILLED.replace("shared", "model").replace("    print(epoch", EVALUATION + "    print(epoch")
    switched = check_same(text.replace("head(x) + model(x)", "model(x)"), "module")
    assert "self.head = head" in switched and "def validation_step" in switched
    assert "self.model.eval()" in switched and "pass  # the script sets its models' modes itself" in switched
    named = check_same(text.replace("model.eval()", "model.eval()\n    head.eval()"), "module")
    assert "self.head = head" in named


def test_what_the_step_names_is_there_once():
    result = check_same(SCRIPT.replace("net(x) - y", "head(shared(x)) - y"), "module")
    assert all(result.count(line) == 1 for line in BOTH)


def test_networks_that_the_step_takes_from_a_list():
    text = SCRIPT.replace("params =", "parts = [shared, head]\nparams =", 1).replace(
        "net(x) - y", "parts[1](parts[0](x)) - y"
    )
    result = check_same(text, "module")
    assert all(line in result for line in BOTH)
