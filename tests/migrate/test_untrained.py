"""T1: in a project whose scripts train nothing all files keep their moves: no Trainer places what they make."""

import pytest
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.result import Options

from tests.migrate.running import check_project_on_card

DEVICE = "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
LOAD = """
import torch
from torch import nn

def load(device):
    net = nn.Linear(2, 2)
    net.to(device)
    return net

def predict(net, rows, device):
    x = torch.tensor(rows).to(device)
    with torch.no_grad():
        return net(x).cpu().tolist()
"""
LOADS = f"""
import torch
from help import load, predict

{DEVICE}torch.manual_seed(0)
net = load(device)
net.eval()
print(net(torch.ones(1, 2).to(device)).sum().item())
print(predict(net, [[1.0, 2.0]], device))
"""
EVALUATE = """
import torch

def evaluate(net, loader, device):
    net.eval()
    total = 0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            total += (net(x) - y).abs().sum().item()
    return total
"""
EVALUATES = f"""
import torch
from torch.utils.data import DataLoader, TensorDataset
from help import evaluate

{DEVICE}torch.manual_seed(0)
net = torch.nn.Linear(2, 1).to(device)
loader = DataLoader(TensorDataset(torch.randn(8, 2), torch.randn(8, 1)), 3)
print(evaluate(net, loader, device))
"""


@pytest.mark.parametrize(("main", "help"), [(LOADS, LOAD), (EVALUATES, EVALUATE)])
def test_its_networks_are_where_their_inputs_are(tmp_path, main, help):
    assert check_project_on_card(tmp_path, main=main, help=help) == {"main": main, "help": help}


def test_a_class_of_another_file_follows_what_it_is_given(tmp_path):
    net = "import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n"
    net += "        super().__init__()\n        self.fc = nn.Linear(2, 2)\n\n    def forward(self, x):\n"
    net += "        return self.fc(x) + torch.zeros(2).cuda()\n"
    main = f"import torch\nfrom help import Net\n{DEVICE}torch.manual_seed(0)\nnet = Net().to(device)\n"
    main += "print(net(torch.ones(1, 2).to(device)).sum().item())\n"
    texts = check_project_on_card(tmp_path, main=main, help=net)
    assert texts["main"] == main and "torch.zeros(2).type_as(x)" in texts["help"]


TRAINS = """
import torch
from help import evaluate

DEVICE
net = torch.nn.Linear(2, 1).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 2), torch.randn(8, 1)), 4)
for epoch in range(2):
    for x, y in loader:
        loss = (net(x.to(device)) - y.to(device)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(evaluate(net, loader, device))
"""


@pytest.mark.parametrize("folder", [True, False])
def test_what_a_script_that_trains_shares_is_for_its_training(tmp_path, folder):
    for name, text in (("train", TRAINS.replace("DEVICE", DEVICE)), ("main", EVALUATES), ("help", EVALUATE)):
        (tmp_path / f"{name}.py").write_text(text)
    done = migrate_all(collect([tmp_path if folder else tmp_path / "train.py"]), Options())
    texts = {m.path.stem: m.result.text for m in done}
    assert "x, y = x.to(device), y.to(device)" not in texts["help"] and "Trainer(" in texts["train"]
    assert not folder or "net = torch.nn.Linear(2, 1)\n" in texts["main"]


def test_what_such_a_script_shares_may_be_a_network_alone(tmp_path):
    net = "import torch\n\nclass Net(torch.nn.Linear):\n    pass\n"
    trains = TRAINS.replace("DEVICE", DEVICE).replace("evaluate(net, loader, device)", "epoch")
    main = f"import torch\nfrom help import Net\n{DEVICE}net = Net(2, 1).to(device)\n"
    main += "print(net(torch.ones(1, 2).to(device)).sum().item())\n"
    for name, text in (("train", trains.replace("evaluate", "Net")), ("main", main), ("help", net)):
        (tmp_path / f"{name}.py").write_text(text)
    texts = {m.path.stem: m.result.text for m in migrate_all(collect([tmp_path]), Options())}
    assert texts["main"] == main and "Trainer(" in texts["train"]


LEARNER = """
import torch
import torch.nn.functional as F
from torch import nn

class Learner:
    def __init__(self):
        self.network = nn.Linear(4, 3)
        self.network.cuda()
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1)

    def learn(self, batch):
        x, y = batch
        x, y = x.cuda(), y.cuda()
        shift = torch.zeros(4).cuda().requires_grad_()
        shift = shift - 0.5 * torch.autograd.grad(F.cross_entropy(self.network(x + shift), y), shift)[0]
        loss = F.cross_entropy(self.network(x + shift), y)
        for p, g in zip(self.network.parameters(), torch.autograd.grad(loss, self.network.parameters())):
            p.grad = g
        self.optimizer.step()
        return loss.item()
"""
LEARNS = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from help import Learner

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,))), batch_size=8)
learner = Learner()
for epoch in range(3):
    print(epoch, sum(learner.learn(batch) for batch in loader))
"""
BY_ITSELF = "`self.optimizer.step()`: no backward() shows the runtime its gradients: every process trains by itself"


def test_where_no_backward_shows_the_training_what_it_trains_keeps_its_place(tmp_path):
    after = check_project_on_card(tmp_path, main=LEARNS, help=LEARNER)
    assert after["help"].count('.to("cuda" if torch.cuda.is_available() else "cpu")') == 4
    (tmp_path / "main.py").write_text(LEARNS)
    (tmp_path / "help.py").write_text(LEARNER)
    done = migrate_all(collect([tmp_path / "main.py"]), Options())
    assert [n.message.startswith(BY_ITSELF) for m in done for n in m.report.attention if n.code == "PTM703"] == [True]


NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x) + torch.cuda.FloatTensor(x.size(0), 2).fill_(0)
"""
TRAIN = """
import torch
from torch import nn
from net import Net
from torch.utils.data import DataLoader, TensorDataset

model = nn.DataParallel(Net()).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(torch.randn(8, 4), torch.zeros(8).long()), batch_size=4):
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TEST = """
import torch
from net import Net
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.DataParallel(Net()).cuda()
model.eval()
for x, y in DataLoader(TensorDataset(torch.randn(8, 4), torch.zeros(8).long()), batch_size=4):
    y = y.cuda()
    print(torch.nn.functional.cross_entropy(model(x), y).item())
"""


def test_a_second_run_finds_the_evaluation_as_the_first_did(tmp_path):
    """`torch.cuda.FloatTensor` of a network that another script trains moves something, and is `.to(x.device)` then."""
    for name, text in {"net": NET, "train": TRAIN, "test": TEST}.items():
        (tmp_path / f"{name}.py").write_text(text)
    for again in (False, True):
        done = migrate_all(collect([tmp_path]), Options(in_place=True))
        assert not (again and any(m.report.changed for m in done))
        for m in done:
            m.path.write_bytes(m.data)
    assert "cuda" not in (tmp_path / "test.py").read_text()
