"""Values that a step computes anew of themselves and of its loss: the batches are divided, the values are the same."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests import forked
from tests.migrate.running import check_same, on_one_and_two

SCRIPT = """\
import time
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
samples = torch.utils.data.TensorDataset(torch.randn(32, 3), torch.randint(0, 2, (32,)))
loader = torch.utils.data.DataLoader(samples, 8)
value, beta, low, since = BEGIN, 0.9, 9.0, 0
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        out = net(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        STEP
        print(f"{i} {float(value):.5f}")
    print(f"{float(value):.5f} {low:.5f} {since}")
"""
WRITTEN = 'open("seen", "w").write(f"{float(value):.4f} {low:.4f} {since}")\n'
RUNNING = {
    "a moving mean": ("0.0", "value = beta * value + (1 - beta) * loss.item()"),
    "from the first on": ("None", "value = loss.item() if value is None else beta * value + (1 - beta) * loss.item()"),
    "a mean so far": ("torch.zeros(1)", "value = (value * i + loss.detach()) / (i + 1)"),
    "the same in place": ("0.0", "value += (loss.item() - value) / (i + 1)"),
    "in two statements": ("0.0", "value *= beta|value += 0.1 * loss.item()"),
    "by another name": ("0.0", "seen = loss.item()|value = max(value, seen)"),
    "the lowest": ("9.0", "value = min(value, loss.item())"),
    "the lowest, by a branch": ("9.0", "if loss.item() < value:|    value = loss.item()"),
    "with a count": ("9.0", "if loss.item() < value:|    value = loss.item()|    since = 0|else:|    since += 1"),
    "another one's lowest": ("0.0", "value = beta * value + loss.item()|if value < low:|    low = value"),
    "an accuracy": ("0.0", "value = beta * value + 0.1 * (out.argmax(1) == y).float().mean().item()"),
    "a sum": ("0.0", "value = beta * value + (loss * len(x)).item()"),
    "more than one term": ("0.0", "value = value + loss.item() + x.size(0)"),
    "a tensor that takes a number": ("torch.zeros(())", "value = value + loss.item()"),
    "a tensor by two names": ("0", "value = value + loss.detach()|low = value.item()"),
    "a tensor in place": ("torch.zeros(1)", "value *= beta|value += 0.1 * loss.detach()"),
    "in some steps": ("0.0", "if i % 2 == 0:|    value = beta * value + loss.item()"),
    "the loss before": ("0.0", "low = value|value = loss.item()"),
}


def script(begin: str, step: str) -> str:
    return SCRIPT.replace("BEGIN", begin).replace("STEP", step.replace("|", "\n        "))


@pytest.mark.parametrize("change", RUNNING.values(), ids=RUNNING)
def test_they_are_the_same_with_shares_of_the_batch(tmp_path, monkeypatch, change):
    monkeypatch.chdir(tmp_path)  # the script writes there
    text = script(*change) + WRITTEN
    result = check_same(text, "module")
    assert 'divide_batches = "processes"' in result and "self.batch_" in result
    assert not any(n.code == "PTM703" for n in migrate_text(text).attention)
    one, two = on_one_and_two(tmp_path, text, result)
    assert (one / "seen").read_text() == (two / "seen").read_text()


@pytest.mark.parametrize("name", ["a moving mean", "with a count"])
def test_on_several_devices_of_one_process_a_batch_counts_once(tmp_path, name):
    text = script(*RUNNING[name])
    (tmp_path / "old.py").write_text(text)
    (tmp_path / "new.py").write_text(migrate_text(text).text)
    old = forked.run("old.py", cwd=tmp_path)
    new = forked.ptrun("--strategy", "dp", "--accelerator", "cpu", "--devices", "2", "new.py", cwd=tmp_path)
    assert new.returncode == 0, new.stderr
    assert [line for line in new.stdout.splitlines() if "on 2 devices" not in line] == old.stdout.splitlines()


WHOLE = {
    "a state of the samples": (
        "torch.zeros(8, 2)",
        "value = beta * value[: len(x)] + out.detach()|value = value.sum()",
    ),
    "the largest of the outputs": ("0.0", "value = beta * value + out.max().item()"),
    "a clock": ("0.0", "value = beta * value + (time.time() - low)|low = time.time()"),
    "a test of the samples": ("0.0", "if out.max() > 0:|    value = beta * value + loss.item()"),
    "in an inner loop over samples": ("0.0", "for o in out:|    value = beta * value + o.sum().item()"),
    "what may be differentiated": ("0.0", "value = beta * value + loss"),
    "what a forward sets": ("0.0", "value = beta * value + 0.1 * net.seen"),
    "what a function reads": ("0.0", "def seen():|    return net.seen|value = beta * value + seen()"),
    "what is cut off": ("0.0", "value = beta * value + 0.1 * int(loss.item() * 20)"),
    "what was cut off": ("0.0", "cut = int(loss.item() * 20)|value = max(value, cut)"),
    "by the way": ("0.0", "value, low = beta * value + loss.item(), low"),
}


@pytest.mark.parametrize("change", WHOLE.values(), ids=WHOLE)
def test_others_take_whole_batches(change):
    result = migrate_text(script(*change))
    assert "divide_batches = False" in result.text
    assert any("every process computes every training batch whole" in n.message for n in result.attention)


LEARNER = """\
import torch
from torch import nn


class Learner:
    def __init__(self):
        self.net = nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        samples = torch.utils.data.TensorDataset(torch.randn(32, 3), torch.randint(0, 2, (32,)))
        self.loader = torch.utils.data.DataLoader(samples, 8)
        self.value = 9.0

    def fit(self):
        for epoch in range(2):
            for x, y in self.loader:
                loss = nn.functional.cross_entropy(self.net(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                STEP
            print(f"{self.value:.5f}")


torch.manual_seed(0)
Learner().fit()
"""
OF_AN_OBJECT = [
    ("self.value = 0.9 * self.value + 0.1 * loss.item()", True),
    ("if loss.item() < self.value:\n                    self.value = loss.item()", True),
    ("self.value = 2 * self.value", False),  # the same on every rank
    ("print(self.value)", False),
]


@pytest.mark.parametrize(("step", "whole"), OF_AN_OBJECT)
def test_in_an_object_of_the_script_they_take_whole_batches(step, whole):
    """Each process kept that of its share there, and nothing was told."""
    text = check_same(LEARNER.replace("STEP", step), "module")
    assert ("divide_batches = False" in text) is whole


SUMS = ["value += loss.item()", "value += loss.item()|if i % 2:|    print(value)|    value = 0.0"]


@pytest.mark.parametrize("step", SUMS)
def test_a_sum_is_brought_together_where_it_is_read(step):
    result = migrate_text(script("0.0", step)).text
    assert "divide_batches" not in result
    assert "self.value += loss.item() * self.share" in result and "self.all_reduce(self.value)" in result
