"""A network that the script brings to the CPU for a while, straight or by a function that is told where to."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_project_on_card

TOOLS = {
    "loop": "def to_device(device, *nets):\n    for net in nets:\n        net.to(device)\n",
    "list": "def to_device(device, *nets):\n    return [net.to(device) for net in nets]\n",
    "one": "def to_device(where, net):\n    net.to(where)\n    return net\n",
}
MAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
TOOLS

torch.manual_seed(0)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
X = torch.randn(16, 4)
net = nn.Linear(4, 3)
to_device(device, net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(X, torch.randint(0, 3, (16,))), batch_size=4)


def sample(net):
    return [net(X[i][None]).argmax(1).item() for i in range(5)]


for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    AWAY
    with torch.no_grad():
        found = FOUND
    BACK
    print(loss.item(), found)
"""
SAMPLED = "sample(net)"
FOUND = [
    SAMPLED,
    "net(X[:4]).numpy().sum()",
    "sum((net(x).argmax(1) == y).sum().item() for x, y in loader)",
    "[int(net(x).argmax(1).eq(y).sum()) for x, y in loader]",
]
AWAY, BACK = "to_device(torch.device('cpu'), net)", "to_device(device, net)"


def script(found=SAMPLED, away=AWAY, back=BACK, tools=TOOLS["loop"]):
    text = MAIN.replace("TOOLS", f"\n\n{tools}").replace("AWAY", away).replace("BACK", back)
    return text.replace("FOUND", found)


@pytest.mark.parametrize("tools", TOOLS)
@pytest.mark.parametrize("away", [AWAY, "to_device('cpu', net)"])
def test_it_stays_there_and_comes_back_to_the_modules_device(tmp_path, tools, away):
    result = check_on_card(tmp_path, script(away=away, tools=TOOLS[tools]))
    assert "to_device(self.device, self.net)" in result and away.replace("net)", "self.net)") in result


@pytest.mark.parametrize("found", FOUND)
@pytest.mark.parametrize("away, back", [(AWAY, BACK), ("net.cpu()", "net.cuda()")])
def test_so_does_what_it_works_with(tmp_path, found, away, back):
    check_on_card(tmp_path, script(found, away, back))


@pytest.mark.parametrize("found", FOUND[:2])
def test_by_a_function_of_another_file(tmp_path, found):
    texts = check_project_on_card(
        tmp_path, main=script(found, tools="from tools import to_device\n"), tools=TOOLS["loop"]
    )
    assert "net.to(device)" in texts["tools"] and "to_device(self.device, self.net)" in texts["main"]


def test_an_evaluation_there_is_not_lifted(tmp_path):
    lines = ["net.cpu()", "found = 0", "with torch.no_grad():", "    for x, y in loader:"]
    lines += ["        found += net(x).argmax(1).eq(y).sum().item()"]
    away = "\n    ".join(lines)
    result = check_on_card(tmp_path, script("found", away, "net.to(device)"))
    assert "validation_step" not in result and "on_device(loader, self.net)" in result.replace(
        "self.trainer.train_dataloader", "loader"
    )


def test_a_function_that_nobody_asks_for_the_cpu_only_moves():
    result = migrate_text(script(away="pass", back="pass")).text
    assert "def to_device(*nets):\n    pass\n" in result and "to_device(net)" in result


def test_nor_does_one_where_the_cpu_is_the_scripts_device():
    text = script(away="pass", back="pass").replace("'cuda' if torch.cuda.is_available() else 'cpu'", "'cpu'")
    assert "net.to(" not in migrate_text(text).text
