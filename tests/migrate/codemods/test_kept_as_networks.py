"""A network that an object is given and keeps: what is made beside it is not placed by a `device` that it has not."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Distiller:
    def __init__(self, teacher, student, loader, device):
        self.device = device
        TEACHER
        self.student = student.to(self.device)
        self.loader = loader
        self.optimizer = torch.optim.SGD(self.student.parameters(), lr=0.1)
        with torch.no_grad():
            self.anchor = self.teacher(torch.eye(4, device=self.device))

    def train(self):
        for epoch in range(2):
            for (x,) in self.loader:
                x = x.to(self.device)
                with torch.no_grad():
                    target = self.teacher(x)
                loss = (self.student(x) - target).pow(2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(f"{epoch} {loss.item():.5f}")

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
loader = DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=4)
Distiller(nn.Linear(4, 2), nn.Linear(4, 2), loader, device).train()
"""


@pytest.mark.parametrize("kept", ["teacher.to(self.device).eval()", "teacher.to(self.device)", "teacher.to(device)"])
def test_it_is_asked_for_no_device(kept):
    text = TEXT.replace("TEACHER", f"self.teacher = {kept}")
    result = check_same(text, "module")
    assert "teacher.device" not in result and "student.device" not in result


def test_what_nothing_shows_a_place_for_is_told():
    notes = migrate_text(TEXT.replace("TEACHER", "self.teacher = teacher.to(self.device).eval()")).attention
    assert any(n.code == "PTM104" and "torch.eye(4, device=self.device)" in n.message for n in notes)


def test_a_tensor_that_is_kept_is_one():
    text = (
        "import torch\n\n\ndef mixed(x, device):\n    x = x.to(device)\n    return x + torch.ones(3, device=device)\n"
    )
    assert "torch.ones(3, device=x.device)" in migrate_text(text, is_script=False).text
