"""A batch that a script asks whether it is a list has no device of its own: what is taken of it does."""

from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.randn(16, 3), torch.randint(0, 2, (16, 3))), batch_size=8)
model = nn.Linear(3, 3).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for data in loader:
        if isinstance(data, (list, tuple)):
            if len(data) > 1:
                cond = data[1].float()
                cond = cond.to(device)
            else:
                cond = None
            data = data[0]
        noise = torch.ones(3).to(device)
        data = data.to(device)
        opt.zero_grad()
        loss = (model(data) + cond * noise).pow(2).mean()
        loss.backward()
        opt.step()
    print(loss.item())


for epoch in range(2):
    train()
"""


def test_what_is_taken_of_the_batch_is_placed(tmp_path):
    text = check_on_card(tmp_path, SCRIPT)
    assert "cond.to(" not in text and "data.device" not in text


def test_one_that_is_asked_whether_it_is_a_tensor_has_its_device():
    asked = "isinstance(data, torch.Tensor)"
    text = SCRIPT.replace("isinstance(data, (list, tuple))", asked).replace(
        "noise = torch.ones(3)", "noise = data.sum()"
    )
    text = text.replace("cond * noise", "cond * torch.ones(3).to(device)")
    assert ".to(data.device)" in migrate_text(text).text
