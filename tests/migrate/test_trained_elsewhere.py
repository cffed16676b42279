"""A script is lifted with the loop of another file only where no third file trains what the script makes and places."""

from pathlib import Path

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests import forked

CARD = Path(__file__).parents[1] / "simulated_card.py"
MAIN = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
import policy
from judge import train

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
actor, critic = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
actor.to(device)
critic.to(device)
loader = DataLoader(TensorDataset(torch.randn(8, 3)), 4)
optimizer = torch.optim.SGD(critic.parameters(), 0.1)
agent = getattr(policy, "Agent")(actor)
train(critic, loader, optimizer, device)
for _ in range(3):
    agent.update(torch.ones(2, 3, device=device))
"""
JUDGE = """\
def train(critic, loader, optimizer, device):
    for epoch in range(2):
        for (x,) in loader:
            x = x.to(device)
            loss = critic(x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("judge", loss.item())
"""
POLICY = """\
import torch


class Agent:
    def __init__(self, actor):
        self.actor = actor
        self.optimizer = torch.optim.SGD(actor.parameters(), 0.1)

    def update(self, x):
        loss = (self.actor(x) - 1).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        print("policy", loss.item())
"""


def migrated(folder, policy):
    for kind, texts in (("old", {"main": MAIN, "judge": JUDGE, "policy": policy}), ("new", {})):
        (folder / kind).mkdir()
        for name, text in texts.items():
            (folder / kind / f"{name}.py").write_text(text)
    done = migrate_all(collect([folder / "old" / "main.py"]), Options())
    for m in done:
        (folder / "new" / m.path.name).write_bytes(m.data)
    return {m.path.name: m.report for m in done}


@pytest.mark.parametrize("on", [(), (CARD,)])
def test_what_a_third_file_trains_is_placed_by_the_script(tmp_path, on):
    reports = migrated(tmp_path, POLICY)
    assert reports["main.py"].plan == "loop"
    told = [n.message for n in reports["main.py"].attention if n.code == "PTM701"]
    assert told == [
        "the loop is kept in its own file: policy.py trains, too, and what it is given is this file's to place"
    ]
    runs = [forked.run(*on, "main.py", cwd=tmp_path / kind) for kind in ("old", "new")]
    assert [r.returncode for r in runs] == [0, 0], runs[0].stderr + runs[1].stderr
    old, new = ([line for line in r.stdout.splitlines() if not line.startswith("ptm")] for r in runs)
    assert len(old) == 5 and new == old


def test_where_none_does_the_loop_comes(tmp_path):
    assert migrated(tmp_path, POLICY.replace("loss.backward()", "loss.detach()"))["main.py"].plan == "module"
