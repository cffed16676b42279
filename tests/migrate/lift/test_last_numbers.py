"""The number of an evaluation's last batch, read below its loop: batches are dealt out, the largest is the last."""

import pytest
from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.result import Options

from tests.migrate.running import check_same

HEAD = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs = torch.randn(24, 8)
ys = (xs @ torch.randn(8, 3)).argmax(1)
train = DataLoader(TensorDataset(xs, ys), batch_size=8, shuffle=True)
valid = DataLoader(TensorDataset(xs, ys), batch_size=SIZE)
model = torch.nn.Linear(8, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = torch.nn.CrossEntropyLoss()
"""
STEPS = """\
    for i, (x, y) in enumerate(train):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
"""
AT_ONCE = f"""
for epoch in range(2):
{STEPS}    print(i)
    total = 0
    with torch.no_grad():
        for i, (x, y) in enumerate(valid, 1):
            total += criterion(model(x), y).item()
    print(i, f'{{total / i:.5f}}')
print(i)
"""
RETURNED = f"""
def test(epoch):
    total = 0
    with torch.no_grad():
        for batch_idx, (x, y) in enumerate(valid):
            total += criterion(model(x), y).item()
    print(f'{{total / (batch_idx + 1):.5f}}')
    return total / (batch_idx + 1), batch_idx

for epoch in range(2):
{STEPS}    mean, last = test(epoch)
    print(f'{{mean:.5f}}', last)
"""
INSIDE = AT_ONCE.replace("\n    print(i, f", "\n    print(f").replace("total / i:", "total:").replace("print(i)\n", "")
LARGEST = '"max")'


def script(body, size=6):
    return HEAD.replace("SIZE", str(size)) + body


@pytest.mark.parametrize("body", [AT_ONCE, RETURNED], ids=["at once", "returned"])
def test_that_of_all_is_read(body):
    result = check_same(script(body), "module")
    assert LARGEST in result and " = -1  #" in result


@pytest.mark.parametrize("body", [INSIDE, AT_ONCE.replace(", i", ", 24").replace("enumerate(valid, 1)", "valid")])
def test_where_nothing_reads_it_nothing_is_asked(body):
    result = migrate_text(script(body.replace("total / i", "total / 3").replace("print(i, f", "print(f"))).text
    assert LARGEST not in result.split("trainer = ")[0] and " = -1" not in result


def test_lightning_deals_otherwise_which_is_told():
    result = migrate_text(script(RETURNED), Options(framework="lightning"))
    assert LARGEST not in result.text and any("`batch_idx`" in n.message for n in result.attention)
