"""T1: what a script has taken to the CPU and keeps there is moved back by the script alone."""

import pytest
from helpers import migrated

HEAD = """import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.feats, self.seen, self.bank = [], {}, None

    def collect(self, x):
        LINE

    def forward(self, x):
        return x.float() + BACK
"""
KEPT = [
    ("self.feats.append(self.fc(x).cpu())", "torch.cat(self.feats).cuda()"),
    ('self.feats.append(self.fc(x).to("cpu"))', "self.feats[0].cuda()"),
    ("self.feats = [x.cpu() for _ in range(2)]", "sum(f.cuda() for f in self.feats)"),
    ('self.seen["a"] = x.detach().cpu()', 'self.seen["a"].cuda()'),
    ("self.seen = {n: p.cpu() for n, p in self.named_parameters()}", 'self.seen["fc.bias"].cuda()'),
    ("self.bank = x.cpu()", "self.bank.cuda()"),
    ("self.bank = x.cpu(), x", "self.bank[0].cuda()"),
    ("self.bank = torch.stack([x.cpu()])", "self.bank.cuda()"),
]
PLACED = [
    ("self.feats.append(self.fc(x))", "torch.cat(self.feats).cuda()"),
    ('self.seen["a"] = x.detach()', 'self.seen["a"].cuda()'),
    ("self.bank = x", "self.bank.cuda()"),
]


@pytest.mark.parametrize(("line", "back"), KEPT)
def test_it_goes_back_where_the_batch_is(line, back):
    text = migrated(HEAD.replace("LINE", line).replace("BACK", back)).text
    assert ".to(x.device)" in text and "cuda" not in text


@pytest.mark.parametrize(("line", "back"), PLACED)
def test_what_stays_where_the_batch_is_needs_no_move(line, back):
    text = migrated(HEAD.replace("LINE", line).replace("BACK", back)).text
    assert "return x.float() + " + back.removesuffix(".cuda()") + "\n" in text


def test_a_list_of_a_function():
    function = (
        "def gather(net, loader):\n    xs = []\n    for x, y in loader:\n        xs.append(net(x.cuda()).cpu())\n"
    )
    text = migrated(f"import torch\n{function}    return torch.cat(xs).cuda()\n").text
    assert "return torch.cat(xs).cuda()" in text and "net(x).cpu()" in text


def test_a_network_is_no_tensor():
    text = migrated("import torch\nnet = torch.nn.Linear(2, 2)\nnet = net.cpu().eval()\nx = net(torch.ones(2))\n").text
    assert "net = net.cpu().eval()" in text
