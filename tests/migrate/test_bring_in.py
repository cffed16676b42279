"""A loop of another file comes into the script that calls it, or stays where the script would not be the same."""

import ast

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.verify.runs import python, run

ENGINE = """
import math
import torch
from torch import nn
from helpers import Meter


def train_one_epoch(model, loader, criterion, optimizer, device, epoch):
    model.train()
    meter = Meter()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not math.isfinite(loss.item()):
            raise SystemExit(1)
        meter.update(loss.item())
    print(f'{epoch} {meter.average():.6f}')


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    right = sum([(model(x.to(device)).argmax(1) == y.to(device)).sum().item() for x, y in loader])
    for _ in range(1):
        print(f'right {right}')
"""
HELPERS = """
class Meter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value):
        self.sum, self.count = self.sum + value, self.count + 1

    def average(self):
        return self.sum / self.count
"""
TRAIN = """
import torch
import torch.utils.data
from torch import nn
from engine import evaluate, train_one_epoch

torch.manual_seed(0)


def main():
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    x = torch.randn(30, 4)
    data = torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long())
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    model = nn.Linear(4, 2).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        train_one_epoch(model, loader, criterion, optimizer, device, epoch)
        evaluate(model, loader, device)


if __name__ == '__main__':
    main()
"""
FILES = {"train.py": TRAIN, "engine.py": ENGINE, "helpers.py": HELPERS}


def written(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def migrated(folder, **options):
    done = migrate_all(collect([folder / "train.py"]), Options(**options))
    return {str(m.path.relative_to(folder)): m for m in done}


def through_the_module(old):
    return (
        old.replace("from engine import evaluate, train_one_epoch", "import engine")
        .replace("        train_one", "        engine.train_one")
        .replace("        evaluate", "        engine.evaluate")
    )


FIT = """

def fit(model, loader, criterion, optimizer, device, epochs):
    for epoch in range(epochs):
        train_one_epoch(model, loader, criterion, optimizer, device, epoch)
        evaluate(model, loader, device)
"""
WHOLE = TRAIN.replace("import evaluate, train_one_epoch", "import fit").replace(
    "    for epoch in range(2):\n        train_one_epoch(model, loader, criterion, optimizer, device, epoch)\n"
    "        evaluate(model, loader, device)\n",
    "    fit(model, loader, criterion, optimizer, device, 2)\n",
)
PACKAGE = {
    "train.py": TRAIN.replace("from engine", "from lib.engine"),
    "lib/__init__.py": "",
    "lib/engine.py": ENGINE.replace("from helpers", "from .helpers"),
    "lib/helpers.py": HELPERS,
}
DEVICE = "import torch\ndevice = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
OWN_DEVICE = "\n".join(line for line in TRAIN.replace(", device", "").split("\n") if not line.startswith("    device"))
OWN_DEVICE = OWN_DEVICE.replace(".to(device)", "")
STARRED = TRAIN.replace("import evaluate, train_one_epoch", "import *")
COME = {
    "functions by name": FILES,
    "every name of its file": {**FILES, "train.py": STARRED},
    "every name of its file, by which the script has its packages": {
        **FILES,
        "train.py": STARRED.replace("import torch\nimport torch.utils.data\nfrom torch import nn\n", ""),
    },
    "a package by a star, and again": {
        **FILES,
        "train.py": STARRED.replace("import torch.utils.data\n", ""),
        "engine.py": ENGINE.replace("import Meter", "import *"),
        "helpers.py": "import torch\nimport torch.utils.data\n" + HELPERS,
    },
    "every name of two files": {
        **FILES,
        "train.py": STARRED.replace("from engine", "from helpers import *\nfrom engine"),
        "engine.py": ENGINE.replace("import Meter", "import *"),
    },
    "functions of a module": {**FILES, "train.py": through_the_module(TRAIN)},
    "one that calls another": {**FILES, "train.py": WHOLE, "engine.py": ENGINE + FIT},
    "out of a package": PACKAGE,
    "an import that is written twice": {
        **FILES,
        "engine.py": ENGINE.replace("import math", "import math\nimport math"),
    },
    "names that are other things here": {
        **FILES,
        "train.py": TRAIN.replace("from torch import nn\n", "from torch import nn\nmath, Meter = 3, 4\n"),
    },
    "names from every name of a file": {
        **FILES,
        "engine.py": ENGINE.replace("import math\nimport torch\n", "").replace("import Meter", "import *"),
        "helpers.py": "import math\nimport torch\n" + HELPERS,
    },
    "a device of its file": {**FILES, "train.py": OWN_DEVICE, "engine.py": DEVICE + ENGINE.replace(", device", "")},
    "by another name": {
        **FILES,
        "train.py": TRAIN.replace("train_one_epoch(", "one(").replace("train_one_epoch", "train_one_epoch as one"),
    },
    "a name that no file gives a value": {
        **FILES,
        "engine.py": ENGINE.replace("raise SystemExit(1)", "unheard_of(1)"),
    },
    "what it sets for every file": {
        **FILES,
        "engine.py": ENGINE + "\n\ndef quiet():\n    import builtins as b\n\n    b.print = repr\n",
    },
    "the same device in both": {
        **FILES,
        "train.py": OWN_DEVICE.replace("\n\ntorch.manual", "\n" + DEVICE + "\ntorch.manual"),
        "engine.py": DEVICE + ENGINE.replace(", device", ""),
    },
    "another device of that name here": {
        **FILES,
        "train.py": OWN_DEVICE.replace("\n\ntorch.manual", "\ndevice = 'cpu'\ntorch.manual"),
        "engine.py": DEVICE + ENGINE.replace(", device", ""),
    },
    "from two files": {
        **FILES,
        "train.py": TRAIN.replace(
            "from engine import evaluate, train_one_epoch",
            "from engine import train_one_epoch\nfrom testing import evaluate",
        ),
        "engine.py": ENGINE[: ENGINE.index("\n\n@torch.no_grad")] + "\n",
        "testing.py": "import torch\n" + ENGINE[ENGINE.index("\n\n@torch.no_grad") :],
    },
}


def test_comes_from_the_folder_of_the_project(tmp_path):
    (tmp_path / ".git").mkdir()
    files = {f"tools/{name}" if name == "train.py" else name: text for name, text in PACKAGE.items()}
    written(tmp_path, files)
    done = migrate_all(collect([tmp_path / "tools" / "train.py"]), Options())
    assert done[0].report.plan == "module" and "def training_step(" in done[0].result.text


FEW = 2  # of these runs; the others take minutes
RUNS = [
    pytest.param(files, id=name, marks=[pytest.mark.slow] * (i >= FEW)) for i, (name, files) in enumerate(COME.items())
]


@pytest.mark.parametrize("files", RUNS)
def test_comes_and_is_lifted(tmp_path, forked_runs, files):
    before = written(tmp_path / "before", files)
    done = migrated(before)
    assert done["train.py"].report.plan in ("module", "manual")
    assert "(Module):" in done["train.py"].result.text
    assert not any("backward(" in m.result.text for name, m in done.items() if name != "train.py")
    after = tmp_path / "after"
    for name in files:
        (after / name).parent.mkdir(parents=True, exist_ok=True)
        (after / name).write_bytes(done[name].data if name in done else files[name].encode())
    old, new = (run(python(), f / "train.py", [], tmp_path / f"{f.name}.out", 100) for f in (before, after))
    assert old.ok and new.ok, old.output + new.output
    assert new.losses == old.losses and new.parameters == old.parameters and len(old.losses[0]) == 8
    assert [line for line in new.output.splitlines() if not line.startswith("ptmigrate:")] == old.output.splitlines()
    again = migrate_all(collect([after / "train.py"]), Options())
    assert not any(m.report.changed for m in again)


@pytest.mark.parametrize(
    "name",
    [
        "by another name",
        "a name that no file gives a value",
        "every name of its file",
        "a package by a star, and again",
        "what it sets for every file",
    ],
)
def test_names_that_need_not_keep_it_away(tmp_path, name):
    done = migrated(written(tmp_path, COME[name]))
    assert done["train.py"].report.plan == "module" and "def training_step(" in done["train.py"].result.text


def test_the_report_names_the_file_and_the_line_that_each_edit_is_about(tmp_path):
    done = migrated(written(tmp_path, FILES))
    lines = ENGINE.splitlines()
    edits = {e.line: e for e in done["engine.py"].report.edits if e.code == "PTM101"}
    assert edits and all(".to(device)" in lines[line - 1] for line in edits)
    own = [e for e in done["train.py"].report.edits if e.code == "PTM101"]
    assert own and all(".to(device)" in TRAIN.splitlines()[e.line - 1] for e in own)
    came = [e for e in done["train.py"].report.edits if "came from engine.py" in e.message]
    assert {TRAIN.splitlines()[e.line - 1] for e in came} == {"from engine import evaluate, train_one_epoch"}


def test_a_file_of_which_the_script_has_every_name_keeps_its_imports(tmp_path):
    done = migrated(written(tmp_path, COME["every name of its file, by which the script has its packages"]))
    left = done["engine.py"].result.text
    assert "import math\nimport torch\nfrom torch import nn\n" in left and "def " not in left
    assert "from engine import *\n" in done["train.py"].result.text and "(Module):" in done["train.py"].result.text


def test_what_another_file_evaluates_with_stays(tmp_path):
    other = (
        "import torch\nfrom engine import evaluate\n\n\ndef check(model, loader):\n    evaluate(model, loader, 'cpu')\n"
    )
    files = {**FILES, "train.py": TRAIN.replace("import torch\n", "import torch\nimport check\n", 1), "check.py": other}
    done = migrated(written(tmp_path, files))
    assert done["train.py"].report.plan in ("module", "manual")
    assert "def evaluate(" in done["engine.py"].result.text and "import evaluate" in done["train.py"].result.text


def test_a_module_that_does_something_is_still_imported(tmp_path):
    files = {**FILES, "engine.py": ENGINE.replace("from helpers", "torch.manual_seed(3)\nfrom helpers")}
    assert "\nimport engine\n" in migrated(written(tmp_path, files))["train.py"].result.text


@pytest.mark.parametrize(
    "more",
    [
        ("step.py", "", "import step as step_module\n"),  # step() comes out of step.py
        ("step.py", "step_module = 3\n", "import step as step_module_\n"),
        ("tools.py", "tools = 3\n", "import tools as tools_module\n"),  # the script has another thing of that name
        ("tools.py", "import tools\n", "import tools\n"),
        ("tools.py", "", "\nimport tools\n"),
    ],
)
def test_a_module_of_the_name_of_what_comes_is_imported_by_another(tmp_path, more):
    """With two things of one name nothing showed that step() trains: a plain object's move went, which met the card."""
    name, own, imported = more
    module = "class Plain:\n    def to(self, device):\n        self.x = self.x.to(device)\n"
    data = "import torch\n" + module + "\n\ndef load():\n    p = Plain()\n    p.x = torch.ones(4, 2)\n    return p\n"
    engine = (
        "import torch\ndevice = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n\n\n"
        "def step(net, opt, data):\n    opt.zero_grad()\n    loss = net(data.x).sum()\n    loss.backward()\n"
        "    opt.step()\n\n\ndef fit(data, net, epochs):\n    data.to(device)\n    net.to(device)\n"
        "    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "    for _ in range(epochs):\n        step(net, opt, data)\n"
    )
    script = f"import torch\nfrom data import load\nfrom {name[:-3]} import fit\n{own}"
    script += "data = load()\nnet = torch.nn.Linear(2, 1)\nfit(data, net, 3)\n"
    done = migrated(written(tmp_path, {"train.py": script, name: engine, "data.py": data}))
    text = done["train.py"].result.text
    assert imported in text and "    data.to(device)\n" in text
    assert any("`data.to(device)` names a device" in n.message for m in done.values() for n in m.report.attention)


STAY = {
    "every name of another file that has one, too": (
        "train.py",
        "from engine import evaluate, train_one_epoch",
        "from engine import *\nfrom things import *",
    ),
    "another file has every name": ("helpers.py", "", "from engine import *\n"),
    "every name of a file that is not of the project": ("train.py", "from torch import nn\n", "from math import *\n"),
    "every name of such a file there": ("engine.py", "import math\n", "from math import *\nimport math\n"),
    "the same name of two files": (
        "train.py",
        "from engine import evaluate, train_one_epoch",
        "from engine import train_one_epoch\nimport other\nevaluate = other.train_one_epoch",
    ),
    "a builtin that is another thing here": ("train.py", "torch.manual_seed(0)", "torch.manual_seed(0)\nprint = str"),
    "another name, and its own": ("train.py", "train_one_epoch", "train_one_epoch as train"),
    "a counter of its file": (
        "engine.py",
        "    meter = Meter()\n",
        "    global math\n    math = math\n    meter = Meter()\n",
    ),
    "another name that is given again": (
        "train.py",
        "train_one_epoch\n",
        "train_one_epoch as one\none = one\ntrain_one_epoch = print\n",
    ),
    "a name that it is given from here": (
        "train.py",
        "import evaluate, train_one_epoch\n",
        "import evaluate, train_one_epoch\nimport engine\nengine.print = repr\n",
    ),
    "its file's name": ("engine.py", "    meter = Meter()\n", "    meter = Meter()\n    print(__name__)\n"),
    "its own file uses it": ("engine.py", "\n\n@torch.no_grad", "\n\nstep = train_one_epoch\n\n\n@torch.no_grad"),
    "annotations of later": ("engine.py", "\nimport math\n", "from __future__ import annotations\nimport math\n"),
}


@pytest.mark.parametrize("name, old, new", STAY.values(), ids=STAY.keys())
def test_stays(tmp_path, name, old, new):
    things = "train_one_epoch = evaluate = print\n"
    files = {**FILES, "other.py": ENGINE, "things.py": things, name: FILES[name].replace(old, new, 1)}
    assert files[name] != FILES[name]
    ast.parse(files[name])
    done = migrated(written(tmp_path, files))
    assert done["train.py"].report.plan == "loop" and "runtime.backward(loss)" in done["engine.py"].result.text
    told = [n.message for n in done["train.py"].report.attention if n.code == "PTM701"]
    assert len(told) == 1 and told[0].startswith("the loop is kept in its own file: ")


def test_what_decided_in_a_file_that_came_is_told(tmp_path):
    engine = ENGINE.replace("    print(f'{epoch}", "    else:\n        pass\n    print(f'{epoch}", 1)
    done = migrated(written(tmp_path, {**FILES, "engine.py": engine}))
    (told,) = [n for n in done["train.py"].report.attention if n.code == "PTM701"]
    line = engine.splitlines().index("    for x, y in loader:") + 1
    assert told.message == f"the loop is kept: the batch loop has an else (engine.py, line {line})"
    assert "import evaluate, train_one_epoch" in TRAIN.splitlines()[told.line - 1]


def test_a_loop_that_is_reached_through_other_files_is_told(tmp_path):
    files = {
        **FILES,
        "all.py": "import torch\nfrom engine import *\n",
        "train.py": TRAIN.replace("from engine", "from all"),
    }
    (told,) = [n for n in migrated(written(tmp_path, files))["train.py"].report.attention if n.code == "PTM701"]
    assert told.message == "the loop is kept in its own file: this one reaches it through others"


def test_a_lifted_loop_is_told_nothing_of(tmp_path):
    done = migrated(written(tmp_path, FILES))
    assert not [n for m in done.values() for n in m.report.attention if n.code == "PTM701"]


def test_a_local_name_that_would_hide_it(tmp_path):
    train = through_the_module(TRAIN).replace("    x = torch", "    train_one_epoch = 1\n    x = torch")
    assert migrated(written(tmp_path, {**FILES, "train.py": train}))["train.py"].report.plan == "loop"


OTHER = "import torch\nfrom engine import train_one_epoch\n\n\ndef more(*args):\n    train_one_epoch(*args)\n"


def test_a_loop_that_another_file_of_the_project_runs_stays(tmp_path):
    files = {**FILES, "train.py": TRAIN.replace("import torch\n", "import torch\nimport more\n", 1), "more.py": OTHER}
    assert migrated(written(tmp_path, files))["train.py"].report.plan == "loop"


def test_a_script_beside_it_finds_the_loop_where_it_was(tmp_path):
    """In place the loop is copied, and its file is left to the other script; a second run changes nothing."""
    written(tmp_path, {**FILES, "more.py": OTHER})
    done = migrated(tmp_path, in_place=True)
    engine = done["engine.py"]
    assert done["train.py"].report.plan == "module" and "engine" not in done["train.py"].result.text
    assert engine.result.text == ENGINE and not engine.report.changed
    assert "train_one_epoch" not in migrated(tmp_path)["engine.py"].result.text  # a copy of the project is its own
    (tmp_path / "train.py").write_text(done["train.py"].result.text)
    assert not any(m.report.changed for m in migrated(tmp_path, in_place=True).values())


def own_meter(engine):
    """The engine with its meter in its own file."""
    return engine.replace("from helpers import Meter\n", HELPERS)


def test_what_it_reads_of_its_file_is_copied_with_it(tmp_path, forked_runs):
    """So that the script has no more to do with the file that is left to the other one."""
    written(tmp_path, {"train.py": TRAIN, "engine.py": own_meter(ENGINE), "more.py": OTHER})
    done = migrated(tmp_path, in_place=True)
    text = done["train.py"].result.text
    assert "engine" not in text and text.index("class Meter:") < text.index("meter = Meter()")
    assert done["engine.py"].result.text == own_meter(ENGINE)
    (tmp_path / "train.py").write_text(text)
    assert not any(m.report.changed for m in migrated(tmp_path, in_place=True).values())
    before = written(tmp_path / "before", FILES)
    old, new = (run(python(), f / "train.py", [], tmp_path / f"{f.name}.out", 100) for f in (before, tmp_path))
    assert old.ok and new.ok and new.losses == old.losses and new.parameters == old.parameters


READS = {
    "a value of its file": own_meter(ENGINE)
    .replace("import math\n", "import math\nRATE = 1\n")
    .replace("SystemExit(1)", "SystemExit(RATE)"),
    "a value that what it reads reads": own_meter(ENGINE)
    .replace("import math\n", "import math\nSTART = 0\n")
    .replace("self.sum = self.count = 0", "self.sum = self.count = START"),
}


@pytest.mark.parametrize("engine", READS.values(), ids=READS.keys())
def test_it_stays_where_it_reads_what_would_be_imported_still(tmp_path, engine):
    written(tmp_path, {"train.py": TRAIN, "engine.py": engine, "more.py": OTHER})
    done = migrated(tmp_path, in_place=True)
    assert done["train.py"].report.plan == "loop"
    for name, m in done.items():
        (tmp_path / name).write_text(m.result.text if m.result is not None else m.source.text)
    assert not any(m.report.changed for m in migrated(tmp_path, in_place=True).values())


STARTED = "\n\nif __name__ == '__main__':\n    train_one_epoch(*map(float, '123456'))\n"


def test_a_file_that_can_be_started_too_keeps_what_it_starts(tmp_path):
    done = migrated(written(tmp_path, {**FILES, "engine.py": ENGINE + STARTED}))
    assert done["train.py"].report.plan == "module" and "engine" not in done["train.py"].result.text
    assert done["engine.py"].result.text == ENGINE + STARTED


def test_and_stays_where_the_script_imports_more_of_it(tmp_path):
    train = TRAIN.replace("import evaluate", "import RATE, evaluate")
    done = migrated(written(tmp_path, {**FILES, "train.py": train, "engine.py": f"RATE = 1\n{ENGINE}{STARTED}"}))
    assert done["train.py"].report.plan == "loop"


SAME_WORDS = {
    "a method of another thing": "\n\ndef more(model):\n    model.train_one_epoch()\n",
    "a text": "\n\ndef more(phase):\n    return phase == 'train_one_epoch'\n",
}


@pytest.mark.parametrize("more", SAME_WORDS.values(), ids=SAME_WORDS.keys())
def test_what_has_its_name_alone_does_not_keep_it(tmp_path, more):
    done = migrated(written(tmp_path, {**FILES, "engine.py": ENGINE + more}))
    assert done["train.py"].report.plan == "module" and "train_one_epoch" in done["engine.py"].result.text


def test_a_text_that_finds_it_does(tmp_path):
    more = "\n\ndef more(*args):\n    globals()['train_one_epoch'](*args)\n"
    assert migrated(written(tmp_path, {**FILES, "engine.py": ENGINE + more}))["train.py"].report.plan == "loop"


def test_a_file_of_before_async_was_a_word_comes_too(tmp_path):
    engine = ENGINE.replace("x.to(device), y.to(device)", "x.cuda(async=True), y.cuda(async=True)")
    done = migrated(written(tmp_path, {**FILES, "engine.py": engine}))
    assert done["train.py"].report.plan == "module" and "import engine" not in done["train.py"].result.text
    assert "from engine" not in done["train.py"].result.text
    mended = [e.line for e in done["engine.py"].report.edits if e.code == "PTM603"]
    assert mended == [engine.splitlines().index("        x, y = x.cuda(async=True), y.cuda(async=True)") + 1] * 2


TRAINER = """
import torch
from torch import nn


class Trainer:
    def __init__(self, epochs):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.loader = torch.utils.data.DataLoader(torch.ones(8, 3), batch_size=4)
        self.epochs = epochs

    def train(self):
        for epoch in range(self.epochs):
            for x in self.loader:
                loss = self.net(x).pow(2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(f'{epoch} {loss.item():.5f}')
"""
STARTS = """
from trainer import Trainer

if __name__ == "__main__":
    Trainer(epochs=2).train()
"""


def test_a_script_that_names_no_torch_trains_too(tmp_path):
    done = migrated(written(tmp_path, {"train.py": STARTS, "trainer.py": TRAINER}))
    assert done["train.py"].report.plan in ("module", "manual") and "trainer.fit(" in done["train.py"].result.text


def test_and_is_told_what_kept_its_loop(tmp_path):
    trainer = TRAINER.replace("            print(", "            else:\n                pass\n            print(")
    done = migrated(written(tmp_path, {"train.py": STARTS, "trainer.py": trainer}))
    (told,) = [n.message for n in done["train.py"].report.attention if n.code == "PTM701"]
    assert done["trainer.py"].report.plan == "loop" and told.startswith("the loop is kept: ")


BESIDE = {
    "the script reads more of its file": (
        "train.py",
        "import evaluate, train_one_epoch",
        "import RATE, evaluate, train_one_epoch",
    ),
    "another file of the script reads its file": (
        "helpers.py",
        "class Meter",
        "from engine import RATE\n\n\nclass Meter",
    ),
    "its file does something": ("engine.py", "RATE = 1\n", "RATE = 1\nprint(RATE)\n"),
}


@pytest.mark.parametrize("name, old, new", BESIDE.values(), ids=BESIDE.keys())
def test_a_file_that_the_script_still_runs_keeps_its_loop_in_place(tmp_path, name, old, new):
    engine = ENGINE.replace("from helpers import Meter\n", "").replace("def train", "RATE = 1\n\n\ndef train", 1)
    engine = engine.replace("    meter = Meter()", "    from helpers import Meter\n\n    meter = Meter()")
    files = {**FILES, "engine.py": engine, "more.py": OTHER}
    assert migrated(written(tmp_path, files), in_place=True)["train.py"].report.plan == "module"
    written(tmp_path, {name: files[name].replace(old, new, 1)})
    assert migrated(tmp_path, in_place=True)["train.py"].report.plan == "loop"


def test_a_script_that_finds_the_file_by_its_own_path_matters_too(tmp_path):
    found = "import os, sys\nsys.path.append(os.path.join(os.path.dirname(__file__), '..'))\n"
    files = {"lib/__init__.py": "", "lib/engine.py": PACKAGE["lib/engine.py"], "lib/helpers.py": HELPERS}
    files["tools/train.py"] = found + PACKAGE["train.py"]
    files["tests/more.py"] = found + OTHER.replace("from engine", "from lib.engine")
    written(tmp_path, files)
    done = migrate_all(collect([tmp_path / "tools" / "train.py"]), Options(in_place=True))
    texts = {m.path.name: m.result.text for m in done}
    assert done[0].report.plan == "module" and texts["engine.py"] == files["lib/engine.py"]
    done = migrate_all(collect([tmp_path / "tools" / "train.py"]), Options())
    texts = {m.path.name: m.result.text for m in done}
    assert done[0].report.plan == "module" and "def train_one_epoch" not in texts["engine.py"]


def test_asked_for_the_loop_it_stays(tmp_path):
    assert migrated(written(tmp_path, FILES), plan="loop")["train.py"].report.plan == "loop"


def test_an_evaluation_that_cannot_come_leaves_the_training_free_to(tmp_path):
    """`import testing` and `testing.testing()`: in the script the function would have the name of its module."""
    evaluation = ENGINE[ENGINE.index("\n\n@torch.no_grad") :].replace("def evaluate", "def testing")
    train = TRAIN.replace("import evaluate, train_one_epoch", "import train_one_epoch\nimport testing")
    files = {
        "train.py": train.replace("evaluate(model", "testing.testing(model"),
        "engine.py": ENGINE[: ENGINE.index("\n\n@torch.no_grad")] + "\n",
        "testing.py": "import torch\n" + evaluation,
        "helpers.py": HELPERS,
    }
    done = migrated(written(tmp_path, files))
    assert done["train.py"].report.plan == "module" and "def training_step(" in done["train.py"].result.text
    assert "def testing(" in done["testing.py"].result.text and "testing.testing(" in done["train.py"].result.text
    assert not [n for m in done.values() for n in m.report.attention if n.code == "PTM701"]
