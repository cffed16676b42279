"""Notes of one cause are one line of the text, with the lines that they are of; the JSON has each."""

import json

import pytest
from click.testing import CliRunner
from ptmigrate.migrate.cli import command
from ptmigrate.migrate.migrate import migrate_text
from ptmigrate.migrate.render import ONE_BY_ONE, render
from ptmigrate.migrate.report import Edit, FileReport, Note, Report

SAYS = "names a device: nothing here shows which it should be"


def _lines(tmp_path, notes, edits=()):
    file = FileReport("a.py", attention=list(notes), edits=list(edits), changed=True)
    render(Report([file]), tmp_path / "report.txt")
    return (tmp_path / "report.txt").read_text().splitlines()


def test_many_of_one_cause_are_one_line(tmp_path):
    notes = [Note(10 + i, 5, "PTM104", f"`x{i}.to(device)` {SAYS}") for i in range(ONE_BY_ONE + 1)]
    other = Note(12, 1, "PTM101", f"`x.to(device)` {SAYS}")
    lines = _lines(tmp_path, [*notes, other])
    assert lines[1:] == [
        f"  a.py:10:5: PTM104 `x0.to(device)` {SAYS}  "
        "(look at this, and at 5 more of its kind: lines 11, 12, 13, 14, 15)",
        f"  a.py:12:1: PTM101 `x.to(device)` {SAYS}  (look at this)",
        "1 file changed, 0 edits, 7 places to look at",
    ]


@pytest.mark.parametrize("kind", [Note, Edit])
def test_a_few_and_edits_are_told_one_by_one(tmp_path, kind):
    some = [kind(10 + i, 5, "PTM104", f"`x{i}.to(device)` {SAYS}") for i in range(ONE_BY_ONE + (kind is Edit))]
    lines = _lines(tmp_path, some if kind is Note else [], some if kind is Edit else [])
    assert len(lines) == 2 + len(some)


def test_what_says_something_else_is_told_by_itself(tmp_path):
    notes = [Note(10 + i, 5, "PTM104", f"`x.to(device)` names a device: it is {i}") for i in range(ONE_BY_ONE + 1)]
    assert len(_lines(tmp_path, notes)) == 2 + len(notes)


def test_the_json_has_each(tmp_path):
    made = "".join(f"x{i} = torch.zeros({i}).to(device)\n" for i in range(8))
    (tmp_path / "a.py").write_text(f"import sys\nimport torch\ndevice = sys.argv[1]\n{made}")
    shown = CliRunner().invoke(command, ["--check", str(tmp_path / "a.py")])
    rows = json.loads(CliRunner().invoke(command, ["--check", "--format", "json", str(tmp_path / "a.py")]).stdout)
    told = [n for n in rows["files"][0]["attention"] if n["code"] == "PTM104"]
    assert len(told) == 8 and shown.output.count("PTM104") == 1 and "at 7 more" in shown.output


ALONE = """\
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
args = parser.parse_args()
loader = DataLoader(TensorDataset(torch.randn(8, 6), torch.randint(0, 3, (8,))), batch_size=4)
model = nn.Linear(6, 3)
if args.local_rank != -1:
    torch.distributed.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = 0
for epoch in range(3):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    GUARD
        with torch.no_grad():
            best = max(best, sum((model(x).argmax(1) == y).sum().item() for x, y in loader))
"""
EVERY = "every process runs all of it"


def test_an_evaluation_of_rank_0_is_none_of_every_process():
    said = [n.message for n in migrate_text(ALONE.replace("GUARD", "if args.local_rank in [-1, 0]:")).attention]
    assert not any(EVERY in m for m in said)
    said = [n.message for n in migrate_text(ALONE.replace("GUARD", "if epoch > 0:")).attention]
    assert any(EVERY in m for m in said)
