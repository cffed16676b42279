"""What an evaluation's last batch leaves, and is read when it is over: on two processes one alone would have it."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests import forked
from tests.migrate.running import check_same

SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs, ys = torch.randn(32, 4), torch.randint(0, 3, (32,))
train_loader = DataLoader(TensorDataset(xs, ys), batch_size=8)
test_loader = DataLoader(TensorDataset(xs[:20], ys[:20]), batch_size=SIZE)
net = torch.nn.Linear(4, 3)
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for epoch in range(2):
    for x, y in train_loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    hits, total = 0, 0.0
    with torch.no_grad():
        for x, y in test_loader:
            out = net(x)
            total += criterion(out, y).item()
            pred = out.argmax(1)
            hits += (pred == y).sum().item()
    print(f'{total / len(test_loader):.5f}', hits)
    AFTER
"""
LEFT = {
    "what is computed": "print(pred.tolist())",
    "the batch": "print(f'{x.sum().item():.4f}', y.tolist())",
    "both": "print((pred == y).sum().item())",
}
NOT_LEFT = {
    "nothing": "pass",
    "one that is made anew": "pred = net(xs[:2]).argmax(1)\n    print(pred.tolist())",
}
TWO = ("--accelerator", "cpu", "--devices", "2", "--global-batch")


def script(after, size="4"):
    return SCRIPT.replace("AFTER", after).replace("SIZE", size)


@pytest.mark.parametrize("after", LEFT.values(), ids=LEFT)
def test_every_process_evaluates_every_batch(after):
    assert "    divide_validation = False\n" in check_same(script(after), "module")
    told = [n.message for n in migrate_text(script(after)).attention if n.code == "PTM703"]
    assert any(m.startswith("every process evaluates every batch: `") for m in told)


@pytest.mark.parametrize("after", NOT_LEFT.values(), ids=NOT_LEFT)
def test_the_batches_are_divided(after):
    assert "divide_validation" not in check_same(script(after), "module")


@pytest.mark.parametrize("size", ["4", "20"], ids=["five batches", "one batch"])
def test_two_processes_print_what_one_printed(tmp_path, size):
    text = script("\n    ".join(LEFT.values()), size)
    (tmp_path / "old.py").write_text(text)
    (tmp_path / "new.py").write_text(migrate_text(text).text)
    one, two = forked.run("old.py", cwd=tmp_path), forked.ptrun(*TWO, "new.py", cwd=tmp_path)
    assert two.returncode == 0, two.stderr
    assert [line for line in two.stdout.splitlines() if "ddp" not in line] == one.stdout.splitlines() != []
