"""T3: a tensor that a module is given and keeps where it was moved to becomes a buffer, in the ways that is written."""

import pytest
from helpers import check, check_unchanged
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

NET = """\
import torch
from torch import nn
class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 2))
    def forward(self, x, adj):
        return torch.mm(adj, x @ self.w)
class Net(nn.Module):
    def __init__(self, adj, cuda=False):
        super().__init__()
        {kept}
        self.conv = Conv()
    def mixed(self, x, a, other=None):
        return a @ x
    def forward(self, x):
        return {used}
"""
BUFFER = 'self.register_buffer("adj", adj)'
KEPT = {
    "moved": "self.adj = adj.cuda()",
    "chosen": "self.adj = adj.cuda() if torch.cuda.is_available() else adj",
    "chosen by a flag": "self.adj = adj if not cuda else adj.to('cuda')",
    "moved above": "adj = adj.cuda()\n        self.adj = adj",
    "computed and moved above": "adj = adj.float()\n        adj = adj.cuda()\n        self.adj = adj",
    "computed above, moved if asked": "adj = adj.t()\n        if cuda: adj = adj.cuda()\n        self.adj = adj",
    "moved above, if asked": "if cuda:\n            adj = adj.cuda()\n        self.adj = adj",
}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
def test_a_tensor_that_it_computes_with(kept):
    result = migrate_text(NET.format(kept=kept, used="self.adj @ x"))
    assert BUFFER in result.text and "cuda()" not in result.text, result.text
    assert "is_available" not in result.text and "if " not in result.text


USED = {
    "by a method": ("self.mixed(x, self.adj)", True),
    "by a method, by name": ("self.mixed(a=self.adj, x=x)", True),
    "by a layer of the file": ("self.conv(x, self.adj)", True),
    "by a method that does nothing with it": ("self.mixed(x, x, self.adj)", False),
    "by what is not shown": ("self.other(x, self.adj)", False),
    "called": ("self.adj(x)", False),
}


@pytest.mark.parametrize(("used", "tensor"), USED.values(), ids=USED)
def test_what_hands_it_on(used, tensor):
    result = migrate_text(NET.format(kept=KEPT["moved"], used=used))
    assert (BUFFER in result.text) is tensor, result.text


OTHERS = {
    "not moved": "self.adj = adj",
    "a choice of two": "self.adj = adj.cuda() if cuda else cuda",
    "computed above": "adj = adj / adj.sum()\n        self.adj = adj",
    "computed by methods above": "adj = adj.float()\n        self.adj = adj",
    "another beside what was moved": "adj = adj.cuda()\n        adj = self.other(adj)\n        self.adj = adj",
    "one of several": "a, b = adj\n        self.adj = a",
}


@pytest.mark.parametrize("kept", OTHERS.values(), ids=OTHERS)
def test_what_is_kept_otherwise(kept):
    check_unchanged(NET.format(kept=kept, used="self.adj @ x"), select="PTM105")


def test_a_choice_of_what_is_made_is_made_once():
    text = NET.format(kept="self.adj = {}", used="self.adj @ x")
    made = "torch.eye(2).cuda() if torch.cuda.is_available() else torch.eye(2)"
    check(text.format(made), text.replace("self.adj = {}", 'self.register_buffer("adj", torch.eye(2))'))
    other = "torch.eye(2).cuda() if cuda else torch.ones(2, 2)"
    kept = 'self.register_buffer("adj", torch.eye(2) if cuda else torch.ones(2, 2))'
    check(text.format(other), text.replace("self.adj = {}", kept))


SCRIPT = """
torch.manual_seed(0)
net = Net(torch.eye(2))
if torch.cuda.is_available():
    net.cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in torch.ones(3, 2, 2):
        if torch.cuda.is_available():
            x = x.cuda()
        loss = net(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
"""


@pytest.mark.parametrize("used", ["self.conv(self.adj @ x, self.adj)", "self.mixed(self.conv(x, self.adj), self.adj)"])
def test_on_a_card(tmp_path, used):
    text = check_on_card(tmp_path, NET.format(kept=KEPT["chosen"], used=used) + SCRIPT)
    assert BUFFER in text
