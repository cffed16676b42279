"""A network that a file makes at its top, and that no other takes: no Trainer gets it, so that its own move stays."""

import pytest
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.running import check_project_on_card

DETECTOR = """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def load():
    return nn.Linear(4, 2)


MADE


def detect(raw):
    x = torch.tensor(raw).float().unsqueeze(0).to(device)
    with torch.no_grad():
        return model(x).cpu().numpy().shape
"""
MAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from detector import detect

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = nn.Linear(4, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.arange(16) % 3), batch_size=4)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), detect([1.0, 2.0, 3.0, 4.0]))
"""
MADE = ["model = load().to(device)\nmodel.eval()", "model = load()\nmodel.to(device)\nmodel.eval()"]


@pytest.mark.parametrize("made", MADE)
def test_its_move_stays(made, tmp_path):
    texts = check_project_on_card(tmp_path, detector=DETECTOR.replace("MADE", made), main=MAIN)
    assert ".to(device)" in texts["detector"].split("def detect")[0]


@pytest.mark.parametrize("made", MADE)
def test_one_that_the_script_trains_is_the_trainers(made, tmp_path):
    main = MAIN.replace("import detect", "import detect, model").replace("model = nn.Linear(4, 3).to(device)\n", "")
    (tmp_path / "main.py").write_text(main.replace("arange(16) % 3", "arange(16) % 2"))
    (tmp_path / "detector.py").write_text(DETECTOR.replace("MADE", made))
    done = {m.path.stem: m.data.decode() for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert "Trainer" in done["main"] and ".to(device)" not in done["detector"].split("def detect")[0]
