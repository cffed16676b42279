"""T1: a function of another file that moves what it is given, and is given what nothing else places."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

SCRIPT = """\
import numpy
import torch
from torch import nn
from helpers import put
gpu = torch.cuda.is_available()
dataset = [torch.ones(2), torch.zeros(2)]
a = numpy.ones((4, 2))
net = nn.Linear(2, 1)
net.cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.ones(8, 2), 4):
        x = put(x)
        loss = (net(x) + {given}).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
MORE = "import torch\ndef put(x, gpu=True):\n    return x.float().cuda() if gpu else x\n"
ONLY = "import torch\ndef put(x, gpu=True):\n    return x.cuda() if gpu else x\n"
THERE = '.to("cuda" if torch.cuda.is_available() else "cpu")'
KEPT = {
    "more than a move": (MORE, "net(put(torch.from_numpy(a)))"),
    "more, with a flag": (MORE, "net(put(torch.zeros(4, 2), gpu))"),
    "an item": (ONLY, "net(put(dataset[0]))"),
    "a name": (MORE, "net(put(fixed))"),
    "a blank line": (MORE.replace("    return", "    x = x + 0\n\n    return"), "net(put(torch.zeros(4, 2)))"),
    "a line for each parameter": (
        MORE.replace("(x, gpu=True)", "(\n    x,\n    gpu=True\n)"),
        "net(put(torch.zeros(4, 2)))",
    ),
    "annotations": (
        MORE.replace("(x, gpu=True)", "(\n    x: torch.Tensor,\n    gpu: bool = True,\n) -> torch.Tensor"),
        "net(put(torch.from_numpy(a)))",
    ),
    "a flag that is made there": (ONLY, "net(put(torch.zeros(2), gpu and epoch))"),
}
GONE = {
    "batches alone": (MORE, "net(x)"),
    "batches alone, a line for each parameter": (MORE.replace("(x, gpu", "(\n    x,\n    gpu"), "net(x)"),
    "what a network gives": (MORE, "put(net(x))"),
    "what is moved where it is made": (ONLY, "net(put(torch.zeros(2), gpu))"),
    "a name for it": (ONLY, "net(put(fixed))"),
    "another function of that name": (ONLY, "numpy.put(a, [0], [1]).mean()"),
}


def migrated(folder, helper, given, edit=lambda script: script):
    (folder / "helpers.py").write_text(helper)
    script = edit(SCRIPT.format(given=given).replace("net = nn", "fixed = torch.ones(2)\nnet = nn"))
    (folder / "main.py").write_text(script)
    done = {m.path.name: m for m in migrate_all(collect([folder / "main.py"]), Options())}
    assert done["main.py"].report.plan == "module"
    return done["helpers.py"]


@pytest.mark.parametrize("helper, given", KEPT.values(), ids=KEPT)
def test_the_function_keeps_its_move(tmp_path, helper, given):
    m = migrated(tmp_path, helper, given)
    assert m.result.text == helper.replace(".cuda()", THERE) and not m.report.attention


CORPUS = "import torch\nclass Corpus:\n    def __init__(self):\n        self.train = torch.ones(4, 2)\n"


@pytest.mark.parametrize(
    "made", ["corpus = Corpus()", "if kept:\n    corpus = torch.load(kept)\nelse:\n    corpus = Corpus()"]
)
def test_what_an_object_of_another_file_keeps_is_moved_by_the_function_that_gets_it(tmp_path, made):
    """`train` is no method here, which only a network is asked for."""
    (tmp_path / "corpus.py").write_text(CORPUS)
    made = f"from corpus import Corpus\nkept = None\n{made}\ngpu ="
    m = migrated(tmp_path, MORE, "net(put(corpus.train))", lambda script: script.replace("gpu =", made))
    assert m.result.text == MORE.replace(".cuda()", THERE)


@pytest.mark.parametrize("helper, given", GONE.values(), ids=GONE)
def test_the_move_goes(tmp_path, helper, given):
    assert "cuda" not in migrated(tmp_path, helper, given).result.text


IMPORTS = {
    "a star": lambda s: s.replace("import put", "import *"),
    "another name": lambda s: s.replace("import put", "import put as place").replace("put(", "place("),
    "a module": lambda s: s.replace("from helpers import put", "import helpers").replace("put(", "helpers.put("),
}


@pytest.mark.parametrize("edit", IMPORTS.values(), ids=IMPORTS)
def test_however_it_is_imported(tmp_path, edit):
    assert migrated(tmp_path, MORE, "net(put(torch.from_numpy(a)))", edit).result.text == MORE.replace(".cuda()", THERE)
    assert "cuda" not in migrated(tmp_path, MORE, "put(net(x))", edit).result.text
