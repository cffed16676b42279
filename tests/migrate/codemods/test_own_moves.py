"""T1: the call of an own `cuda()`, of a class of another file that makes tensors and moves them by it."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

ALIAS = """\
import torch
class Alias(object):
    def __init__(self, probs):
        self.prob = torch.zeros(len(probs))
        self.alias = torch.LongTensor([0] * len(probs))
    def cuda(self):
        self.prob = self.prob.cuda()
        self.alias = self.alias.cuda()
    def draw(self, n):
        return self.alias.index_select(0, torch.zeros(n, dtype=torch.long, device=self.prob.device))
"""
MEMORY = """\
import torch
from torch import nn
from alias import Alias
class Memory(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.negatives = Alias([1] * n)
        self.negatives.cuda()
        self.register_buffer("memory", torch.rand(n, 4))
    def forward(self, x):
        return self.memory[self.negatives.draw(x.size(0))]
"""
NAMED = "        negatives = Alias([1] * n)\n        negatives.cuda()\n        self.negatives = negatives\n"
OF_NAME = MEMORY.replace(MEMORY[MEMORY.index("        self.negatives =") : MEMORY.index("        self.reg")], NAMED)


def migrated(folder, alias, memory):
    (folder / "alias.py").write_text(alias)
    (folder / "main.py").write_text(memory)
    done = {m.path.name: m for m in migrate_all(collect([folder / "main.py"]), Options())}
    return done["main.py"]


@pytest.mark.parametrize(
    ("alias", "memory"),
    [
        (ALIAS, MEMORY),
        (ALIAS, MEMORY.replace("from alias import Alias", "import alias").replace("Alias(", "alias.Alias(")),
        (ALIAS, OF_NAME),
        (ALIAS.replace("(self)", "(self, device=None)", 1), MEMORY.replace(".cuda()", ".cuda(0)")),
    ],
    ids=["an attribute", "of a module", "a name", "a number"],
)
def test_it_goes_and_is_told(tmp_path, alias, memory):
    m = migrated(tmp_path, alias, memory)
    assert ".cuda(" not in m.result.text
    told = [n.message for n in m.report.attention if n.code == "PTM101"]
    assert len(told) == 1 and "own cuda() moves `self.prob` and `self.alias`" in told[0]


@pytest.mark.parametrize(
    "alias",
    [
        "from torch import nn\nclass Alias(nn.Module):\n    def __init__(self, p):\n        super().__init__()\n"
        "    def draw(self, n):\n        return [0] * n\n",
        "from torch import nn\nclass Alias:\n    def __init__(self, p):\n        self.net = nn.Linear(2, 3)\n"
        "    def cuda(self):\n        self.net.cuda()\n",
        ALIAS.replace("(object)", "(torch.nn.Module)"),
        ALIAS.replace("def cuda", "def npu"),
        ALIAS.replace("self.alias.cuda()", "self.alias").replace("self.prob.cuda()", "self.prob"),
        ALIAS.replace("class Alias", "class Other"),
    ],
    ids=["a module", "of networks", "a module with its own", "another method", "moves nothing", "not there"],
)
def test_nothing_to_tell(tmp_path, alias):
    m = migrated(tmp_path, alias, MEMORY)
    assert not [n for n in m.report.attention if "own cuda()" in n.message]
