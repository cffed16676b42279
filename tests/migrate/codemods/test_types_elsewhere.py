"""T1: a type of a card that another file names: what is made with it is a tensor, and a buffer where it is kept."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.running import check_project_on_card

UTILS = "import torch\nTensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor\n"
NET = """\
from torch import nn
from utils import *


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.table = self.make(8, 4)

    def forward(self, x):
        return self.layer(x + self.table[: x.size(0)])

    def make(self, n, size):
        made = Tensor(n, size)
        made.fill_(0.5)
        return made
"""
MAIN = """\
import torch
from net import Net

torch.manual_seed(0)
model = Net()
if torch.cuda.is_available():
    model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=4)
for epoch in range(2):
    for x in data:
        x = x.cuda() if torch.cuda.is_available() else x
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, f"{loss.item():.5f}")
"""


@pytest.mark.parametrize("imports", ["from utils import *", "from utils import Tensor"])
def test_what_is_made_with_it_becomes_a_buffer(tmp_path, imports):
    texts = check_project_on_card(tmp_path, main=MAIN, net=NET.replace("from utils import *", imports), utils=UTILS)
    assert 'self.register_buffer("table", self.make(8, 4))' in texts["net"]
    again = migrate_all(collect([tmp_path / "main.py"]), Options())
    assert all(m.data.decode() == texts[m.path.stem] for m in again)


@pytest.mark.parametrize(
    "utils",
    [
        UTILS.replace("else torch.FloatTensor", "else torch.DoubleTensor"),
        UTILS + "Tensor = torch.randn\n",
        "def Tensor(n, size):\n    return None\n",
    ],
)
def test_a_name_of_something_else_is_no_tensor(tmp_path, utils):
    for name, text in {"main": MAIN, "net": NET, "utils": utils}.items():
        (tmp_path / f"{name}.py").write_text(text)
    done = {m.path.stem: m.data.decode() for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert "self.table = self.make(8, 4)" in done["net"]
