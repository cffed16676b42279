"""A network that a function beside the training makes for itself stays where that function puts it."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_project_on_card

SCRIPT = """\
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
data = TensorDataset(torch.linspace(-1, 1, 32).reshape(8, 4), torch.arange(8) % 3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(x)


def rate(model):
    total = 0.0
    for x, y in DataLoader(data, batch_size=4):
        total += model(x.to(device)).max().item()
    return total


def build():
    built = Net().to(device)
    built.eval()
    return built


def train():
    {made}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in DataLoader(data, batch_size=4):
            loss = nn.functional.cross_entropy(net(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, round(loss.item(), 5))
    torch.save(net.state_dict(), "net.pt")


def test(Kind=Net):
    {tested}
    kept.load_state_dict(torch.load("net.pt", map_location="cpu"))
    noise = torch.full((1, 4), 0.5)
    noise = noise.to(device)
    with torch.no_grad():
        print(round(kept(noise).sum().item(), 5), round(rate(kept), 5))


torch.manual_seed(0)
train()
test()
"""
TRAINED = "net = Net().to(device)"
OWN = [
    "kept = Net().to(device)",
    "kept = Net()\n    kept = kept.to(device)",
    "kept = Net()\n    kept.to(device)",
    "kept = Kind().to(device).eval()",
    "kept = Net().to(device)\n    kept = Net().to(device)\n    kept = Net().to(device)",
]


@pytest.mark.parametrize("tested", OWN)
def test_its_own_move_stays(tmp_path, tested):
    result = check_on_card(tmp_path, SCRIPT.format(made=TRAINED, tested=tested))
    assert tested in result and "Net().to(device)\n    optimizer" not in result


def test_the_one_that_is_trained_goes_with_the_trainer(tmp_path):
    result = check_on_card(tmp_path, SCRIPT.format(made="net = build()", tested=OWN[0]))
    assert "built = Net()\n" in result


@pytest.mark.parametrize("more", ["return net", "keep.append(net)", "keep['net'] = net", "Holder(net)", "fit(net)"])
def test_one_that_others_get_is_theirs_to_place(more):
    own = f"def other():\n    net = Net().to(device)\n    net.eval()\n    {more}\n\n\ntorch.manual_seed(0)"
    text = SCRIPT.format(made=TRAINED, tested=OWN[0]).replace("torch.manual_seed(0)", own)
    assert "    net = Net()\n    net.eval()" in migrate_text(text).text


def test_in_a_file_that_the_script_imports(tmp_path):
    head, training = SCRIPT.format(made=TRAINED, tested=OWN[0]).split("def train():")
    training, test = training.split("def test(")
    tested = f"{head}def test({test}".replace("torch.manual_seed(0)\ntrain()\ntest()\n", "")
    main = f"from tested import DataLoader, Net, data, device, nn, test, torch\n\n\ndef train():{training}"
    texts = check_project_on_card(tmp_path, main=f"{main}torch.manual_seed(0)\ntrain()\ntest()\n", tested=tested)
    assert OWN[0] in texts["tested"] and "net = Net()\n" in texts["main"]
