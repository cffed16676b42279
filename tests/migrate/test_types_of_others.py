"""T11 over several files: a type of the GPU that another file names, and that the script casts and makes with."""

from pathlib import Path

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests import forked

CARD = Path(__file__).parents[1] / "simulated_card.py"
SETTINGS = """\
import torch

USE = torch.cuda.is_available()
dtype = torch.cuda.FloatTensor if USE else torch.FloatTensor
"""
SCRIPT = """\
import numpy as np
import torch
from torch import nn
IMPORT


class Memory:
    def __init__(self):
        self.draws = np.random.RandomState(0)

    def sample(self, n):
        return self.draws.rand(n, 3).astype("float32"), self.draws.rand(n, 1)


def act(net, seen):
    return net(torch.from_numpy(seen).type(TYPE)).sum().item()


def make(n):
    return nn.Linear(n, 1)


torch.manual_seed(0)
net = make(3).type(TYPE)
memory = Memory()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for t in range(6):
    x, y = memory.sample(4)
    x, y = torch.from_numpy(x).type(TYPE) / 2.0, torch.from_numpy(y).type(TYPE)
    loss = (net(x) - y + TYPE([0.5])).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(t, loss.item(), act(net, memory.sample(1)[0]))
"""


@pytest.mark.parametrize(
    ("imported", "name"),
    [
        ("from settings import dtype", "dtype"),
        ("from settings import dtype as kind", "kind"),
        ("from settings import *", "dtype"),
        ("import settings", "settings.dtype"),
    ],
)
def test_it_is_placed_as_its_type_said(tmp_path, imported, name):
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
    (tmp_path / "old" / "settings.py").write_text(SETTINGS)
    (tmp_path / "old" / "train.py").write_text(SCRIPT.replace("IMPORT", imported).replace("TYPE", name))
    for m in migrate_all(collect([tmp_path / "old" / "train.py"]), Options()):
        (tmp_path / "new" / m.path.name).write_bytes(m.data)
        assert not [n for n in m.report.attention if n.code == "PTM108"]
    new = (tmp_path / "new" / "train.py").read_text()
    assert "net = make(3).to(torch.float32)\n" in new and f".type({name})" not in new
    for on in ((), (CARD,)):
        runs = [forked.run(*on, "train.py", cwd=tmp_path / folder) for folder in ("old", "new")]
        assert [r.returncode for r in runs] == [0, 0], runs[0].stderr + runs[1].stderr
        old, made = ([line for line in r.stdout.splitlines() if not line.startswith("ptm")] for r in runs)
        assert len(old) == 6 and made == old


@pytest.mark.parametrize(
    "settings",
    ["import torch\ndtype = torch.float32\n", "import torch\nclass A:\n    dtype = torch.cuda.FloatTensor\n"],
)
def test_what_is_no_such_type_stays(tmp_path, settings):
    (tmp_path / "settings.py").write_text(settings)
    text = "import torch\nfrom settings import dtype\n\n\ndef f(x):\n    return torch.ones(2).type(dtype) * x.t()\n"
    (tmp_path / "train.py").write_text(text)
    done = migrate_all(collect([tmp_path / "train.py"]), Options())
    assert ".type(dtype)" in done[0].data.decode()
