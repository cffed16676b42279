"""Ranks that ask whether a path is there, and then make it, get rank 0's answer: one that comes late finds it made."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests import forked

SCRIPT = """
import os, shutil
from pathlib import Path
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter
LATE
run, path = 'run', 'first.pt'
model = torch.nn.Linear(6, 2)
ASKS
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(1):
    for (x,) in DataLoader(TensorDataset(torch.ones(16, 6)), batch_size=4):
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
print('done')
"""
SAVE = "torch.save(model.state_dict(), path)"
ARCHIVED = "if os.path.exists(run):\n    shutil.make_archive(run, 'zip', run)\n"
ANSWERED = {
    "if os.path.exists(run):\n    raise SystemExit('there')\nelse:\n    os.makedirs(run)": "if ANSWER(exists(run)):",
    "if os.path.isdir(run):\n    raise SystemExit('there')\nos.mkdir(run)": "if ANSWER(isdir(run)):",
    "if not os.path.exists(run):\n    os.makedirs(run + '/a')\nelse:\n    exit(1)": "not ANSWER(exists(run)):",
    "if os.path.exists(run):\n    shutil.rmtree(run)\nos.makedirs(run)": "rank_zero_file(shutil.rmtree)(run)",
    f"{ARCHIVED}    shutil.rmtree(run)\nos.makedirs(run)": "rank_zero_file(shutil.rmtree)(run)",
    "at = Path(run)\nif at.exists():\n    raise SystemExit(1)\nat.mkdir()": "if rank_zero_value(at.exists()):",
    "assert not os.path.exists(run), 'there'\nos.makedirs(run)": "assert not ANSWER(exists(run)), 'there'",
    "assert not os.path.exists(run)\nwriter = SummaryWriter(log_dir=run)": "assert not ANSWER(exists(run))",
    "if os.path.isdir(run):\n    exit(1)\nwriter = SummaryWriter(os.path.join(run, 'a'))": "if ANSWER(isdir(run)):",
    f"if not Path(path).is_file():\n    {SAVE}": "if not rank_zero_value(Path(path).is_file()):\n    rank_zero_save(",
    f"if not os.path.exists(path):\n    {SAVE}": "if not ANSWER(exists(path)):\n    rank_zero_save(",
    f"if not os.path.exists(run) or not os.path.isfile(path):\n    {SAVE}": "ANSWER(exists(run)) or not ANSWER(isfile(",
}
KEPT = [
    "if not os.path.exists(run):\n    os.makedirs(run)",  # the runtime makes it once
    "if os.path.exists(run):\n    print('there')\nelse:\n    os.makedirs(run)",
    "if os.path.exists(run):\n    raise SystemExit(1)",
    "place = Path(run)\nif not place.exists():\n    place.mkdir()",
    "place = Path(run)\nif place.exists():\n    raise SystemExit(1)\nPath(path).mkdir()",
    "if os.path.exists(run):\n    raise SystemExit(1)\nos.makedirs(path)",
    "if os.path.exists(path):\n    model.load_state_dict(torch.load(path))",
    f"if int(os.environ.get('RANK', 0)) == 0:\n    if not os.path.exists(path):\n        {SAVE}",
    f"class Once:\n    def save(self):\n        if not os.path.exists(path):\n            {SAVE}",
    f"if len(path) > 3:\n    {SAVE}",
    "assert os.path.exists(run)\nos.makedirs(run + '/a')",
    "assert not os.path.exists(run)\nos.makedirs(path)",
    "assert not os.path.exists(run)\nopen(run).read()",
]


def migrated(asks, late=""):
    return migrate_text(SCRIPT.replace("ASKS", asks).replace("LATE", late)).text


@pytest.mark.parametrize("asks", ANSWERED)
def test_rank_zero_answers_for_all(asks):
    text = migrated(asks)
    assert ANSWERED[asks].replace("ANSWER(", "rank_zero_value(os.path.") in text
    first = next(line for line in text.splitlines() if line.startswith("from ptmigrate"))
    assert "rank_zero_value" in first
    assert migrate_text(text).text == text


@pytest.mark.parametrize("asks", KEPT)
def test_what_no_rank_makes_or_one_alone_asks_stays(asks):
    assert "rank_zero_value" not in migrated(asks)


@pytest.mark.parametrize("late", ["0", "1"])
@pytest.mark.parametrize(
    "asks",
    [a for a in ANSWERED if "rmtree" in a or "at = " in a or a == f"if not os.path.exists(path):\n    {SAVE}"],
)
def test_a_rank_that_comes_late_goes_the_same_way(tmp_path, asks, late):
    waits = f"if os.environ.get('LOCAL_RANK') == '{late}':\n    import time\n    time.sleep(2)"
    (tmp_path / "script.py").write_text(migrated(asks, waits))
    if "rmtree" in asks:
        (tmp_path / "run" / "old").mkdir(parents=True)
    done = forked.ptrun("--accelerator", "cpu", "--devices", "2", "script.py", cwd=tmp_path)
    assert done.returncode == 0 and "done" in done.stdout, done.stdout + done.stderr
    assert not (tmp_path / "run" / "old").exists()


OBJECT = f"""
class Keeper:
    def keep(self):
        if not os.path.exists(path):
            self.write()
    def write(self):
        {SAVE}
"""


def test_a_save_that_each_comes_to_by_its_own_answer_waits_for_nobody():
    """Who calls a method does not show: a rank that finds the file would leave the others waiting."""
    text = migrated(OBJECT)
    assert "on_rank_zero(torch.save)(model" in text and "rank_zero_save(" not in text
    assert "rank_zero_save(model" in migrated(OBJECT.replace("if not os.path.exists(path):", "if len(path) > 1:"))
