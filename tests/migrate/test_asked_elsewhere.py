"""Questions for paths in files that a script imports: rank 0 answers where all come, and they are told where not."""

import pytest
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.result import Options

from tests import forked
from tests.migrate.test_projects import write

TRAIN = """import os
import torch
import task
LATE
torch.manual_seed(0)
path = task.make(40, 'data')
loader = torch.utils.data.DataLoader(task.Numbers(path), batch_size=4)
net = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(2):
    for x in loader:
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
"""
TASK = """import os
import torch


def make(n, folder):
    path = os.path.join(folder, 'train.txt')
    if not os.path.isdir(folder):
        os.mkdir(folder)
    else:
        if os.path.exists(path):
            return path
    with open(path, 'w') as f:
        for i in range(n):
            f.write(f'{i / n}\\n')
            LATE
    return path


class Numbers(torch.utils.data.Dataset):
    def __init__(self, path):
        with open(path) as f:
            self.numbers = [float(line) for line in f]

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, i):
        return torch.tensor([self.numbers[i]])
"""
MADE = "path = task.make(40, 'data')"
ANSWERED, ASKED = "if not rank_zero_value(os.path.isdir(folder)):", "if not os.path.isdir(folder):"
MORE = TASK + "\n\ndef ready(n):\n    path = make(n, 'data')\n    return path\n"
OPENED = "with open(path, 'w')"
TOP = "if not os.path.isdir('data'):\n    os.mkdir('data')\nelse:\n    os.listdir('data')\n"


def migrated(tmp_path, train, **files):
    write(tmp_path, **{"train.py": train.replace("LATE", ""), **{f"{n}.py": t for n, t in files.items()}})
    done = migrate_all(collect([tmp_path / "train.py"]), Options())
    texts = {m.path.stem: m.result.text for m in done}
    told = {m.path.stem: [n.line for n in m.report.attention if n.code == "PTM410"] for m in done}
    return texts, told


@pytest.mark.parametrize(
    "train, task",
    [
        (TRAIN, TASK),
        (TRAIN, TASK.replace("import torch\n", "").replace("(torch.utils.data.Dataset)", "")),
        (TRAIN.replace("import task", "import task\nfrom task import make as made").replace("task.make", "made"), TASK),
        (TRAIN.replace("task.make(40, 'data')", "task.ready(40)"), MORE),
        (TRAIN.replace(MADE, "def main():\n    return task.make(40, 'data')\npath = main()"), TASK),
        (
            TRAIN.replace("task.Numbers(path)", "task.Numbers('data')").replace(MADE, ""),
            TASK.replace("open(path) as", "open(make(40, path)) as"),
        ),
        (TRAIN.replace(MADE, "if not os.path.isdir('logs'):\n    os.makedirs('logs')\n" + MADE), TASK),
        (TRAIN, TASK.replace("    if not", "    if os.path.isfile(path):\n        return path\n    if not")),
    ],
    ids=[
        "plainly",
        "without torch",
        "by another name",
        "through its file",
        "in a function",
        "a constructor",
        "folders",
        "a way out before",
    ],
)
def test_rank_zero_answers_where_all_come(tmp_path, train, task):
    texts, told = migrated(tmp_path, train, task=task)
    first = next(line for line in texts["task"].splitlines() if line.startswith("from ptmigrate.runtime import"))
    assert ANSWERED in texts["task"] and "rank_zero_file(open)(path, 'w')" in texts["task"]
    assert "rank_zero_file, rank_zero_value" in first
    assert not told["task"]


@pytest.mark.parametrize(
    "train, task",
    [
        (TRAIN.replace("    for x in loader:\n", "    for x in loader:\n        task.make(4, 'data')\n"), TASK),
        (TRAIN, TASK.replace("return torch.tensor(", "make(9, 'data')\n        return torch.tensor(")),
        (TRAIN.replace(MADE, f"if not os.path.exists('data/train.txt'):\n    {MADE}"), TASK),
        (TRAIN.replace(MADE, f"if task:\n    {MADE}\nmake = task.make"), TASK),
        (TRAIN.replace(MADE, f"try:\n    path = open('a')\nexcept OSError:\n    {MADE}"), TASK),
        (TRAIN.replace(MADE, f"{MADE}\nlater = lambda: task.make(1, 'data')"), TASK),
        (
            TRAIN.replace("task.make(40, 'data')", "task.ready(40)"),
            MORE.replace("    path = make(n", "    if os.path.isfile('x'):\n        return 'x'\n    path = make(n"),
        ),
    ],
    ids=["hook", "data set", "own answer", "handed on", "handler", "lambda", "way out above"],
)
def test_where_not_all_may_come_it_is_told(tmp_path, train, task):
    texts, told = migrated(tmp_path, train, task=task)
    assert ASKED in texts["task"] and "rank_zero_file" not in texts["task"]
    own = "make(9" in task  # each process gives samples of its own
    assert told["task"] == [task[: task.index(text)].count("\n") + 1 for text in (ASKED, *([] if own else [OPENED]))]


@pytest.mark.parametrize(
    "train, task",
    [
        (TRAIN, TASK.replace("        if os.path.exists(path):\n            return path\n", "        pass\n")),
        (TRAIN, TASK.replace("os.mkdir(folder)", "print('none')")),
        (TRAIN[: TRAIN.index("optimizer =")], TASK),
    ],
    ids=["does nothing else where it is there", "is not made", "nothing is trained"],
)
def test_what_all_may_ask_stays_and_is_not_told(tmp_path, train, task):
    texts, told = migrated(tmp_path, train, task=task)
    assert "rank_zero_value" not in texts["task"] and not any(ASKED in task.splitlines()[n - 1] for n in told["task"])


@pytest.mark.parametrize(
    "imports, answers",
    [("import task", True), ("def get():\n    import other\nimport task\nget()", False)],
    ids=["at the top", "when a function is called"],
)
def test_a_file_asks_as_it_is_imported(tmp_path, imports, answers):
    other = "import os\nimport torch\n" + TOP
    task = f"import other\n{TASK}" if answers else TASK
    texts, told = migrated(tmp_path, TRAIN.replace("import task", imports), task=task, other=other)
    assert ("rank_zero_value" in texts["other"]) == answers
    assert bool(told["other"]) != answers


def test_a_process_that_comes_late_reads_the_whole_file(tmp_path):
    texts, _ = migrated(tmp_path, TRAIN, task=TASK)
    late = "import time; time.sleep(0.5 if os.environ.get('LOCAL_RANK') == '1' else 0)"
    slow = "time.sleep(0.05 if os.environ.get('LOCAL_RANK') == '0' else 0)"
    texts["train"] = texts["train"].replace("import task\n", f"import task\n{late}\n")
    texts["task"] = texts["task"].replace("LATE", slow).replace("import os\n", "import os, time\n")
    write(tmp_path, **{f"{n}.py": t for n, t in texts.items()})
    two = forked.ptrun("--accelerator", "cpu", "--devices", "2", "--global-batch", "train.py", cwd=tmp_path)
    assert two.returncode == 0, two.stderr
    write(tmp_path, **{"one/train.py": TRAIN.replace("LATE", ""), "one/task.py": TASK.replace("LATE", "")})
    one = forked.run("train.py", cwd=tmp_path / "one")
    a, b = (float(p.stdout.split()[-1]) for p in (one, two))
    assert b == pytest.approx(a, rel=1e-4)
