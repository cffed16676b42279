"""T1: a script that trains nothing places its networks itself, where it still places what they are given."""

import pytest
from ptmigrate.migrate.elsewhere import Elsewhere
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, run

ABOVE = """
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
"""
STAY = {
    "moved at once": "net = nn.Linear(4, 2).to(device)\nprint(net(torch.randn(3, 4).to(device)).sum().item())",
    "made there": "net = nn.Linear(4, 2)\nnet.to(device)\nprint(net(torch.ones(3, 4, device=device)).sum().item())",
    "by functions": """
def load():
    net = nn.Linear(4, 2)
    net.to(device)
    return net.eval()

def noise(n):
    return torch.ones(n, 4, device=device)

def predict(net, rows):
    x = torch.tensor(rows).to(device)
    with torch.no_grad():
        return net(x).cpu().numpy()

net = load()
print(predict(net, [[1.0, 2, 3, 4]]).tolist(), net(noise(2)).sum().item())""",
    "batches, and one by hand": """
net = nn.Linear(4, 2)
net = net.to(device)
with torch.no_grad():
    for x, y in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8, 2)), 3):
        x, y = x.to(device), y.to(device)
        print((net(x) - y).abs().sum().item())
print(net(torch.randn(1, 4).to(device)).sum().item())""",
    "of a class with a move of its own": """
class Bag(dict):
    def to(self, device):
        return Bag({k: v.to(device) for k, v in self.items()})

net = nn.Linear(4, 2).to(device)
print(net(Bag(x=torch.ones(2, 4)).to(device)["x"]).sum().item())""",
}  # fmt: skip


@pytest.mark.parametrize("below", STAY.values(), ids=STAY.keys())
def test_networks_stay_where_their_inputs_go(tmp_path, below):
    text = f"{ABOVE}{below}\n"
    assert check_on_card(tmp_path, text) == text and not migrate_text(text).attention
    assert run(text).output


LITERAL = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(2, 2).cuda()
print((net(torch.ones(1, 2).cuda()) - torch.zeros(1, 2, device="cuda")).sum().item())
"""


def test_a_device_that_is_written_down_keeps_all_there(tmp_path):
    result = check_on_card(tmp_path, LITERAL)
    assert result.count('.to("cuda" if torch.cuda.is_available() else "cpu")') == 2
    assert [n.line for n in migrate_text(LITERAL).attention] == [7]


FOLLOWS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.scale = torch.full((4,), 2.0).to(device)

    def forward(self, x):
        MOVE
        shift = torch.zeros(4).to(device)
        return self.fc(x * self.scale + shift) + torch.ones_like(x[:, :2]).to(device)

net = Net().to(device)
print(net(torch.randn(3, 4).to(device)).sum().item())
"""


def test_a_network_that_is_given_what_is_placed_follows_it(tmp_path):
    result = check_on_card(tmp_path, ABOVE + FOLLOWS.replace("        MOVE\n", ""))
    assert "register_buffer" in result and ".type_as(x)" in result and "torch.ones_like(x[:, :2])\n" in result
    assert "Net().to(device)" in result and "randn(3, 4).to(device)" in result


def test_one_that_moves_what_it_is_given_stays_as_it_is(tmp_path):
    text = ABOVE + FOLLOWS.replace("MOVE", "x = x.to(device)")
    assert check_on_card(tmp_path, text) == text


@pytest.mark.parametrize(
    "below",
    [
        "net = nn.Linear(4, 2).to(device)\nprint(device)",
        "net = nn.Linear(4, 2).to(device)\nstate = torch.load('x', map_location=device)",
        "def main(device):\n    net = nn.Linear(4, 2).to(device)\n    print(net)\n\nmain(device)",
    ],
)
def test_where_nothing_stays_placed_the_moves_go(below):
    assert "nn.Linear(4, 2)\n" in migrate_text(f"{ABOVE}{below}\n").text


@pytest.mark.parametrize("known", [{"is_script": False}, {"elsewhere": Elsewhere(imported=True)}])
def test_what_others_import_is_for_their_training(known):
    assert "net = nn.Linear(4, 2)\n" in migrate_text(f"{ABOVE}{STAY['moved at once']}\n", **known).text


TRAINED = """
net = nn.Linear(2, 1).to(device)
other = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 2), torch.randn(8, 1)), 4):
    x, y = x.to(device), y.to(device)
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
print(other(torch.ones(1, 2).to(device)).sum().item())
"""


def test_a_layer_that_no_trainer_has_is_met_where_it_is(tmp_path):
    assert "torch.ones(1, 2).to(next(other.parameters()).device)" in check_on_card(tmp_path, ABOVE + TRAINED)


MOVED_ELSEWHERE = """import torch
from fairseq import utils
from mylib import load

net = load("x.pt").cuda()
last = torch.nn.Linear(2, 3).cuda()
with torch.no_grad():
    for batch in torch.utils.data.DataLoader(torch.ones(4, 2)):
        batch = GIVEN
        print(last(net(batch)))
"""


@pytest.mark.parametrize(("given", "stays"), [("utils.move_to_cuda(batch)", True), ("utils.halved(batch)", False)])
def test_what_another_file_moves_by_its_name(given, stays):
    """The networks stayed on the CPU, and met a batch that did not."""
    text = migrate_text(MOVED_ELSEWHERE.replace("GIVEN", given)).text
    assert text.count('.to("cuda" if torch.cuda.is_available() else "cpu")') == (2 if stays else 0)
