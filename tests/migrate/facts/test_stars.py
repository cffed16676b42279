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


@pytest.mark.parametrize(
    "before, expression, full",
    [
        ("from utils import t\n", "t.save", "torch.save"),
        ("from utils import t as u\n", "u.save", "torch.save"),
        ("from .utils import t\n", "t.save", "torch.save"),
        ("from common.utils import L\n", "L", "torch.utils.data.DataLoader"),
        ("from utils import dev\n", "dev", "utils.device"),
        (STAR, "dev", "utils.device"),
    ],
)
def test_names_that_are_asked_for_are_known_too(before, expression, full):
    there = "import torch as t\nfrom torch.utils.data import DataLoader as L\ndev = t.device('cuda')\n"
    assert resolved(expression, before, utils=there) == full


@pytest.mark.parametrize(
    "before, there",
    [
        ("from torch.utils import t\n", "import numpy as t"),
        ("from os.utils import t\n", "import numpy as t"),
        ("from others import t\n", "import numpy as t"),
        ("from utils import t\n", "t = 'a text'"),
        ("from utils import t\n", "t = make()"),
    ],
)
def test_those_of_libraries_and_of_other_values_are_not(before, there):
    assert resolved("t.zeros", before, utils=there) not in ("numpy.zeros", "utils.device.zeros")


def test_another_package_with_a_file_of_that_name_is_not_the_project_s(tmp_path):
    (tmp_path / "lib").mkdir()
    for name, full in (
        ("fancy.losses", "fancy.losses.cross_entropy"),
        ("lib.losses", "torch.nn.functional.cross_entropy"),
    ):
        facts = Facts(f"from {name} import cross_entropy\ncross_entropy\n")
        facts.others = (OtherFile("losses", "from torch.nn.functional import cross_entropy\n", "lib"),)
        assert facts.names.resolve(facts.tree.body[-1].value) == full


COMMON = "import torch as th\nimport torch.nn as nn\ndev = th.device('cuda' if th.cuda.is_available() else 'cpu')\n"
TRAIN = """
net = nn.Linear(4, 3).to(dev)
optimizer = th.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    for x in th.utils.data.DataLoader(th.randn(16, 4), 8):
        z = net(x.to(dev))
        loss = (th.softmax(z, dim=0) * z).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


@pytest.mark.parametrize("asks", ["from common import *\n", "from common import dev, nn, th\n"])
def test_a_script_that_has_torch_and_the_device_from_another_file(tmp_path, asks):
    """The moves stayed, and the batches were divided though their samples meet."""
    (tmp_path / "common.py").write_text(COMMON)
    (tmp_path / "train.py").write_text("# torch\n" + asks + TRAIN)
    done = {m.path.name: m.result for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    text = done["train.py"].text
    assert "divide_batches = False" in text and ".to(" not in text
    assert done["common.py"].text == COMMON
