"""What a step of a script without devices makes where it meets what the model gave: it is made where that is."""

from pathlib import Path

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests import forked
from tests.migrate.running import check_same

CARD = Path(__file__).parents[2] / "simulated_card.py"
SCRIPT = """
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Linear(3, 2)
loss_fn = nn.MSELoss()
loader = DataLoader(TensorDataset(torch.randn(8, 3)), 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)


def mine(a, b):
    return (a - b).pow(2).mean()


for epoch in range(2):
    for (x,) in loader:
        optimizer.zero_grad()
        out = model(x)
        loss = LOSS
        loss.backward()
        optimizer.step()
        print(loss.item(), SHOWN)
"""
MADE = "torch.ones(4, 2)"
MEETING = [
    f"loss_fn(model(torch.randn(4, 3)), {MADE})",
    f"nn.MSELoss()(out, target={MADE})",
    f"F.mse_loss(out, {MADE}.float())",
    f"mine({MADE}, out)",
    f"(out - {MADE}).pow(2).mean()",
    f"torch.cat([out, {MADE}]).mean()",
    f"loss_fn(x, torch.ones(4, 3)) + out.mean() + (out > {MADE}).sum()",
    f"out.add({MADE}).mean()",
]
STAYS = [
    "(out.detach().cpu() - torch.ones(4, 2)).sum().item()",
    "torch.ones(4, 2).numpy()[0]",
    "out[torch.arange(2)].sum().item()",
    "np.dot(torch.ones(2), torch.zeros(2))",
    "(out * torch.tensor(2.0)).sum().item()",
]


def script(loss="out.mean()", shown="'.'"):
    return SCRIPT.replace("LOSS", loss).replace("SHOWN", shown)


@pytest.mark.parametrize("loss", MEETING)
def test_it_is_made_where_the_model_is(loss):
    text = migrate_text(script(loss)).text.partition("def training_step")[2]
    made = [part for part in ("torch.ones(4, 2", "torch.ones(4, 3", "torch.randn(4, 3") if part in loss]
    assert made and all(f"{part}, device=self.device)" in text or f"{part}, device=x.device)" in text for part in made)


@pytest.mark.parametrize("shown", STAYS)
def test_what_meets_nothing_of_the_model_stays(shown):
    assert "device" not in migrate_text(script(shown=shown)).text


def test_the_same_run():
    assert "device=self.device" in check_same(script(" + ".join(MEETING)), "module")


def test_the_same_on_a_card(tmp_path):
    text = script(" + ".join(MEETING), ", ".join(STAYS))
    (tmp_path / "old.py").write_text(text)
    (tmp_path / "new.py").write_text(migrate_text(text).text)
    old, new = forked.run("old.py", cwd=tmp_path), forked.run(CARD, "new.py", cwd=tmp_path)
    assert old.returncode == new.returncode == 0, old.stderr + new.stderr
    assert [line for line in new.stdout.splitlines() if not line.startswith("ptmigrate")] == old.stdout.splitlines()
