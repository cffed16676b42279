"""The lines that a note names are those of the original, as its own is, however often the text has changed by then."""

from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.report import Note, at_line

BRANCHES = """\
import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--distributed", action="store_true")
parser.add_argument("--local_rank", type=int)
args = parser.parse_args()
if args.distributed:
    torch.cuda.set_device(args.local_rank)
    args.device = torch.device("cuda:{}".format(args.local_rank))
    torch.distributed.init_process_group(backend="nccl")
else:
    args.device = torch.device("cuda")
torch.manual_seed(0)
if args.device.type == "cuda":
    torch.cuda.manual_seed(0)
net = torch.nn.Linear(2, 2).to(args.device)
"""


def test_of_a_text_that_lost_branches():
    said = [n for n in migrate_text(BRANCHES).attention if "`args.device` stays" in n.message]
    assert [(n.line, n.message) for n in said] == [(12, "`args.device` stays: line 14 reads it")]


def test_what_is_quoted_and_what_is_of_another_file_stays():
    note = Note(3, 1, "PTM102", "`line 4` on line 5 (line 6) is read at line 7 (engine.py, line 8)")
    moved = at_line(note, lambda line: line + 10)
    assert moved == Note(13, 1, "PTM102", "`line 4` on line 15 (line 16) is read at line 17 (engine.py, line 8)")


SOLVER = """\
import torch
from torch.utils.data import DataLoader


class Solver:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.loader = DataLoader(torch.randn(20, 4), batch_size=4)
        self.net = torch.nn.Linear(4, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters(), 0.01)
        self.net.to(self.device)

    def train(self):
        it = iter(self.loader)
        fixed = next(it)
        fixed = fixed.to(self.device)
        for i in range(4):
            x = next(it).to(self.device)
            loss = self.net(x).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            print(i, self.net(fixed).sum().item())
"""


def test_of_a_file_that_the_loop_came_from(tmp_path):
    (tmp_path / "solver.py").write_text(SOLVER)
    (tmp_path / "main.py").write_text("# 1\n# 2\n# 3\nfrom solver import Solver\n\nSolver().train()\n")
    done = {m.path.stem: m.report for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    said = [n for n in done["solver"].attention if "stays" in n.message]
    assert [(n.line, n.message) for n in said] == [(7, "`self.device` stays: line 16 reads it")]


STEPPED = """\
import torch
import torch.nn as nn
device = "cuda" if torch.cuda.is_available() else "cpu"


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.again = nn.Linear(3, 6), nn.Linear(6, 6)
        self.reset(1)

    def reset(self, n):
        self.h = torch.zeros(n, 6).to(device)

    def forward(self, x):
        self.h = torch.tanh(self.fc(x) + self.again(self.h))
        return self.h


net = Cell().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
data = torch.randn(24, 5, 3)
for epoch in range(2):
    for i in range(0, 24, 8):
        x = data[i : i + 8].to(device)
        net.reset(8)
        loss = sum(net(x[:, t]).pow(2).mean() for t in range(5))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_of_two_that_read_a_device_the_one_that_no_step_takes():
    said = [n.message for n in migrate_text(STEPPED).attention if "`device` stays" in n.message]
    assert said == ["`device` stays: line 13 reads it"]
