"""What a loop leaves of its batches on the CPU: in pairs that it keeps, and by another name of the network."""

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
net = nn.Linear(4, 3).to(device)
raw = net
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    right, kept = 0, []
    for x, y in loader:
        out = net(x.to(device))
        loss = nn.functional.cross_entropy(out, y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        STEP
    for x, y in loader:
        LOOP
    print(loss.item(), right, SHOWN)
"""
PAIRED = "sum((o.argmax(1) == t).sum().item() for o, t in kept)"


def script(step="pass", loop="pass", shown="0"):
    return SCRIPT.replace("STEP", step).replace("LOOP", loop).replace("SHOWN", shown)


@pytest.mark.parametrize("kept", ["(out.detach().cpu(), y)", "(out.cpu().detach(), y.long())"])
def test_pairs_of_a_step(tmp_path, kept):
    check_on_card(tmp_path, script(step=f"kept.append({kept})", shown=PAIRED))


CALLS = [
    "right += (raw(x.to(device)).argmax(1).cpu() == y).sum().item()",
    "p = raw(x.to(device)).argmax(1).cpu()\n        right += int((p == y).sum())",
    "p = raw(x.to(device)).detach().cpu().numpy()\n        right += int((p.argmax(1) == y.numpy()).sum())",
]


@pytest.mark.parametrize("loop", CALLS)
def test_a_loop_by_another_name_of_the_network(tmp_path, loop):
    check_on_card(tmp_path, script(loop=loop))


@pytest.mark.parametrize(
    "text",
    [
        script(step="kept.append((out.detach(), y.to(device)))", shown=PAIRED),
        script(step="kept.append((out.detach().argmax(1), 3))"),
        script(loop="right += (raw(x.to(device)).argmax(1) == y.to(device)).sum().item()"),
        script(loop="right += len(x)"),
    ],
)
def test_what_was_moved_or_meets_nothing_there_stays(text):
    assert ".cpu()" not in migrate_text(text).text
