"""What functions of another file save, and the script loads next: every process waits until it is there."""

import pytest
from ptmigrate.migrate.project import collect, migrate_all
from ptmigrate.migrate.result import Options

from tests import forked
from tests.migrate.test_projects import write

TRAIN = """import torch
import saver

torch.manual_seed(0)
loader = torch.utils.data.DataLoader(torch.randn(8, 900), batch_size=4)
net = torch.nn.Linear(900, 900)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in loader:
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
saver.keep(net, 'last.pt')
saver.back(net, 'last.pt')
print(sum(p.sum().item() for p in net.parameters()))
"""
SAVER = """import shutil
import torch


def keep(net, path):
    torch.save({'net': net.state_dict()}, path)
    shutil.copyfile(path, 'best.pt')


def back(net, path):
    net.load_state_dict(torch.load(path)['net'])
"""
IN_A_HOOK = TRAIN.replace("    print(epoch", "    saver.keep(net, 'last.pt')\n    print(epoch")
IN_A_FUNCTION = IN_A_HOOK.replace("    saver.keep(net, 'last.pt')\n    print", "    kept()\n    print").replace(
    "for epoch in", "def kept():\n    saver.keep(net, 'last.pt')\n\nfor epoch in"
)


def migrated(tmp_path, train, saver):
    write(tmp_path, **{"train.py": train, "saver.py": saver})
    done = migrate_all(collect([tmp_path / "train.py"]), Options())
    return {m.path.name: m.result.text for m in done}


LATELY = "    if x.max() < 9:\n        "


@pytest.mark.parametrize(
    "train",
    [
        IN_A_HOOK,
        IN_A_FUNCTION,
        TRAIN,
        TRAIN.replace("saver.keep", "keep").replace("import saver", "import saver\nfrom saver import keep"),
    ],
)
def test_all_wait_for_the_file(tmp_path, train):
    texts = migrated(tmp_path, train, SAVER)
    assert "    rank_zero_save({'net': net.state_dict()}, path)\n" in texts["saver.py"]
    assert "    rank_zero_file(shutil.copyfile)(path, 'best.pt')\n" in texts["saver.py"]


@pytest.mark.parametrize(
    "train, saver",
    [
        (IN_A_HOOK.replace("    saver.keep", f"{LATELY}saver.keep"), SAVER),
        (IN_A_FUNCTION.replace("    kept()", f"{LATELY}kept()"), SAVER),
        (TRAIN.replace("saver.back(net, 'last.pt')\n", ""), SAVER[: SAVER.index("def back")]),
        (TRAIN, SAVER + "\n\ndef both(net):\n    keep(net, 'both.pt')\n"),
    ],
    ids=["in a hook", "in a function that a hook calls", "nothing is loaded", "called in its own file, too"],
)
def test_where_not_all_may_come_or_nothing_is_loaded_they_do_not(tmp_path, train, saver):
    texts = migrated(tmp_path, train, saver)
    assert "    on_rank_zero(torch.save)(" in texts["saver.py"] and "rank_zero_file" not in texts["saver.py"]


def test_two_processes_load_what_one_saved(tmp_path):
    texts = migrated(tmp_path, TRAIN, SAVER)
    one = forked.run("train.py", cwd=tmp_path)
    write(tmp_path, **texts)
    two = forked.ptrun("--accelerator", "cpu", "--devices", "2", "--global-batch", "train.py", cwd=tmp_path)
    assert (one.returncode, two.returncode) == (0, 0), two.stderr
    a, b = (float(p.stdout.split()[-1]) for p in (one, two))
    assert b == pytest.approx(a, rel=1e-4)
