"""T3: what a module keeps on the CPU is no buffer, and a buffer that is read as an array is brought there."""

import pytest
from helpers import check, check_unchanged
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_on_card

NET = """\
import numpy as np
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {made}
        self.fc = nn.Linear(3, 1)
    def forward(self, x):
        {seen}
        return self.fc(x)
    def report(self):
        return {read}
"""
MADE = "self.seen = torch.zeros(3)"
BUFFER = 'self.register_buffer("seen", torch.zeros(3))'

THERE = [
    "self.seen += x.detach().mean(0).cpu()",
    "self.seen = self.seen + x.detach().cpu()[0]",
    "self.seen = torch.maximum(self.seen, x.detach().to('cpu')[0])",
    "self.seen = torch.cat([self.seen, x.detach().cpu()[0]])",
    "y = x.detach().cpu()\n        self.seen += y.sum(0)",
    "self.seen.add_(x.detach().cpu()[0])",
]


@pytest.mark.parametrize("seen", THERE)
def test_what_meets_the_cpu_stays_there_and_is_told(seen):
    result = check_unchanged(NET.format(made=MADE, seen=seen, read="0"), select="PTM105")
    assert ["on the CPU, where it stays" in n.message for n in result.attention] == [True]


ELSEWHERE = [
    "self.seen += x.detach().mean(0)",
    "self.seen[:] = x.detach().cpu()[0]",
    "self.far = (self.seen.cpu() - x.detach().cpu()).abs().max()",
    "far = x.detach().cpu().mean(0)\n        self.seen += far.to(x.device)",
    "far = x.detach().cpu().mean(0)\n        self.seen += far.type_as(x)",
    "self.n = int(x.cpu().sum())",
    "self.seen.copy_(x.detach().cpu()[0])",
]


@pytest.mark.parametrize("seen", ELSEWHERE)
def test_what_does_not_is_a_buffer(seen):
    text = NET.format(made="{}", seen=seen, read="self.seen.sum()")
    check(text.format(MADE), text.format(BUFFER), attention=[], select="PTM105")


RECORD = """\
import torch
from torch import nn
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.log = {made}
    def begin({given}):
        {begin}
    def forward(self, x, y):
        loss = ((x - y) ** 2).mean()
        self.log[-1, 0] += loss.item()
        return loss
"""
BEGINS = [
    ("self", "self.log = torch.cat((self.log, torch.zeros(1, 2)))"),
    ("self", "self.log = torch.cat([self.log, torch.zeros(1, 2)])"),
    ("self", "self.log = self.log + torch.ones(2)"),
]


@pytest.mark.parametrize(("given", "begin"), BEGINS)
def test_what_meets_a_tensor_of_a_method_that_is_given_nothing_stays_where_it_is(given, begin):
    result = check_unchanged(RECORD.format(made="torch.Tensor()", given=given, begin=begin), select="PTM105")
    assert ["on the CPU, where it stays" in n.message for n in result.attention] == [True]


PLACED = [
    ("self", "self.log = self.log * 0"),
    ("self", "self.log = self.log / (self.log.sum() + torch.tensor(1e-3))"),
    ("self", "self.log = torch.cat((self.log, torch.zeros(1, 2, device=self.log.device)))"),
    ("self", "self.log = torch.cat((self.log.cpu(), torch.zeros(1, 2)))"),
    ("self, x", "self.log = torch.cat((self.log, torch.zeros(1, 2), x))"),
]


@pytest.mark.parametrize(("given", "begin"), PLACED)
def test_what_is_met_anywhere_or_beside_what_is_given_is_a_buffer(given, begin):
    text = RECORD.format(made="{}", given=given, begin=begin)
    assert "register_buffer" in migrate_text(text.format("torch.zeros(1, 2)")).text


READ = {
    "self.seen.numpy()": "self.seen.cpu().numpy()",
    "self.seen[0].t().numpy() + 1": "self.seen[0].t().cpu().numpy() + 1",
    "np.log(self.seen)": "np.log(self.seen.cpu())",
    "np.dot(x, b=self.seen.data[1:])": "np.dot(x, b=self.seen.data[1:].cpu())",
}


@pytest.mark.parametrize(("read", "after"), READ.items())
def test_a_buffer_that_is_read_as_an_array(read, after):
    text = NET.format(made="{}", seen="pass", read="{}")
    check(text.format(MADE, read), text.format(BUFFER, after), attention=[])


@pytest.mark.parametrize(
    "read",
    [
        "self.seen.cpu().numpy()",
        "self.seen.tolist()",
        "np.zeros(self.seen.shape)",
        "np.log(self.seen.sum().item())",
        "self.seen.numpy(force=True)",
        "other.seen.numpy()",
        "np.log(self.other)",
    ],
)
def test_what_is_read_otherwise(read):
    text = NET.format(made="{}", seen="pass", read=read)
    check(text.format(MADE), text.format(BUFFER))


SCRIPT = """
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = Net().to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in torch.ones(4, 2, 3):
        loss = net(x.to(device)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item(), net.report())
"""


@pytest.mark.parametrize("seen", [THERE[0], THERE[4], "self.seen[:] = x.detach()[0]"])
def test_on_a_card(tmp_path, seen):
    check_on_card(tmp_path, NET.format(made=MADE, seen=seen, read="np.log1p(self.seen).tolist()") + SCRIPT)
