"""What a script sets for its options and another file of the project reads: a device, and averages placed by it."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests import forked

AVERAGE = """\
from copy import deepcopy
import torch
class Average:
    def __init__(self, args, model):
        self.ema = deepcopy(model)
        {move}
        for p in self.ema.parameters():
            p.requires_grad_(False)
    def update(self, model):
        for a, b in zip(self.ema.parameters(), model.parameters()):
            a.mul_(0.9).add_(b.detach(), alpha=0.1)
"""
TRAIN = """\
import argparse
import torch
from torch import nn
from average import Average
def main():
    torch.manual_seed(0)
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu-id", default=0, type=int)
    args = parser.parse_args([])
    args.device = torch.device("cuda", args.gpu_id) if torch.cuda.is_available() else torch.device("cpu")
    model = nn.Linear(3, 2)
    model.to(args.device)
    opt = torch.optim.SGD(model.parameters(), 0.1)
    average = Average(args, model)
    loader = torch.utils.data.DataLoader(torch.ones(8, 3), 4)
    train(args, model, opt, average, loader)
    print(float(sum(p.sum() for p in average.ema.parameters())))
def train(args, model, opt, average, loader):
    for epoch in range(2):
        for x in loader:
            x = x.to(args.device)
            loss = model(x).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            average.update(model)
if __name__ == "__main__":
    main()
"""
READS = {"a move": "self.ema.to(args.device)", "a name for it": "self.args = args; self.ema.to(self.args.device)"}
NO_READS = {"none": "pass", "a tensor's": "print(model.weight.device)", "set there": "args.device = None"}


def migrated(folder, move):
    (folder / "average.py").write_text(AVERAGE.format(move=move))
    (folder / "train.py").write_text(TRAIN)
    done = {m.path.name: m for m in migrate_all(collect([folder / "train.py"]), Options())}
    assert done["train.py"].report.plan == "manual"
    return done


def run(folder):
    done = forked.run("train.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("move", READS.values(), ids=READS)
def test_what_another_file_reads_stays(tmp_path, move):
    done = migrated(tmp_path, move)
    text = done["train.py"].result.text
    assert "    args.device = torch.device(" in text and "model.to(args.device)" not in text
    assert not any("args.device = " in e.message for e in done["train.py"].report.edits)
    assert [n.code for n in done["average.py"].report.attention] == ["PTM104"]
    before = run(tmp_path)
    for m in done.values():
        m.path.write_bytes(m.data)
    assert run(tmp_path)[-1:] == before[-1:]


@pytest.mark.parametrize("move", NO_READS.values(), ids=NO_READS)
def test_what_no_other_file_reads_goes(tmp_path, move):
    assert "args.device" not in migrated(tmp_path, move)["train.py"].result.text


def test_a_copy_that_another_files_object_keeps_goes_where_the_module_is(tmp_path):
    text = migrated(tmp_path, "self.ema.to(args.device)")["train.py"].result.text
    assert "    def on_fit_start(self):\n        self.average.ema.to(self.device)\n" in text


PLACES = """
import argparse
import torch
from torch.utils.data import DataLoader, TensorDataset
from noise import noise
parser = argparse.ArgumentParser()
parser.add_argument('--device', default='cpu')
args = parser.parse_args()
net = torch.nn.Linear(3, 1).to(args.device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(torch.randn(8, 3), torch.randn(8, 1)), 4):
        x, y = x.to(args.device), y.to(args.device)
        loss = ((net(x + noise(GIVEN)) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("noise", "given"),
    [
        ("def noise(args):\n    return torch.randn(3, device=args.device)\n", "args"),
        ("def noise(x):\n    return torch.randn(3, device=x.device)\n", "x"),
    ],
)
def test_the_trainer_goes_where_the_option_says(tmp_path, noise, given):
    (tmp_path / "noise.py").write_text("import torch\n" + noise)
    (tmp_path / "train.py").write_text(PLACES.replace("GIVEN", given))
    done = {m.path.name: m for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    text = done["train.py"].result.text
    assert "accelerator=torch.device(args.device).type" in text and "add_argument('--device'" in text
