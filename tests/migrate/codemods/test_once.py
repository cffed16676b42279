import textwrap
from functools import partial

import pytest
from helpers import dedent
from ptmigrate.migrate.codemods.base import apply
from ptmigrate.migrate.codemods.once import Once
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests import forked


def once(source: str) -> str:
    facts = Facts(dedent(source))
    return apply(facts, list(Once().plan(facts)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("print('a', 1)", "rank_zero_print('a', 1)"),
        ("import sys\nprint(1, file=sys.stderr)", "import sys\nrank_zero_print(1, file=sys.stderr)"),
        ("import torch\ntorch.save(a, b)", "import torch\nrank_zero_save(a, b)"),
        ("from torch import save\nsave(a, b)", "from torch import save\nrank_zero_save(a, b)"),
        (
            "from torch.utils.tensorboard import SummaryWriter as W\nwith W('runs') as w:\n    pass",
            "from torch.utils.tensorboard import SummaryWriter as W\nwith on_rank_zero(W)('runs') as w:\n    pass",
        ),
        ("import wandb\nrun = wandb.init()", "import wandb\nrun = on_rank_zero(wandb.init)()"),
        (
            "import wandb\na = wandb.Artifact('m', type='model')",
            "import wandb\na = on_rank_zero(wandb.Artifact)('m', type='model')",
        ),
        ("import mlflow\nmlflow.set_tag('a', 1)", "import mlflow\non_rank_zero(mlflow.set_tag)('a', 1)"),
        (
            "import mlflow.pytorch\nmlflow.pytorch.log_model(net, 'net')",
            "import mlflow.pytorch\non_rank_zero(mlflow.pytorch.log_model)(net, 'net')",
        ),
        ("import wandb\nwandb.log({'a': f(1)})", "import wandb\non_rank_zero(wandb.log)({'a': f(1)})"),
        (
            "import torchvision.utils as v\nv.save_image(x, 'a.png')",
            "import torchvision.utils as v\non_rank_zero(v.save_image)(x, 'a.png')",
        ),
        (
            "import logging\nlogging.basicConfig(level=logging.INFO)",
            "import logging\non_rank_zero(logging.basicConfig)(level=logging.INFO)",
        ),
        (
            "import logging\nlog = logging.getLogger(__name__)\nh = logging.FileHandler('a.log')\nlog.addHandler(h)",
            "import logging\nlog = logging.getLogger(__name__)\nh = on_rank_zero(logging.FileHandler)('a.log')\n"
            "on_rank_zero(log.addHandler)(h)",
        ),
        (
            "from logging.handlers import RotatingFileHandler as R\nself.log.addHandler(R('a'))",
            "from logging.handlers import RotatingFileHandler as R\non_rank_zero(self.log.addHandler)"
            "(on_rank_zero(R)('a'))",
        ),
        ("f = open('log.txt', 'a')", "f = on_rank_zero(open)('log.txt', 'a')"),
        (
            "import csv\nwith open(p, mode='a+') as f:\n    csv.writer(f).writerow([1])",
            "import csv\nwith on_rank_zero(open)(p, mode='a+') as f:\n    csv.writer(f).writerow([1])",
        ),
        ("import torch as t\nif x:\n    t.save(a, b)", "import torch as t\nif x:\n    rank_zero_save(a, b)"),
        ("import torch\ntorch.save(obj=a, f=b)", "import torch\nrank_zero_save(obj=a, f=b)"),
        ("import torch\nwith open(p, 'wb') as f:\n    torch.save(a, f)", "import torch\nrank_zero_save(a, p)"),
        ("import torch\nwith open(p, 'wb') as g:\n    torch.save(a, f=g)", "import torch\nrank_zero_save(a, f=p)"),
        (
            "import torch\nwith open(p, 'wb') as g:\n    torch.save(f=g, obj=a)",
            "import torch\nrank_zero_save(f=p, obj=a)",
        ),
        ("map(print, xs)", "map(rank_zero_print, xs)"),
    ],
)
def test_rank_0_does_it(before, after):
    assert once(before) == after
    assert once(after) == after


@pytest.mark.parametrize(
    "source",
    [
        "print(1, file=log)",
        "def print(x):\n    pass\nprint(1)",
        "def f(print):\n    print(1)",
        "from rich import print\nprint(1)",
        "logger.print(1)",
        "map(log.print, xs)",
        "open('a')",
        "open(f'{rank}.txt', 'a')",
        "import os\nopen(str(os.getpid()), 'a')",
        "from mine import open\nf = open('log.txt', 'a')",
        "if is_master:\n    f = open('log.txt', 'a')",
        "import logging\nlogging.getLogger(__name__).setLevel(logging.INFO)\nlogging.info('a')",
        "import logging\nif rank == 0:\n    logging.basicConfig(level=logging.INFO)",
        "found = log.addHandler(h)",
        "import io, torch\nkept = io.BytesIO()\ntorch.save(a, kept)",
        "import io, torch\ntorch.save(a, f=io.BytesIO())",
        "import torch\nf(torch.save(a, b))",
        "import torch\nif trainer.is_global_zero:\n    torch.save(a, b)",
        "numpy.save(a, b)",
        "model.save(a)",
        "import wandb\nx = wandb.Image(y)",
        "import wandb\nconfig = wandb.config",
        "import mlflow\nmlflow.set_tracking_uri('a')",
        "import mlflow\ninfo = mlflow.pytorch.log_model(net, 'net')",
        "from torchvision.utils import save_image\nx = save_image(y)",
        "import wandb\nif rank == 0:\n    wandb.init()",
        "class SummaryWriter:\n    pass\nw = SummaryWriter()",
        "writer.log(1)",
        "text = 'torch.save(a, b)'  # print(1)",
        "import torch\nsave = [torch.save]",
        "import logging\nlog = logging.getLogger(__name__)\nlog.removeHandler(h)",
        "save(a, b)",
    ],
)
def test_unchanged(source):
    assert once(source) == source


def test_a_line_above_the_bar_is_printed_once():
    written = once("from tqdm.auto import tqdm\ntqdm.write('x')")
    assert "on_rank_zero(tqdm.write)('x')" in written
    assert "on_rank_zero(sys.stdout.write)('x')" in once("import sys\nsys.stdout.write('x')")
    for other in (
        "sys = Log()\nsys.stdout.write('x')",
        "from mine import tqdm\ntqdm.write('x')",
        "from tqdm import tqdm\nn = tqdm.write('x')",
    ):
        assert once(other) == other


BAR = "from tqdm import tqdm\nbar = tqdm(range(3))\nfor i in bar:\n    bar.write('x')"


@pytest.mark.parametrize(
    "text",
    [
        BAR,
        BAR.replace("from tqdm import tqdm", "import tqdm").replace("tqdm(", "tqdm.tqdm("),
        BAR.replace("= tqdm", "= tqdm.auto.tqdm").replace("from tqdm import tqdm", "import tqdm.auto"),
    ],
)
def test_nor_is_one_that_the_bar_itself_prints(text):
    assert "    on_rank_zero(bar.write)('x')" in once(text)


@pytest.mark.parametrize(
    "text",
    [
        BAR.replace("bar = tqdm(", "bar = open("),
        BAR.replace("bar = tqdm(", "bar = open(p)\nbar = tqdm("),
        BAR.replace("    bar.write", "    n = bar.write"),
        BAR.replace("bar.write('x')", "bar.set_description('x')"),
    ],
)
def test_what_others_write_stays(text):
    assert once(text) == text


FILES = ["os.remove(p)", "os.replace(p, q)", "shutil.rmtree(p)", "shutil.copyfile(p, q)", "shutil.copytree(p, q)"]


@pytest.mark.parametrize("call", [*FILES, "shutil.make_archive(p, 'zip', p)"])
def test_what_takes_files_away_is_done_once(call):
    text = "import os\nimport shutil\n" + SCRIPT_THAT_SAVES.replace("SAVE", call)
    name, rest = call.split("(", 1)
    assert f"on_rank_zero({name})({rest}" in migrate_text(text).text
    guarded = text.replace(call, f"if rank == 0:\n    {call}")
    assert "on_rank_zero" not in migrate_text(guarded).text
    assert "on_rank_zero" not in migrate_text(text.replace(call, f"done = {call}")).text


@pytest.mark.parametrize("call", ["os.replace(p, q)", "os.rename(p, q)", "shutil.copyfile(p, q)", "shutil.move(p, q)"])
def test_ranks_that_compute_the_same_wait_for_a_file_that_is_moved(call):
    text = "import os\nimport shutil\n" + SCRIPT_THAT_SAVES.replace("SAVE", call)
    name, rest = call.split("(", 1)
    kept = migrate_text(text, Options(plan="loop"))
    assert f"rank_zero_file({name})({rest}" in kept.text and "import Runtime, rank_zero_file\n" in kept.text
    assert "rank_zero_file" not in migrate_text(text.replace(call, f"if rank == 0:\n    {call}")).text
    removed = migrate_text(text.replace(call, "os.remove(p)"), Options(plan="loop"))
    assert "on_rank_zero(os.remove)(p)" in removed.text


@pytest.mark.parametrize(
    ("lines", "waits"),
    [
        ("model.load_state_dict(torch.load(p))\nos.remove(p)", True),
        ("model.load_state_dict(torch.load(p))\nshutil.rmtree(p)", True),
        ("if __name__ == '__main__':\n    print(torch.load(p))\n    os.unlink(p)", True),
        ("def end():\n    print(torch.load(p))\n    os.unlink(p)\n\nend()", True),
        ("print(torch.load(p))\nif loss > 3:\n    os.remove(p)", False),
        ("print(torch.load(p))\nfor name in (p, q):\n    os.remove(name)", False),
        ("with open(p, 'w') as f:\n    f.write('1')\nwith open(p) as f:\n    print(f.read())\nos.remove(p)", True),
        ("with open('log.txt', 'w') as f:\n    f.write('1')\nos.remove(p)", False),
        ("os.remove(p)", False),
    ],
)
def test_a_file_that_is_loaded_is_removed_when_all_have_read_it(lines, waits):
    """Rank 0 removed it while another rank was about to open it."""
    text = migrate_text("import os\nimport shutil\n" + SCRIPT_THAT_SAVES.replace("SAVE", lines)).text
    assert ("rank_zero_file(" in text) is waits and ("on_rank_zero(" in text) is not waits


SCRIPT_THAT_SAVES = """\
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in torch.utils.data.DataLoader(torch.ones(4, 2)):
    optimizer.zero_grad()
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
SAVE
"""


SAVES = """\
CONDITION:
    torch.save(model.state_dict(), p)
model.load_state_dict(torch.load(p))
"""


@pytest.mark.parametrize(
    ("condition", "waits"),
    [
        ("if epoch % 5 == 0", True),
        ("if loss.item() < 3", True),
        ("if epoch > len(p) and total / 2 < best", True),
        ("if worst > 3", False),
        ("if time.time() > 3", False),
        ("with open(p)", False),
    ],
)
def test_a_save_under_a_condition_is_waited_for_where_every_rank_comes_by(condition, waits):
    loop, rest = SCRIPT_THAT_SAVES.split("for x")
    rest = rest.replace("SAVE", SAVES.replace("CONDITION", condition))
    rest = rest.replace("    optimizer.step()", "    optimizer.step()\n    worst = x.max()\n    total += loss.item()")
    epochs = "total = 0.0\nfor x" + rest
    text = f"import time\n{loop}p, best = 'a.pt', 5\nfor epoch in range(2):\n{textwrap.indent(epochs, '    ')}"
    result = migrate_text(text)
    assert ("rank_zero_save(self.model.state_dict(), self.p)" in result.text) is waits
    assert any("another rank may come there first" in n.message for n in result.attention) is not waits


RESTORES = """
def restored(net, path):
    net.load_state_dict(state_of(path))

def state_of(path):
    return torch.load(path)

def shown(path):
    return path
"""


@pytest.mark.parametrize(
    ("after", "waits"),
    [
        ("model.load_state_dict(torch.load(p))", True),
        ("print(epoch)", False),
        ("restored(model, p)", True),
        ("shown(p)", False),
    ],
)
def test_a_save_that_is_loaded_again_at_once_is_waited_for(after, waits):
    loop, rest = SCRIPT_THAT_SAVES.split("for x")
    epochs = "for x" + rest.replace("SAVE", f"torch.save(model.state_dict(), p)\n{after}")
    loop = loop.replace("model = ", f"{RESTORES}model = ", 1)
    text = migrate_text(f"{loop}p = 'a.pt'\nfor epoch in range(2):\n{textwrap.indent(epochs, '    ')}").text
    assert ("rank_zero_save(self.model.state_dict(), self.p)" in text) is waits
    assert ("is_global_zero" in text) is not waits


@pytest.mark.parametrize(
    ("path", "made"),
    [
        ("os.path.join(p, 'net.pt')", "os.path.join(self.p, 'net.pt')"),
        ("open(p, 'wb')", "self.p"),
        ("f=os.path.join('out', p)", "f=os.path.join('out', self.p)"),
        ("'{}.pt'.format(p)", "'{}.pt'.format(self.p)"),
    ],
)
def test_it_keeps_its_path(path, made):
    loop, rest = SCRIPT_THAT_SAVES.split("for x")
    saves = f"torch.save(model.state_dict(), {path})\nmodel.load_state_dict(torch.load(p))"
    epochs = "for x" + rest.replace("SAVE", saves)
    script = f"import os\n{loop}p = 'a.pt'\nfor epoch in range(2):\n{textwrap.indent(epochs, '    ')}"
    assert f"rank_zero_save(self.model.state_dict(), {made})\n" in migrate_text(script).text


@pytest.mark.parametrize(("called", "waits"), [("restored", True), ("shown", False)])
def test_so_is_one_that_another_file_loads(tmp_path, called, waits):
    loop, rest = SCRIPT_THAT_SAVES.split("for x")
    epochs = "for x" + rest.replace("SAVE", f"torch.save(model.state_dict(), p)\nfiles.{called}(model, p)")
    (tmp_path / "files.py").write_text(f"import torch\n{RESTORES.replace('shown(', 'shown(net, ')}")
    script = f"import files\n{loop}p = 'a.pt'\nfor epoch in range(2):\n{textwrap.indent(epochs, '    ')}"
    (tmp_path / "main.py").write_text(script)
    done = next(m for m in migrate_all(collect([tmp_path / "main.py"]), Options()) if m.path.stem == "main")
    assert (b"rank_zero_save(self.model.state_dict(), self.p)" in done.data) is waits


LOADED_BEFORE = """\
import os
import torch
from torch import nn
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    if os.path.exists("a.pt"):
        model.load_state_dict(torch.load("a.pt"))
    for x in torch.utils.data.DataLoader(torch.ones(4, 2)):
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), "a.pt")
"""


def test_so_is_one_that_the_next_epoch_loads():
    assert "rank_zero_save(self.model.state_dict(), " in migrate_text(LOADED_BEFORE).text


LOGS = """
import csv
import json
import logging
import torch

logging.basicConfig(format='%(message)s', level=logging.INFO)
log = logging.getLogger('own')
log.addHandler(logging.FileHandler('own.log', mode='w'))
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=4):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    log.info('epoch %d: %.5f', epoch, net.bias.item())
    with open('epochs.csv', 'a') as f:
        csv.writer(f).writerow([epoch, 1])
        print('more', file=f)
        json.dump([1], f)
"""


def test_what_a_lifted_script_logs_is_logged_once(tmp_path):
    result = migrate_text(LOGS)
    assert (
        result.plan == "module" and "\non_rank_zero(log.addHandler)(on_rank_zero(logging.FileHandler)(" in result.text
    )
    said = []
    two = ("--accelerator", "cpu", "--devices", "2", "--global-batch")
    for text, start in ((LOGS, forked.run), (result.text, partial(forked.ptrun, *two))):
        (tmp_path / "train.py").write_text(text)
        p = start("train.py", cwd=tmp_path)
        assert p.returncode == 0, p.stderr
        lines = [line for line in p.stderr.splitlines() if line.startswith("epoch ")]
        said.append((lines, (tmp_path / "own.log").read_text(), (tmp_path / "epochs.csv").read_text()))
        (tmp_path / "epochs.csv").unlink()
    assert said[0] == said[1] and len(said[0][0]) == 2


def asked(source: str) -> list[int]:
    return [n.line for n in Once().notes(Facts(dedent(source)))]


def test_a_question_that_every_process_would_ask_is_told_of():
    assert asked("import os\nif os.path.exists('a'):\n    if input('remove? ') != 'n':\n        pass") == [3]


@pytest.mark.parametrize(
    "source",
    [
        "from ptmigrate.runtime import is_global_zero\nif is_global_zero():\n    input('remove? ')",
        "def f(input):\n    return input(3)",
        "def input(x): ...\ninput(3)",
        "import torch\ntorch.nn.Linear(1, 1)(input)",
    ],
)
def test_one_of_rank_0_and_what_is_only_called_so_is_not(source):
    assert asked(source) == []


OWN_PRINT = """
import torch
import torch.distributed as dist


def rank_zero_print(*args):
    if dist.get_rank() == 0:
        print(*args)


dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.ones(8, 4), 4)
for epoch in range(2):
    for x in loader:
        loss = model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    rank_zero_print(epoch)
"""


def test_a_function_of_that_name_does_not_call_itself():
    text = migrate_text(OWN_PRINT).text
    assert "def rank_zero_print(*args):\n    pt_rank_zero_print(*args)\n" in text
    assert "import Module, Trainer, rank_zero_print as pt_rank_zero_print\n" in text


def test_nor_does_one_that_saves():
    own = OWN_PRINT.replace("rank_zero_print(*args)", "rank_zero_save(x, path)").replace(
        "print(*args)", "torch.save(x, path)"
    )
    text = migrate_text(own.replace("rank_zero_print(epoch)", "rank_zero_save(epoch, 'a.pt')")).text
    assert "def rank_zero_save(x, path):\n    pt_rank_zero_save(x, path)\n" in text


def test_one_save_to_a_file_that_is_opened_for_it_is_told_of_once():
    source = "import torch\nclass A:\n    def save(self):\n        with open('a.pt', 'wb') as f:\n"
    source += "            torch.save(x, f)\n"
    source += "    def load(self):\n        with open('a.pt', 'rb') as f:\n            return torch.load(f)\n"
    assert "rank_zero_save(x, 'a.pt')" in once(source)
    assert not list(Once().notes(Facts(source)))
    other = source.replace("torch.save(x, f)", "f.write(x)")
    assert [n.line for n in Once().notes(Facts(other))] == [4]
