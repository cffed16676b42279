"""Projects of several files: what is followed, where it goes, and that the whole runs as before."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ptmigrate.migrate import sources
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.verify.runs import python, run

from tests import forked

FIXTURES = Path(__file__).parents[2] / "fixtures" / "plain"


def write(folder, **files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def names(script):
    return {os.path.relpath(path, root) for path, root, _ in collect([script])}


@pytest.mark.parametrize(
    "trick",
    [
        "sys.path.append('..')",
        "sys.path.insert(0, '../')",
        "sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))",
        "sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))",
        "here = os.path.dirname(__file__)\nroot = os.path.join(here, os.pardir)\nsys.path.append(root)",
        "sys.path.append(str(Path(__file__).resolve().parent.parent))",
        "sys.path.append(str(Path(__file__).parents[1]))",
        "sys.path.insert(0, str(Path(__file__).parent / '..'))",
        "sys.path.extend(['.', '..'])",
        "sys.path += ['..']",
        "sys.path = ['..'] + sys.path",
        "sys.path[:0] = ['..']",
        "for folder in ('.', '..'):\n    sys.path.append(folder)",
        "folders = ['.', os.pardir]\nfor f in folders:\n    if f not in sys.path:\n        sys.path.insert(0, f)",
        "for up in ['..']:\n    sys.path.append(os.path.join(os.path.dirname(__file__), up))",
    ],
)
def test_folders_put_on_the_path_are_followed(tmp_path, trick):
    head = "import os, sys\nfrom pathlib import Path\n"
    write(tmp_path, **{"tools/train.py": f"{head}{trick}\nfrom lib.net import Net\n", "lib/net.py": "import torch\n"})
    assert names(tmp_path / "tools" / "train.py") == {"tools/train.py", "lib/net.py"}


@pytest.mark.parametrize(
    "trick",
    [
        "sys.path.append(sys.argv[1])",
        "sys.path.append(find())",
        "paths.append('..')",
        "sys.path.pop()",
        "sys.path.extend(sys.argv[1:])",
        "for folder in ['..']:\n    paths.append(folder)",
        "for folder in find():\n    sys.path.append(folder)",
        "paths += ['..']",
        "sys.path = [*sys.path]",
    ],
)
def test_folders_that_the_file_does_not_tell_are_not(tmp_path, trick):
    text = f"import sys\n{trick}\nfrom lib.net import Net\n"
    write(tmp_path, **{"tools/train.py": text, "lib/net.py": "import torch\n"})
    assert names(tmp_path / "tools" / "train.py") == {"train.py"}


@pytest.mark.parametrize(
    "place, marks",
    [("", ["setup.py"]), ("", ["pyproject.toml"]), ("src", ["setup.cfg"]), ("", ["tools/__init__.py"])],
)
def test_the_packages_of_the_project_that_a_script_stands_below_are_followed(tmp_path, place, marks):
    text = "from lib.net import Net\n\nif __name__ == '__main__':\n    Net().run()\n"
    net = os.path.join(place, "lib/net.py")
    write(tmp_path, **{"tools/train.py": text, net: "import torch\n"}, **dict.fromkeys(marks, ""))
    assert names(tmp_path / "tools" / "train.py") == {"tools/train.py", net}


@pytest.mark.parametrize(
    "text, marks",
    [
        ("from lib.net import Net\n\nNet().run()\n", []),  # nothing tells that this is a project
        ("from lib.net import Net\n\nclass Other(Net):\n    pass\n", ["setup.py"]),  # no script
        ("import lib.other\n\nlib.other.run()\n", ["setup.py"]),  # another package of that name, which is installed
    ],
)
def test_what_stands_above_a_script_is_not_followed_otherwise(tmp_path, text, marks):
    write(tmp_path, **{"tools/train.py": text, "lib/net.py": "import torch\n"}, **dict.fromkeys(marks, ""))
    assert names(tmp_path / "tools" / "train.py") == {"train.py"}


def test_what_stands_beside_a_script_goes_before_its_project(tmp_path):
    write(tmp_path, **{"tools/train.py": "import net\n\nnet.run()\n", "tools/net.py": "", "net.py": "", "setup.py": ""})
    assert names(tmp_path / "tools" / "train.py") == {"train.py", "net.py"}


def test_a_module_sees_the_folders_that_the_script_put_on_the_path(tmp_path):
    write(
        tmp_path,
        **{
            "tools/train.py": "import sys\nsys.path.append('..')\nimport lib.net\n",
            "lib/__init__.py": "",
            "lib/net.py": "from lib.blocks import Block\nfrom .heads import Head\n",
            "lib/blocks.py": "",
            "lib/heads.py": "",
        },
    )
    found = names(tmp_path / "tools" / "train.py")
    assert found == {"tools/train.py", "lib/__init__.py", "lib/net.py", "lib/blocks.py", "lib/heads.py"}


def test_modules_imported_by_name_come_along(tmp_path):
    text = "import importlib\nimportlib.import_module(f'models.{name}')\n__import__('losses')\n"
    more = {"models/a.py": "", "models/b.py": "", "losses.py": "", "other.py": ""}
    write(tmp_path, **{"train.py": text, **more})
    assert names(tmp_path / "train.py") == {"train.py", "models/a.py", "models/b.py", "losses.py"}


@pytest.mark.parametrize(
    "asks",
    [
        "importlib.import_module('models.' + name + '_model')",
        "importlib.import_module('models.%s_model' % name)",
        "importlib.import_module('models.{}'.format(name))",
        "which = 'models.' + name + '_model'\nimportlib.import_module(which)",
        "def find(name):\n    which = f'models.{name}'\n    return importlib.import_module(which)",
    ],
)
def test_all_that_a_name_may_mean_comes_along(tmp_path, asks):
    more = {"models/a.py": "", "models/b_model.py": "", "other.py": ""}
    write(tmp_path, **{"train.py": f"import importlib\n{asks}\n", **more})
    assert names(tmp_path / "train.py") == {"train.py", "models/a.py", "models/b_model.py"}


def test_a_package_goes_before_a_module_of_its_name_and_circles_end(tmp_path):
    more = {"utils/__init__.py": "from .a import x\n", "utils/a.py": "from . import b\nx = 1\n", "utils.py": ""}
    write(tmp_path, **{"train.py": "import utils\n", **more, "utils/b.py": "from . import a\n"})
    assert names(tmp_path / "train.py") == {"train.py", "utils/__init__.py", "utils/a.py", "utils/b.py"}


PROJECTS = {
    "functions elsewhere": ("wine_project", "train.py", []),
    "another net by name": ("wine_project", "train.py", ["--arch", "noisy"]),
    "a trainer class elsewhere": ("digits_project", "scripts/main.py", []),
}
RUNS = [
    pytest.param(*run, id=name, marks=[pytest.mark.slow] * (i > 0)) for i, (name, run) in enumerate(PROJECTS.items())
]


@pytest.mark.parametrize("project, script, args", RUNS)
def test_a_project_runs_as_before(tmp_path, forked_runs, project, script, args):
    """Copied to a folder of its own, as the output is, with the same losses and output."""
    original = FIXTURES / project / script
    for m in migrate_all(collect([original]), Options()):
        assert m.report.error is None
        place = tmp_path / os.path.relpath(os.path.abspath(m.path), os.path.abspath(m.root))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(m.data)
    before = run(python(), original, args, tmp_path / "before", 200)
    after = run(python(), tmp_path / script, args, tmp_path / "after", 200)
    assert before.ok and after.ok, before.output + after.output
    assert after.losses == before.losses and after.parameters == before.parameters
    ours = [line for line in after.output.splitlines() if not line.startswith("ptmigrate:")]
    assert ours == before.output.splitlines()


def test_what_the_script_makes_for_a_loop_elsewhere_is_set_up_for_it():
    script = FIXTURES / "wine_project" / "train.py"
    done = {m.path.name: m for m in migrate_all(collect([script]), Options(plan="loop"))}
    assert done["train.py"].report.plan == "loop"
    assert "runtime.setup_optimizer(" in done["train.py"].result.text
    assert "runtime.backward(loss)" in done["engine.py"].result.text
    assert "model.to(device)" in done["train.py"].result.text
    helpers = migrate_all(collect([FIXTURES / "digits_project" / "scripts" / "main.py"]), Options(plan="loop"))
    texts = {m.path.name: m.result.text for m in helpers}
    assert "runtime.setup_optimizer(" in texts["options.py"] and "runtime.backward(loss)" in texts["classifier.py"]


def test_a_second_migration_of_a_project_changes_nothing(tmp_path):
    command = [sys.executable, "-m", "ptmigrate.migrate.cli", "-o", str(tmp_path / "one")]
    script = FIXTURES / "digits_project" / "scripts" / "main.py"
    subprocess.run([*command, str(script)], cwd=tmp_path, capture_output=True, timeout=100)
    again = migrate_all(collect([tmp_path / "one" / "scripts" / "main.py"]), Options())
    assert len(again) == 8 and not any(m.report.changed for m in again)


def test_a_trainer_behind_a_package_is_lifted_once_for_the_whole_folder(tmp_path):
    files = {
        "train.py": """\
import torch
from where import make, prepare
from trainer import Trainer

device = prepare()
model = torch.nn.Linear(2, 1)
model = model.to(device)
optimizer = make(torch.optim, model.parameters())
Trainer(model, optimizer, loader, device).train()
""",
        "where.py": """\
import torch


def prepare():
    return pick(torch)


def make(of, parameters):
    return of.SGD(parameters)
""",
        "trainer/__init__.py": "from .trainer import *\n",
        "trainer/trainer.py": """\
import torch


class Trainer:
    def __init__(self, model, optimizer, loader, device):
        self.model, self.optimizer, self.loader, self.device = model, optimizer, loader, device

    def train(self):
        for x, y in self.loader:
            x, y = x.to(self.device), y.to(self.device)
            self.optimizer.zero_grad()
            loss = (self.model(x) - y).pow(2).mean()
            loss.backward()
            self.optimizer.step()
""",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    options = Options(in_place=True)
    first = {m.path.name: m for m in migrate_all(collect([tmp_path]), options)}
    assert first["train.py"].report.plan == "module" and first["trainer.py"].report.plan == "definitions"
    assert "class Trainer" not in first["trainer.py"].result.text
    for m in first.values():
        m.path.write_text(m.result.text)
    assert not any(m.report.changed for m in migrate_all(collect([tmp_path]), options))


NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, dev):
        super().__init__()
        self.dev = dev
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x + torch.ones(2, device=self.dev))
"""
KEPT = """
import torch
from net import Net

model = Net('cpu')
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = model(torch.ones(3, 2)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_nor_one_of_a_script_whose_loop_was_kept(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "train.py").write_text(KEPT)
    done = migrate_all(collect([tmp_path / "train.py"]), Options(plan="loop"))
    assert done[0].report.plan == "loop" and not done[1].report.changed
    for m in done:
        m.path.write_bytes(m.data)
    assert not any(m.report.changed for m in migrate_all(collect([tmp_path / "train.py"]), Options()))


def test_nor_one_of_a_script_whose_loop_was_kept_in_another_file(tmp_path):
    mask = "import torch\n\n\nclass Mask:\n    def __init__(self, scores, device='cpu'):\n"
    mask += "        self.mask = torch.ones(4, scores.shape[-1], dtype=torch.bool).to(device).triu(1)\n"
    loop = "import torch\nfrom mask import Mask\n\n\nclass Task:\n    def train(self, net, loader):\n"
    loop += "        for x in loader:\n            x = x.cuda()\n            net(x).backward()\n"
    other = "from task import Task\nTask().train(None, [])\n"  # reads what trains: it stays there
    script = "import torch\nfrom task import Task\nimport other\n\nprint(1)\nTask().train(torch.nn.Linear(2, 1), [])\n"
    write(tmp_path, **{"train.py": script, "task.py": loop, "other.py": other, "mask.py": mask})
    done = migrate_all(collect([tmp_path / "train.py"]), Options())
    assert done[0].report.plan == "loop" and "import rank_zero_print" in done[0].result.text
    for m in done:
        m.path.write_bytes(m.data)
    assert not any(m.report.changed for m in migrate_all(collect([tmp_path / "train.py"]), Options()))


LIFTED = """
import torch
from net import Net

model = Net('cpu')
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.ones(4, 2)):
        loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_nor_one_of_a_lifted_script_beside_a_module_with_a_loop_of_its_own(tmp_path):
    tries = "\n\ndef tries():\n    print(1)\n    Net('cpu')(torch.ones(3, 2)).backward(torch.ones(3, 1))\n"
    (tmp_path / "net.py").write_text(NET.replace("from torch", "import other\nfrom torch", 1) + tries)
    (tmp_path / "other.py").write_text("import torch\n\n\ndef shows(x):\n    print(torch.sum(x))\n")
    (tmp_path / "train.py").write_text(LIFTED)
    done = migrate_all(collect([tmp_path / "train.py"]), Options())
    assert [m.report.plan for m in done][:2] == ["module", "loop"]
    assert "rank_zero_print(torch.sum(x))" in done[2].result.text
    for m in done:
        m.path.write_bytes(m.data)
    assert not any(m.report.changed for m in migrate_all(collect([tmp_path / "train.py"]), Options()))


def test_a_file_is_read_once_for_the_imports_of_all(tmp_path, monkeypatch):
    for i in range(20):
        imports = "".join(f"from . import m{j}\n" for j in range(20) if j != i)
        (tmp_path / f"m{i}.py").write_text(f"import torch\nimport torch.distributed as dist\n{imports}")
    read = []
    asks = sources._asks
    monkeypatch.setattr(sources, "_asks", lambda path: read.append(path.name) or asks(path))
    done = migrate_all(collect([tmp_path]), Options())
    assert len(done) == 20
    assert sorted(read) == sorted(f"m{i}.py" for i in range(20))


SAVER = """import io
import shutil
import torch


def save_checkpoint(state, is_best, name):
    print('saving', name)
    torch.save(state, name)
    if is_best:
        shutil.copyfile(name, 'best.pt')


def copied(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return torch.load(io.BytesIO(buffer.getvalue()))


class Data(torch.utils.data.Dataset):
    def __init__(self, n):
        print(f'{n} samples')
        self.x = torch.arange(n * 4.0).view(n, 4) / 40

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.x[i].sum().round().long() % 3
"""
TRAINS = """import torch
from saver import Data, copied, save_checkpoint
from shown import progress

torch.manual_seed(0)
loader = torch.utils.data.DataLoader(Data(20), batch_size=4)
net = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress(epoch)
    save_checkpoint({'net': copied(net.state_dict())}, epoch == 1, f'{epoch}.pt')
"""
WITHOUT_TORCH = """import sys


def progress(epoch):
    sys.stdout.write('.' * (epoch + 1))
    print('')
"""


@pytest.mark.parametrize("whole", [False, True], ids=["the script", "the folder"])
def test_what_modules_of_a_lifted_script_print_and_save_is_of_rank_0(tmp_path, whole):
    write(tmp_path, **{"train.py": TRAINS, "saver.py": SAVER, "shown.py": WITHOUT_TORCH})
    done = migrate_all(collect([tmp_path if whole else tmp_path / "train.py"]), Options())
    texts = {m.path.name: m.result.text for m in done}
    plans = {"train.py": "module", "saver.py": "definitions", "shown.py": "definitions"}
    assert {m.path.name: m.report.plan for m in done} == plans
    assert "    rank_zero_save(state, name)" in texts["saver.py"] and "    print(" not in texts["saver.py"]
    assert "    torch.save(state, buffer)" in texts["saver.py"]
    write(tmp_path, **texts)
    assert not any(m.report.changed for m in migrate_all(collect([tmp_path / "train.py"]), Options()))
    p = forked.ptrun("--accelerator", "cpu", "--devices", "2", "train.py", cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    told = ["20 samples", *["."] * 3, "saving 0.pt", *[".."] * 3, "saving 1.pt"]
    assert p.stdout.splitlines() == told and (tmp_path / "best.pt").exists()


def test_what_modules_without_torch_print_below_a_kept_loop_is_of_rank_0_too(tmp_path):
    write(tmp_path, **{"train.py": TRAINS, "saver.py": SAVER, "shown.py": WITHOUT_TORCH})
    done = migrate_all(collect([tmp_path / "train.py"]), Options("loop"))
    texts = {m.path.name: m.result.text for m in done}
    assert done[0].report.plan == "loop" and "    print(" not in texts["shown.py"]
    assert "rank_zero_print('')" in texts["shown.py"]
    write(tmp_path, **texts)
    assert not any(m.report.changed for m in migrate_all(collect([tmp_path / "train.py"]), Options("loop")))


PRIMARY = """import torch.distributed as dist


def setup():
    dist.init_process_group("nccl")


def is_primary():
    return dist.get_rank() == 0


def progress(epoch):
    if is_primary():
        print(epoch)
"""


def test_a_guard_that_goes_leaves_the_print_to_rank_0(tmp_path):
    """In a module that imports the runtime for other reasons too."""
    write(tmp_path, **{"train.py": TRAINS, "saver.py": SAVER, "shown.py": PRIMARY})
    done = migrate_all(collect([tmp_path / "train.py"]), Options())
    texts = {m.path.name: m.result.text for m in done}
    assert "    return is_global_zero()\n" in texts["shown.py"]
    assert texts["shown.py"].endswith("def progress(epoch):\n    rank_zero_print(epoch)\n")
    write(tmp_path, **texts)
    assert not any(m.report.changed for m in migrate_all(collect([tmp_path / "train.py"]), Options()))


@pytest.mark.parametrize(
    "old, new",
    [
        ("loss.backward()", "accelerator.backward(loss)"),  # another library carries it
        ("        loss.backward()\n", ""),
    ],
)
def test_without_a_lifted_script_they_stay(tmp_path, old, new):
    head = "from accelerate import Accelerator\naccelerator = Accelerator()\n" if "accelerator" in new else ""
    write(tmp_path, **{"train.py": head + TRAINS.replace(old, new), "saver.py": SAVER, "shown.py": WITHOUT_TORCH})
    done = migrate_all(collect([tmp_path / "train.py"]), Options())
    assert [m.result.text for m in done if m.path.name != "train.py"] == [SAVER, WITHOUT_TORCH]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("args.trainer", 1),
        ("'net.' + args.trainer", 0),
        ("'net.' + args.trainer + '_net'", 0),
        ("other", 1),
        ("f'net.{args.trainer}'", 0),
        ("'net'", 0),
        ("names[0]", 1),
    ],
)
def test_a_module_by_a_name_that_does_not_show_is_told_of(name, told):
    source = f"import torch\nfrom importlib import import_module\nt = import_module({name})\n"
    source += "n = torch.nn.Linear(2, 1).cuda()\n"
    result = migrate_text(source)
    notes = [n for n in result.attention if "which file that is does not show" in n.message]
    assert len(notes) == told and all(n.line == 3 for n in notes) and ".cuda()" not in result.text
    kept = migrate_text(source.replace(".cuda()", ""))
    assert not kept.edits and not kept.attention  # nothing else would be left of a device


EVALUATES_THERE = """\
import torch

def validate(loader, model, rank, seen=()):
    right = 0
    with torch.no_grad():
        for i, (x, y) in enumerate(loader):
            x = x.cuda(rank, non_blocking=True)
            y = y.cuda(rank)
            right += (model(x).argmax(1) == y).sum().item()
        for name in seen:
            right += len(name)
    return right
"""


def test_batches_of_an_evaluation_in_a_module_go_where_the_lifted_script_placed_the_model(tmp_path):
    """The Trainer places the batches that it draws; these it does not."""
    trains = "from there import validate\n" + TRAINS.replace("        print(epoch)", "        validate(loader, net, 0)")
    write(tmp_path, **{"train.py": trains + "validate(loader, net, 0)\n", "there.py": EVALUATES_THERE})
    done = {m.path.name: m for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert done["train.py"].report.plan == "module"
    there = done["there.py"]
    assert "from ptmigrate.runtime import on_device\n" in there.result.text and ".cuda" not in there.result.text
    assert "in enumerate(on_device(loader, model)):" in there.result.text and "for name in seen:" in there.result.text
    assert [e.line for e in there.report.edits if "its batches go where" in e.message] == [6]
    write(tmp_path, **{name: m.result.text for name, m in done.items()})
    assert not any(m.report.changed for m in migrate_all(collect([tmp_path / "train.py"]), Options()))


@pytest.mark.parametrize("plan", ["loop", "auto"])
def test_without_a_lifted_script_they_stay_where_they_are(tmp_path, plan):
    script = "import torch\nfrom there import validate\nvalidate([], torch.nn.Linear(2, 1), 0)\n"
    trains = "from there import validate\n" + TRAINS + "validate(loader, net, 0)\n"
    write(tmp_path, **{"train.py": trains if plan == "loop" else script, "there.py": EVALUATES_THERE})
    done = {m.path.name: m for m in migrate_all(collect([tmp_path / "train.py"]), Options(plan=plan))}
    assert "on_device" not in done["there.py"].result.text


@pytest.mark.parametrize("line", ["x = x.cuda(async=True)", "x = x.cuda(non_blocking=True)"])
def test_a_script_that_has_to_be_mended_is_followed_into_its_modules(tmp_path, line):
    head = "# -*- coding: latin-1 -*-\n# \xfc\nfrom lib.net import Net\n"
    write(tmp_path, **{"train.py": "", "lib/net.py": "import torch\n"})
    (tmp_path / "train.py").write_bytes(f"{head}def f(x):\n    {line}\n    return x\n".encode("latin-1"))
    assert names(tmp_path / "train.py") == {"train.py", "lib/net.py"}


def test_one_that_cannot_be_mended_is_not(tmp_path):
    write(tmp_path, **{"train.py": "from lib.net import Net\nprint 'async'\n", "lib/net.py": "import torch\n"})
    assert names(tmp_path / "train.py") == {"train.py"}


EVALUATED = """
import torch


def evaluate(model, loader, params):
    for x in loader:
        if params.cuda:
            x = x.cuda()
        print(model(x).sum().item())


if __name__ == "__main__":
    evaluate(torch.nn.Linear(2, 1), [torch.ones(1, 2)], None)
"""


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("reader", "kept"), [("from evaluate import evaluate\n", True), ("", False)])
def test_what_other_files_call_keeps_its_parameters(tmp_path, reader, kept, whole):
    """A file that is run by itself, too: the training ended at its evaluation."""
    trains = "import torch\nprint(torch.ones(1).cuda())\n\ndef step(loss, optimizer):\n    loss.backward()\n"
    write(tmp_path, **{"evaluate.py": EVALUATED, "train.py": reader + trains})
    paths = [tmp_path] if whole else [tmp_path / "train.py", *([] if reader else [tmp_path / "evaluate.py"])]
    done = {m.path.name: m.result.text for m in migrate_all(collect(paths), Options())}
    assert ("def evaluate(model, loader, params):" in done["evaluate.py"]) is kept and ".cuda" not in done[
        "evaluate.py"
    ].replace("params.cuda", "")


ON_HELPER = """
import torch
import helper
from torch.utils.data import DataLoader

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    for x, y in DataLoader(helper.data, 4):
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "helper", ["print 'a'\n", "def f(async=True):\n    print(async)\n", '"""\\Users"""\nprint(1)\n']
)
def test_what_has_no_torch_and_is_of_another_python_stays(tmp_path, helper):
    write(tmp_path, **{"train.py": ON_HELPER, "helper.py": helper})
    train, beside = migrate_all(collect([tmp_path / "train.py"]), Options())
    assert train.report.plan == "module"
    assert (beside.report.plan, beside.report.changed) == ("none", False)


def test_an_old_name_of_an_argument_below_a_lifted_script(tmp_path):
    helper = "import torch\n\n\ndef move(x):\n    print(x)\n    return x.cuda(async=True)\n"
    write(tmp_path, **{"train.py": ON_HELPER, "helper.py": helper})
    beside = migrate_all(collect([tmp_path / "train.py"]), Options())[1]
    assert "    rank_zero_print(x)" in beside.result.text
    assert "async" not in beside.result.text


def test_what_was_migrated_before_is_left_below_a_lifted_script(tmp_path):
    helper = (
        "import torch\nfrom ptmigrate.runtime import on_device\n\n\ndef f(x):\n    print(x)\n    return on_device(x)\n"
    )
    write(tmp_path, **{"train.py": ON_HELPER, "helper.py": helper})
    beside = migrate_all(collect([tmp_path / "train.py"]), Options())[1]
    assert not beside.report.changed


HELPERS = "import torch.distributed as dist\n\n\ndef is_main():\n    return dist.get_rank() == 0\n"
ASKS_THERE = """
import torch
import torch.distributed as dist
from torch import nn
from helpers import is_main

dist.init_process_group("gloo")
net = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=4)
for epoch in range(2):
    for x in loader:
        loss = net(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with open("log.txt", "a" if is_main() else "r") as f:
        print(epoch)
"""


def test_a_file_that_only_asks_which_process_it_is_has_the_name_that_it_asks_by(tmp_path):
    """It read `is_global_zero` and had no import of it: nothing else in it changed."""
    write(tmp_path, **{"train.py": ASKS_THERE, "helpers.py": HELPERS})
    found = {m.path.name: m.result.text for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert found["helpers.py"].count("from ptmigrate.runtime import is_global_zero\n") == 1
    assert "    return is_global_zero()\n" in found["helpers.py"]
    assert migrate_text(found["helpers.py"], is_script=False).text == found["helpers.py"]


def test_a_file_with_a_function_of_that_name_keeps_it():
    own = "def is_global_zero():\n    return dist.get_rank() == 0\n"
    result = migrate_text(f"import torch.distributed as dist\n\n\n{own}", is_script=False)
    assert "ptmigrate" not in result.text


def test_what_it_asks_by_and_what_it_prints_by_come_in_one_import(tmp_path):
    write(tmp_path, **{"train.py": ASKS_THERE, "helpers.py": HELPERS + "\n\ndef show(x):\n    print(x)\n"})
    found = {m.path.name: m.result.text for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert found["helpers.py"].count("ptmigrate.runtime") == 1
    assert "from ptmigrate.runtime import is_global_zero, rank_zero_print\n" in found["helpers.py"]
