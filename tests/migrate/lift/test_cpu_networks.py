"""A network that the script keeps on the CPU on purpose, a teacher, stays there beside those that are placed."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,))), batch_size=4)
net, teacher = nn.Linear(4, 3).to(device), nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        with torch.no_grad():
            soft = SOFT
        out = net(x)
        loss = nn.functional.cross_entropy(out, y) + nn.functional.mse_loss(out, soft)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""
THERE = ["teacher(x.cpu()).to(device)", "teacher(x.to('cpu')).cuda()", "teacher(x.detach().cpu()).to(x.device)"]


@pytest.mark.parametrize("soft", THERE)
def test_it_stays_there(tmp_path, soft):
    assert "        self.teacher.cpu()\n" in check_on_card(tmp_path, SCRIPT.replace("SOFT", soft))


def test_one_that_is_given_the_batch_goes_with_the_others():
    text = SCRIPT.replace("SOFT", "teacher(x)").replace("3)\nopt", "3).to(device)\nopt")
    assert ".cpu()" not in migrate_text(text).text


def test_so_does_one_that_is_given_both():
    text = SCRIPT.replace("SOFT", "teacher(x.cpu()).to(device) + teacher(x)")
    assert "self.teacher.cpu()" not in migrate_text(text).text


MEMORY = """\
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = torch.zeros(16, 3).cuda() if torch.cuda.is_available() else torch.zeros(16, 3)

    def forward(self, index, out):
        self.kept[index] = 0.5 * self.kept[index] + out.detach()
        return self.kept[index]


"""


def test_so_does_one_that_is_given_numbers_of_the_batch_beside_it(tmp_path):
    text = SCRIPT.replace("SOFT", "memory(y.cpu().numpy().tolist(), net(x))")
    text = text.replace("torch.manual_seed", MEMORY + "torch.manual_seed").replace("net, teacher =", "net, memory =")
    text = text.replace("device), nn.Linear(4, 3)", "device), Memory()")
    assert "self.memory.cpu()" not in check_on_card(tmp_path, text)
