"""Networks with a `to()` or `cuda()` of their own that moves more than parameters and buffers: the Module calls it."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card, check_project_on_card, check_same

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.grids = [torch.ones(2), torch.zeros(2)]

MOVER
    def forward(self, x):
        return self.fc(x) + self.grids[0] + self.grids[1]
"""
SCRIPT = """
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
net = Net()MOVE
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 2), torch.randn(8, 2)), 4):
    loss = (net(x.to(device)) - y.to(device)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
"""
TO = """
    def to(self, *args, **kwargs):
        self = super().to(*args, **kwargs)
        self.grids = [g.to(*args, **kwargs) for g in self.grids]
        return self
"""
CUDA = """
    def cuda(self, device=None):
        for i, g in enumerate(self.grids):
            self.grids[i] = g.cuda(device)
        return super().cuda(device)
"""
TOLD = "holds tensors that do not move with the module"


def text(mover, move=".to(device)"):
    return (NET + SCRIPT).replace("MOVER", mover).replace("MOVE", move)


@pytest.mark.parametrize("move", [".to(device)", "\nnet = net.to(device)", ".to(device).train()"])
def test_what_it_moves_goes_where_the_module_is(tmp_path, move):
    result = check_on_card(tmp_path, text(TO, move))
    assert "    def on_fit_start(self):\n        self.net.to(self.device)\n" in result
    assert not [n for n in migrate_text(text(TO, move)).attention if TOLD in n.message]
    check_same(text(TO, move), "module")


def test_by_cuda_where_there_is_some(tmp_path):
    source = text(CUDA, "\nif torch.cuda.is_available():\n    net.cuda()")
    result = check_on_card(tmp_path, source)
    assert 'if self.device.type == "cuda":\n            self.net.cuda()\n' in result
    check_same(source, "module")


def test_of_a_class_of_another_file(tmp_path):
    script = "import torch\nfrom net import Net\n" + SCRIPT.replace("MOVE", ".to(device)")
    texts = check_project_on_card(tmp_path, main=script, net=NET.replace("MOVER", TO))
    assert "self.net.to(self.device)" in texts["main"]


@pytest.mark.parametrize(
    "mover",
    [
        "",
        "    def to(self, device):\n        print(device)\n        return super().to(device)\n",
        TO.replace("def to(", "def move("),
        TO.replace("*args, **kwargs", "device, dtype, *args", 1).replace("*args, **kwargs", "device"),
    ],
)
def test_others_are_left_to_the_trainer(mover):
    result = migrate_text(text(mover))
    assert "on_fit_start" not in result.text and any(TOLD in n.message for n in result.attention)


PLAIN = SCRIPT.replace("Net()", "torch.nn.Linear(2, 2)")


@pytest.mark.parametrize(
    "more", [".to(memory_format=torch.contiguous_format)", ".float().train()", ".requires_grad_()"]
)
def test_a_network_that_its_own_methods_give_is_no_tensor_of_it(more):
    """It was placed once more when the fit began."""
    source = "import torch\n" + PLAIN.replace("MOVE", f"\nnet = net.to(device, torch.float32){more}")
    assert "on_fit_start" not in check_same(source, "module")
