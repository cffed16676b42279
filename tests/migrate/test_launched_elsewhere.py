"""T9: a launcher's variables that another file of the project asks for, which need say nothing of torch."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests import forked

SCRIPT = """import os
import torch
import torch.distributed as dist
{imports}

dist.init_process_group("gloo")
data = torch.ones(8, 2)
loader = torch.utils.data.DataLoader(data, 4 // {world})
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    for x in loader:
        loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
if {rank} == 0:
    os.makedirs("out")
"""
ASKED = """import os

def env(name, default=0):
    return int(os.environ.get(name, default))
"""
SETTINGS = """import os

MANY = int(os.environ.get("WORLD_SIZE", 1))
ME = int(os.environ["RANK"])
"""
CALLS = """import os

def many():
    return int(os.getenv("WORLD_SIZE", "1"))

def me():
    return int(os.environ["RANK"])
"""
OBJECT = """import os

class Cluster:
    def __init__(self):
        self.me = int(os.environ["RANK"])
        self.many = int(os.environ["WORLD_SIZE"])
"""
CASES = {
    "by name": (ASKED, "from there import env", 'env("WORLD_SIZE", 1)', 'env("RANK")'),
    "names": (SETTINGS, "from there import ME, MANY", "MANY", "ME"),
    "of a module": (SETTINGS, "import there as t", "t.MANY", "t.ME"),
    "of a star": (SETTINGS, "from there import *", "MANY", "ME"),
    "functions": (CALLS, "from there import many, me", "many()", "me()"),
    "an object": (OBJECT, "from there import Cluster\nc = Cluster()", "c.many", "c.me"),
}  # fmt: skip


def migrated(tmp_path, there, script):
    (tmp_path / "there.py").write_text(there)
    (tmp_path / "main.py").write_text(script)
    done = migrate_all(collect([tmp_path / "main.py"]), Options())
    for m in done:
        m.path.write_bytes(m.data)
    return {m.path.stem: m for m in done}


@pytest.mark.parametrize("case", CASES)
def test_the_processes_of_ptrun_are_one_for_the_script(tmp_path, case):
    there, imports, world, rank = CASES[case]
    script = SCRIPT + "with open('seen.txt', 'w') as f:\n    f.write(str([{world}, {rank}, loader.batch_size]))\n"
    done = migrated(tmp_path, there, script.format(imports=imports, world=world, rank=rank))
    assert done["there"].report.changed and done["main"].report.plan == "module"
    text = done["main"].result.text.replace("trainer.fit(", "print(")  # nobody meets this process
    (tmp_path / "main.py").write_text(text)
    run = forked.run("main.py", cwd=tmp_path, RANK="1", WORLD_SIZE="2")  # as ptrun sets them
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "seen.txt").read_text() == "[1, 0, 4]"


def test_a_file_with_torch_is_no_other(tmp_path):
    there, imports, world, rank = CASES["by name"]
    script = SCRIPT.format(imports=imports, world=world, rank=rank)
    text = migrated(tmp_path, "import torch\n" + there, script)["there"].result.text
    assert "    return int(plain_environ().get(name, default))\n" in text


@pytest.mark.parametrize("case", [c for c in CASES if c != "by name"])
def test_a_rank_of_another_file_guards_what_rank_0_does(tmp_path, case):
    there, imports, world, rank = CASES[case]
    text = migrated(tmp_path, there, SCRIPT.format(imports=imports, world=world, rank=rank))["main"].result.text
    assert 'if is_global_zero():\n    os.makedirs("out")\n' in text
    assert "DataLoader(data, 4)" in text


@pytest.mark.parametrize(
    "there",
    [
        'import os\n\nMANY = int(os.environ.get("WORKERS", 1))\nME = 0\n',
        "import os\n\nME, MANY = 0, os.getenv(KEY)\n",
        'import os\n\nMANY = os.environ["WORLD_SIZE"\n',  # does not parse
        'ME, MANY = 0, settings["WORLD_SIZE"]\n',
    ],
)
def test_what_asks_for_others_keeps_its_bytes(tmp_path, there):
    done = migrated(tmp_path, there, SCRIPT.format(imports="from there import ME, MANY", world="MANY", rank="ME"))
    assert done["there"].data.decode() == there and done["there"].report.error is None


def test_without_processes_by_hand_it_keeps_its_bytes(tmp_path):
    script = "import torch\nfrom there import MANY\nprint(torch.ones(MANY))\n"
    assert migrated(tmp_path, SETTINGS, script)["there"].data.decode() == SETTINGS


@pytest.mark.parametrize("asks", ["from environs import env", "import settings"])
def test_a_function_of_no_file_of_the_project_is_told(tmp_path, asks):
    call = 'settings.env("WORLD_SIZE", 1)' if "settings" in asks else 'env("WORLD_SIZE", 1)'
    script = SCRIPT.format(imports=asks, world=call, rank="dist.get_rank()")
    notes = migrated(tmp_path, "import os\n", script)["main"].report.attention
    assert [(n.line, n.code) for n in notes if "what the launcher sets" in n.message] == [(8, "PTM420")]


def test_what_python_itself_is_given_is_not(tmp_path):
    script = SCRIPT.format(imports='os.environ.setdefault("RANK", "0")\nprint("RANK")', world=1, rank="dist.get_rank()")
    notes = migrated(tmp_path, "import os\n", script)["main"].report.attention
    assert not [n for n in notes if "what the launcher sets" in n.message]
