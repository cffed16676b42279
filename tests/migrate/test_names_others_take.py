"""What another file takes of a script stays in it: in a folder, and where a script is rewritten beside others."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

TRAIN = """
import torch
from torch import nn

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def build(device):
    return nn.Linear(4, 2).to(device)


def where():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


if __name__ == "__main__":
    device = where()
    model = build(DEVICE)
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(2):
        for x in torch.utils.data.DataLoader(torch.randn(24, 4), 8):
            x = x.to(DEVICE).to(device)
            loss = model(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
"""
TEST = """
import torch
from train import {}

x = torch.randn(6, 4)
print(x.to({}).sum().item())
"""


def migrated(tmp_path, taken, read, in_place):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "test.py").write_text(TEST.format(taken, read))
    asked = tmp_path / "train.py" if in_place else tmp_path
    done = {m.path.name: m.result.text for m in migrate_all(collect([asked]), Options(in_place=in_place))}
    return done["train.py"]


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize(
    "taken, read, stays",
    [
        ("DEVICE", "DEVICE", "DEVICE = torch"),
        ("where", "where()", "def where"),
        ("build", "build('cpu')", "build(device)"),
    ],
)
def test_it_stays(tmp_path, in_place, taken, read, stays):
    assert stays in migrated(tmp_path, taken, read, in_place)


@pytest.mark.parametrize("other", ["from train import nothing", "import trained\nprint(trained.DEVICE)", "DEVICE = 3"])
def test_what_nobody_takes_goes_from_a_script_beside_others(tmp_path, other):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "test.py").write_text(other)
    (m,) = migrate_all(collect([tmp_path / "train.py"]), Options(in_place=True))
    assert "DEVICE" not in m.result.text and "where" not in m.result.text and "device" not in m.result.text
