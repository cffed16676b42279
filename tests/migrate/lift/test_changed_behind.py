"""What changes below backward() what the loss is computed of stays below it: a memory bank, centres, a queue."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.running import check_same

BANK = """
class Bank:
    def __init__(self):
        self.vectors = torch.randn(24, 6)
        self.seen = 0

    def update(self, idx, z):
        self.vectors[idx] = 0.5 * self.vectors[idx] + 0.5 * z

    def count(self, n):
        self.seen += n
"""
TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
{made}

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.arange(24), torch.randn(24, 5)), 8)
net = nn.Linear(5, 6)
bank, meter, hits = {bank}, {meter}, torch.zeros(3)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for idx, x in loader:
        z = net(x)
        loss = criterion(z @ {vectors}.t(), idx)
        opt.zero_grad()
        loss.backward()
        opt.step()
        {below}
    print(f'{{loss.item():.5f}} {{hits.sum().item():.3f}}')
"""
OBJECT = {"made": BANK, "bank": "Bank()", "meter": "Bank()", "vectors": "bank.vectors"}
TENSOR = {"made": BANK, "bank": "torch.randn(24, 6)", "meter": "Bank()", "vectors": "bank"}
BEHIND = {
    "a part of a tensor": TENSOR | {"below": "bank[idx] = z.detach()"},
    "added to a part": TENSOR | {"below": "bank[idx] += z.detach()"},
    "in place": TENSOR | {"below": "bank.mul_(0.9)"},
    "a part in place": TENSOR | {"below": "bank[idx].copy_(z.detach()) if epoch else bank.add_(0.1)"},
    "a method of an object": OBJECT | {"below": "bank.update(idx, z.detach())"},
    "a part of an object's": OBJECT | {"below": "bank.vectors[idx] = z.detach()"},
    "under a condition": OBJECT | {"below": "if epoch:\n            bank.update(idx, z.detach())"},
}
NOT = {
    "another object": OBJECT | {"below": "meter.count(len(x))"},
    "a part of another tensor": OBJECT | {"below": "hits[epoch] += loss.item()"},
    "nothing": OBJECT | {"below": "pass"},
}


@pytest.mark.parametrize("parts", BEHIND.values(), ids=BEHIND.keys())
def test_it_stays_behind(parts):
    check_same(TEXT.format(**parts), "manual")


@pytest.mark.parametrize("parts", NOT.values(), ids=NOT.keys())
def test_other_things_do_not_need_it(parts):
    check_same(TEXT.format(**parts), "module")


def test_an_object_of_another_file(tmp_path):
    text = TEXT.format(**(OBJECT | {"made": "from bank_of import Bank", "below": "bank.update(idx, z.detach())"}))
    (tmp_path / "main.py").write_text(text)
    (tmp_path / "bank_of.py").write_text("import torch\n" + BANK)
    done = {m.path.name: m.result for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert done["main.py"].plan == "manual"
