"""A script that another one imports from goes on to use the card where it is started itself."""

from pathlib import Path

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests import forked

CARD = Path(__file__).parents[1] / "simulated_card.py"
TRAIN = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from generate import Net, sample

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.randn(8, 3), torch.randn(8, 2)), 4)
net = Net().to(device)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = F.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sample(net)
"""
GENERATE = """\
import torch
from torch.utils.data import DataLoader


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)


HELPERS


if __name__ == "__main__":
    main()
"""
SAMPLE = """\
def sample(net):
    where = next(net.parameters()).device
    print(where.type, net(torch.ones(1, 3, device=where)).sum().item())"""
EVALUATE = """


def evaluate(net, loader, device):
    for x in loader:
        x = x.to(device)
        print(net(x).sum().item())"""
MAIN = """


def main():
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = Net().to(device)
    sample(net)"""
LOOP = """
    for x in DataLoader(torch.ones(4, 3), 2):
        x = x.to(device, torch.float32)
        print(net(x).sum().item(), x.device.type)"""
CALL = "\n    evaluate(net, DataLoader(torch.ones(4, 3), 2), device)"
PREDICT = "\n\n\ndef predict(net, x, device):\n    x = x.to(device)\n    return net(x)"
EVALUATES = TRAIN.replace("import Net, sample", "import Net, evaluate, sample")
EVALUATES += "evaluate(net, DataLoader(torch.ones(4, 3), 2), device)\n"
PREDICTS = TRAIN.replace("import Net, sample", "import Net, predict, sample")
PREDICTS = PREDICTS.replace("net(x), y", "predict(net, x, device), y")
HERE = ".to(Runtime.shared().device"


def migrated(folder, helpers, train=TRAIN, name="train.py"):
    generate = GENERATE.replace("HELPERS", helpers)
    for kind, texts in (("old", {"train.py": train, "generate.py": generate}), ("new", {})):
        (folder / kind).mkdir(exist_ok=True)
        for file, text in texts.items():
            (folder / kind / file).write_text(text)
    done = migrate_all(collect([folder / "old" / name]), Options())
    for m in done:
        (folder / "new" / m.path.name).write_bytes(m.data)
    return {m.path.name: m for m in done}


def same(folder, script, *on):
    runs = [forked.run(*on, script, cwd=folder / kind) for kind in ("old", "new")]
    assert [r.returncode for r in runs] == [0, 0], runs[0].stderr + runs[1].stderr
    old, new = ([line for line in r.stdout.splitlines() if not line.startswith("ptmigrate")] for r in runs)
    assert old == new != []
    return new


@pytest.mark.parametrize(
    ("helpers", "train", "there"),
    [
        (SAMPLE + MAIN, TRAIN, 1),
        (SAMPLE + MAIN + LOOP, TRAIN, 2),
        (SAMPLE + EVALUATE + MAIN + CALL, TRAIN, 2),
        (SAMPLE + EVALUATE + MAIN + CALL, EVALUATES, 1),
        (SAMPLE + PREDICT + MAIN, PREDICTS, 1),
    ],
    ids=["sampled", "a loop of its own", "a function of its own", "a loop of both", "a function of the other"],
)
def test_it_is_placed_by_the_runtime(tmp_path, helpers, train, there):
    done = migrated(tmp_path, helpers, train)
    text = done["generate.py"].data.decode()
    assert done["train.py"].report.plan == "module" and text.count(HERE) == there
    assert same(tmp_path, "generate.py", CARD)[0].startswith("cuda")
    same(tmp_path, "generate.py")
    same(tmp_path, "train.py", CARD)


def test_below_the_guard_itself(tmp_path):
    main = MAIN.replace("\n\n\ndef main():", "").replace("\n    ", "\n").replace("sample(net)", "")
    helpers = SAMPLE + "\n\n\ndef main():\n    pass"
    (tmp_path / "old").mkdir()
    text = GENERATE.replace("    main()\n", "".join(f"    {line}\n" for line in main.split("\n") if line))
    text = text.replace("HELPERS", helpers) + "    sample(net)\n"
    (tmp_path / "old" / "generate.py").write_text(text)
    (tmp_path / "old" / "train.py").write_text(TRAIN)
    done = {m.path.name: m for m in migrate_all(collect([tmp_path / "old" / "train.py"]), Options())}
    assert f"Net(){HERE})" in done["generate.py"].data.decode()


@pytest.mark.parametrize(
    ("helpers", "train"),
    [
        (SAMPLE + MAIN, TRAIN.replace("import Net, sample", "import Net, sample, main")),  # others run it, too
        (SAMPLE + MAIN + "\n\n\nmain()", TRAIN),
        (SAMPLE + "\n\n\ndef main():\n    pass", TRAIN),
    ],
    ids=["taken", "run by an import", "nothing to place"],
)
def test_what_others_run_is_placed_by_the_trainer(tmp_path, helpers, train):
    assert HERE not in migrated(tmp_path, helpers, train)["generate.py"].data.decode()


def test_what_nothing_would_bring_to_the_card_is_told(tmp_path):
    """`predict()` of the main part gets its x moved by no loop over batches."""
    helpers = "from mine import read\n\n\n" + SAMPLE + PREDICT + MAIN
    m = migrated(tmp_path, helpers + "\n    print(predict(net, read(), device))", PREDICTS)["generate.py"]
    assert HERE not in m.data.decode()
    told = [n.message for n in m.report.attention if n.code == "PTM101"]
    assert told == ["`Net().to(device)` removed: where this file is started itself nothing places it on a device"]
