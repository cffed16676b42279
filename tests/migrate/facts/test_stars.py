"""What a star gives of a file of the project: names of torch that another file imports."""

import ast

import pytest
from ptmigrate.migrate.facts.other_files import OtherFile
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

STAR = "from utils import *\n"


def resolved(expression: str, before: str = STAR, **files: str) -> str | None:
    facts = Facts(f"{before}{expression}\n")
    facts.others = tuple(OtherFile(stem, text) for stem, text in files.items())
    last = facts.tree.body[-1]
    assert isinstance(last, ast.Expr)
    return facts.names.resolve(last.value)


@pytest.mark.parametrize(
    "files, expression, full",
    [
        ({"utils": "import torch as t"}, "t.save", "torch.save"),
        ({"utils": "from torch import optim"}, "optim.Adam", "torch.optim.Adam"),
        ({"utils": "from torch.utils.data import DataLoader as L"}, "L", "torch.utils.data.DataLoader"),
        ({"utils": "from module import *", "module": "import torch as t"}, "t.zeros", "torch.zeros"),
        ({"utils": "from utils import *\nimport torch as t"}, "t.zeros", "torch.zeros"),
        ({"utils": "t = 3\nimport torch as t"}, "t.zeros", "torch.zeros"),
    ],
)
def test_imports_there_are_known(files, expression, full):
    assert resolved(expression, **files) == full


@pytest.mark.parametrize(
    "before, there",
    [
        (STAR, "import torch as t\nt = open"),
        (STAR, "import torch as t\ndef t(): ..."),
        (STAR, "import torch as t\n__all__ = ['f']"),
        (STAR, "def f():\n    import torch as t"),
        (STAR, "if fast:\n    import torch as t"),
        (STAR, "from . import t"),
        (STAR, "from .torch import t"),
        (STAR, "import torch as t\nprint 3"),
        ("import utils\n", "import torch as t"),
        ("from others import *\n", "import torch as t"),
        (STAR + "t = 3\n", "import torch as t"),
        (STAR + "import numpy as t\n", "import torch as t"),
    ],
)
def test_others_are_not(before, there):
    assert resolved("t.zeros", before, utils=there) in (None, "numpy.zeros")


def test_names_that_begin_with_an_underscore_stay_there():
    assert resolved("_t.zeros", utils="import torch as _t") is None


def test_of_two_stars_the_last_counts():
    files = {"utils": "import torch as t", "more": "import time as t"}
    assert resolved("t.time", STAR + "from more import *\n", **files) == "time.time"
    assert resolved("t.save", "from more import *\n" + STAR, **files) == "torch.save"


SCRIPT = """\
import torchvision
from network import *

net = Net(2, 1)
optimizer = t.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    for x in t.utils.data.DataLoader(data, 4):
        loss = net(x.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
t.save(net.state_dict(), "net")
"""


def test_a_script_that_has_torch_by_stars_saves_once(tmp_path):
    """Every process wrote the file: nothing showed that t.save is torch's."""
    (tmp_path / "layers.py").write_text("import torch as t\nimport torch.nn as nn\n")
    (tmp_path / "network.py").write_text("from layers import *\nclass Net(nn.Linear): ...\n")
    (tmp_path / "train.py").write_text(SCRIPT)
    done = {m.path.name: m.result.text for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert 'rank_zero_save(net.state_dict(), "net")' in done["train.py"]
