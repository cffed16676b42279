"""A folder's files that a kept loop works with keep what they place: no Trainer places it."""

import pytest
from ptmigrate.migrate.loops_of_others import OF_KEPT_LOOP
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests import forked
from tests.migrate.running import CARD

LAYERS = """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4).to(device)
        self.b = nn.Sequential(nn.ReLU(), nn.Linear(4, 1).to(device))

    def forward(self, x):
        return self.b(self.a(x))
"""
RATES = """\
import torch

def rate(net, loader, device):
    with torch.no_grad():
        return sum(((net(x.to(device)) - y.to(device)) ** 2).sum().item() for x, y in loader)
"""
DATA = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

x = torch.linspace(0, 1, 64).reshape(16, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
"""
TRAIN = """\
import torch
from data import loader
from layers import Net
from rates import rate

def fit(net, loader, device):
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(3):
        {first}
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item(), rate(net, loader, device))

torch.manual_seed(0)
fit(Net(), loader, "cuda" if torch.cuda.is_available() else "cpu")
"""
LEFT_EARLY = "if epoch > 1:\n            break"


def folder(path, **texts):
    """The files of a folder, migrated where they are; gives back what they became."""
    for name, text in texts.items():
        (path / f"{name}.py").write_text(text)
    for m in migrate_all(collect([path]), Options()):
        m.path.write_bytes(m.data)
    return {name: (path / f"{name}.py").read_text() for name in texts}


def printed(path):
    done = forked.run(CARD, "train.py", cwd=path)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith("ptmigrate")]


@pytest.mark.parametrize("also", [{}, {"a_first": "from layers import Net\nprint(Net())\n"}])
def test_what_a_kept_loop_works_with_is_where_it_was(tmp_path, also):
    texts = dict(train=TRAIN.format(first=LEFT_EARLY), data=DATA, layers=LAYERS, rates=RATES, **also)
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    before = printed(tmp_path)
    after = folder(tmp_path, **texts)
    assert "Runtime" in after["train"] and "nn.Linear(4, 4).to(device)" in after["layers"]
    assert "net(x.to(device))" in after["rates"]
    assert before and printed(tmp_path) == before
    again = folder(tmp_path, **after)
    assert again == after, "a second run changed something"


def test_what_a_trainer_places_is_placed_by_it(tmp_path):
    after = folder(tmp_path, train=TRAIN.format(first="net.train()"), data=DATA, layers=LAYERS, rates=RATES)
    assert "Trainer(" in after["train"]
    assert ".to(device)" not in after["layers"] + after["rates"]


def test_what_a_lifted_loop_shares_with_a_kept_one(tmp_path):
    """The kept one asks for more: what places its own tensors does so for both."""
    lifted, kept = TRAIN.format(first="net.train()"), TRAIN.format(first=LEFT_EARLY)
    texts = {"train": lifted, "other": kept, "data": DATA, "layers": LAYERS, "rates": RATES}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    before = printed(tmp_path)
    after = folder(tmp_path, **texts)
    assert "Trainer(" in after["train"] and "Runtime" in after["other"]
    assert "net(x.to(device))" in after["rates"]
    assert before and printed(tmp_path) == before
    assert folder(tmp_path, **after) == after, "a second run changed something"


SHOWS = """\
import torch
from layers import Net, noise

def show(net):
    return net(torch.ones(2, 4)).sum()

def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = Net().to(device)
    print(net(noise(2, device)).sum().item())

if __name__ == "__main__":
    main()
"""


def test_a_script_that_asks_where_it_is_has_no_kept_loop(tmp_path):
    """`net.to(Runtime.shared().device)`, of a file that a lifted script imports: what it imports stays as it is."""
    layers = LAYERS.replace(".to(device)", "") + "\ndef noise(n, device):\n    return torch.ones(n, 4, device=device)\n"
    train = TRAIN.format(first="net.train()").replace("import torch\n", "import torch\nimport shows\n", 1)
    after = folder(tmp_path, train=train, shows=SHOWS, data=DATA, layers=layers, rates=RATES)
    assert "Trainer(" in after["train"] and "Runtime.shared().device" in after["shows"]
    assert folder(tmp_path, **after) == after, "a second run changed something"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("runtime = Runtime.shared()", True),
        ("runtime_ = _Runtime.shared()  # of all files\r", True),
        ("device = Runtime.shared().device", False),
        ("    net.to(Runtime.shared().device)", False),
    ],
)
def test_the_line_that_tells_a_kept_loop(line, kept):
    assert (OF_KEPT_LOOP.search(f"import torch\n{line}\n".encode()) is not None) == kept


def test_a_file_that_trains_itself_is_a_script_of_its_own(tmp_path):
    other = TRAIN.format(first="net.train()").replace("def fit", "def fit_other")
    kept = f"from other import fit_other\n{TRAIN.format(first=LEFT_EARLY)}"
    after = folder(tmp_path, train=kept, other=other, data=DATA, layers=LAYERS, rates=RATES)
    assert "Runtime" in after["train"] and "Trainer(" in after["other"]


START = """\
import models.net

models.net.train_eval("cuda" if models.net.there else "cpu")
"""
BY_PARTS = """\
import torch
from data import loader
from steps import train

there = torch.cuda.is_available()


def train_eval(device):
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    net = net.to(device)
    best = 1e9
    for epoch in range(3):
        loss = train(net, loader, optimizer, device)
        if loss < best:
            best = loss
            print("best in", epoch)
"""
STEPS = """\
def train(net, loader, optimizer, device):
    total = 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("loss", total)
    return total
"""


@pytest.mark.parametrize("whole", [True, False], ids=["a folder", "a script"])
def test_a_start_that_names_neither_torch_nor_the_file_of_the_loop(tmp_path, whole):
    """The file between them places the model and prints, on every process."""
    (tmp_path / "models").mkdir()
    texts = {"train.py": START, "models/net.py": BY_PARTS, "steps.py": STEPS, "data.py": DATA}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    before = printed(tmp_path)
    assert len(before) == 6
    for m in migrate_all(collect([tmp_path if whole else tmp_path / "train.py"]), Options()):
        m.path.write_bytes(m.data)
    assert printed(tmp_path) == before
    done = forked.ptrun("--accelerator", "cpu", "--devices", "2", "--global-batch", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == [line.split()[0] for line in before]


def test_a_script_beside_a_loop_that_reaches_none_stays_as_it_is(tmp_path):
    after = folder(tmp_path, steps=STEPS, data=DATA, shown='import data\nprint("rows", len(data.x))\n')
    assert after["shown"] == 'import data\nprint("rows", len(data.x))\n'
