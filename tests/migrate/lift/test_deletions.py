"""What `del` empties is emptied in the lifted step, too; a name that it forgets is forgotten with the method. Run."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.seen = []

    def forward(self, x):
        y = self.fc(x)
        self.seen.append(y)
        return y

torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(9, 3), torch.randint(0, 2, (9,))), batch_size=3)
last, table = [], {}
for epoch in range(2):
    for x, y in loader:
        out = net(x)
        loss = nn.functional.cross_entropy(out, y) + 0.1 * sum(s.pow(2).mean() for s in net.seen)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last.append(loss.item())
        table[0] = len(last)
        DELETED
    print(epoch, sum(last), len(net.seen), len(table))
    AFTER
"""
PLAN = "manual"  # the list of the network is emptied after the step


@pytest.mark.parametrize(
    ("deleted", "after"),
    [
        ("del net.seen[:]", ""),
        ("del net.seen[:], last[:-1]", ""),
        ("del out, net.seen[:]", "del last[:]"),
        ("net.seen.clear()\n        del table[0]", ""),
        ("del net.seen; net.seen = []", ""),
    ],
)
def test_what_a_list_or_a_table_loses_it_loses_in_the_step(deleted, after):
    text = TEXT.replace("DELETED", deleted).replace("AFTER", after)
    check_same(text, PLAN)


@pytest.mark.parametrize("deleted", ["del out", "del out, y", "del (x, y)"])
def test_a_name_that_is_forgotten_needs_no_line(deleted):
    text = TEXT.replace("DELETED", f"net.seen.clear()\n        {deleted}").replace("AFTER", "")
    assert "del " not in check_same(text, PLAN)
