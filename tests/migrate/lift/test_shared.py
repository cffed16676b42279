"""Names that a script's loop counts with and its functions read: they stay globals; run before and after."""

import re
from textwrap import indent

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests import forked
from tests.migrate.running import check_same, run

HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(24, 6)
loader = DataLoader(TensorDataset(x, x.sum(1)), batch_size=8, shuffle=True)
net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
{function}
seen = 0
best = 1e9
last = None
"""
LOOP = """\
for epoch in range(3):
    {first}
    total = 0.0
    for step, (a, b) in enumerate(loader):
        loss = (net(a).squeeze(1) - b).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        {inside}
    {end}
    print(epoch, f"{{total / len(loader):.4f}}")
"""
REPORT = """
def report(*values):
    print({read}, *values)
"""


def script(read, inside="pass", end="pass", first="pass", function=REPORT):
    given = {"inside": inside, "end": end, "first": first}
    body = LOOP.format(**{k: v.replace("\n", "\n" + " " * (8 if k == "inside" else 4)) for k, v in given.items()})
    return HEAD.format(function=function.format(read=read)) + body


STAY = {
    "a count of steps": script("seen", "seen += 1\nreport()"),
    "computed of the numbers of epoch and step": script(
        "seen", "seen = epoch * len(loader) + step\nif seen % 2 == 0:\n    report(f'{loss.item():.4f}')"
    ),
    "the number of the step": script("epoch, step", "report()"),
    "steps from one on": script("step", "report()").replace("enumerate(loader)", "enumerate(loader, 1)"),
    "the best so far": script("best", end="if total < best:\n    best = total\n    report()"),
    "several, and one of another": script(
        "seen, best, step", "seen += 1\nif seen % 2:\n    report()", "best = min(best, total)\nreport()"
    ),
    "begun beside another": script("seen", "seen += 1\nreport()").replace(
        "seen = 0\nbest = 1e9", "seen, best = 0, 1e9"
    ),
    "an infinity": script("best", end="best = min(best, total)\nreport()").replace("1e9", "float('inf')"),
    "a count of the batches of which the loss is low": script("seen", "if loss.item() < 1:\n    seen += 1\nreport()"),
    "a flag": script("last", "if step == 1 and not last:\n    last = True\n    report()"),
    "read by what is called": script(
        "seen", "seen += 1\nagain()", function=REPORT + "\ndef again():\n    report()\n    report(1)\n"
    ),
    "read after the loop as well": script("seen", "seen += 1\nreport()") + "print(seen)\nreport()\n",
}
BATCHES = """
def collate(samples):
    return torch.stack([s[0] + seen for s in samples]), torch.stack([s[1] for s in samples])

loader = DataLoader(TensorDataset(x, x.sum(1)), batch_size=8, collate_fn=collate)
"""
KEPT = {
    "what a collate_fn reads as well": script("seen", "seen += 1\nreport()", function=REPORT + BATCHES),
    "a batch": script("a.shape", "report()"),
    "a sum over batches": script("round(total, 4)", "report()"),
    "what is computed of a batch": script("last > 1", "last = loss.item()\nreport()"),
    "what a function adds of a batch": script(
        "round(seen, 4)",
        "add(loss.item())\nprint(f'{seen:.4f}')",
        function=REPORT + "\ndef add(v):\n    global seen\n    seen += v\n",
    ),
    "a tensor": script("last", end="last *= 0.5\nreport()").replace("last = None", "last = torch.ones(2)"),
    "of a list": script("last", "last = [step]\nreport()"),
}


@pytest.mark.parametrize("text", STAY.values(), ids=STAY.keys())
def test_numbers_of_the_loop_stay_globals(text):
    assert "        global " in check_same(text, "module")


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_what_ranks_have_each_its_own_keeps_the_loop(text):
    check_same(text, "loop")


COUNT = (
    REPORT
    + """
def count():
    global seen
    seen += 1
"""
)
IN_MAIN = """
def main():
    seen = 0

    def report():
        print(seen)

"""


def test_what_a_function_counts_stays_its_global():
    text = script("seen", "count()\nif seen > 3:\n    report()", function=COUNT)
    assert "self.seen" not in check_same(text, "module")


def test_what_an_evaluation_counts_is_each_process_own():
    evaluated = (
        "for a, b in loader:\n    with torch.no_grad():\n        seen += 1\n    print(f'{net(a).sum():.4f}')\nreport()"
    )
    assert "def validation_step" not in check_same(script("seen", end=evaluated), "module")


def test_names_of_a_function_are_no_globals():
    body = LOOP.format(first="pass", inside="seen += 1\n        report()", end="pass")
    text = HEAD.partition("{function}")[0] + IN_MAIN + indent(body, "    ") + "\nmain()\n"
    check_same(text, "loop")


def test_a_local_of_the_same_name_is_another():
    text = script("epoch", "report()", function="\ndef report():\n    seen = step = 1\n    print(seen, step)\n")
    assert "global" not in check_same(text, "module")


@pytest.mark.parametrize("name", ["computed of the numbers of epoch and step", "several, and one of another"])
def test_two_processes_report_what_one_does(tmp_path, name):
    (tmp_path / "train.py").write_text(migrate_text(STAY[name]).text)
    ran = forked.ptrun("--accelerator", "cpu", "--devices", "2", "--global-batch", "train.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    lines = [s for s in ran.stdout.splitlines() if not s.startswith("ptmigrate")]
    expected = run(STAY[name]).output.splitlines()
    assert len(lines) == len(expected)
    for ours, theirs in zip(lines, expected, strict=True):
        a, b = ([float(n) for n in re.findall(r"[\d.]+", line)] for line in (ours, theirs))
        assert a == pytest.approx(b, abs=2e-4)
