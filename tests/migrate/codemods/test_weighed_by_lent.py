"""A criterion that a method makes with weights that its object was given: nothing else moves those."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_project_on_card

LOSSES = """\
import torch
from torch import nn


class Losses:
    def __init__(self, weight=None, cuda=False):
        self.weight = weight
        self.cuda = cuda
        self.mean = True

    def of(self, out, y):
        {made}
        {moved}
        return criterion(out, y)
"""
SCRIPT = """\
import torch
from losses import Losses

cuda = torch.cuda.is_available()
torch.manual_seed(0)
net = torch.nn.Linear(4, 3)
if cuda:
    net = net.cuda()
losses = Losses(torch.tensor([1.0, 2.0, 3.0]), cuda)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randint(0, 3, (8,)))
for epoch in range(2):
    for x, y in torch.utils.data.DataLoader(data, batch_size=4):
        if cuda:
            x, y = x.cuda(), y.cuda()
        loss = losses.of(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""
WEIGHED = [
    ("criterion = nn.CrossEntropyLoss(weight=self.weight)", "if self.cuda:\n            criterion = criterion.cuda()"),
    ("criterion = nn.CrossEntropyLoss(self.weight).to(out.device)", "pass"),
    ("criterion = nn.CrossEntropyLoss(weight=self.weight, ignore_index=255)", "criterion = criterion.cuda()"),
]


@pytest.mark.parametrize("made, moved", WEIGHED[:1])
def test_it_runs_on_a_card(tmp_path, made, moved):
    check_project_on_card(tmp_path, main=SCRIPT, losses=LOSSES.format(made=made, moved=moved))


@pytest.mark.parametrize("made, moved", WEIGHED)
def test_it_stays_moved(made, moved):
    assert ".to(" in migrate_text(LOSSES.format(made=made, moved=moved), is_script=False).text


@pytest.mark.parametrize(
    "made",
    [
        "criterion = nn.CrossEntropyLoss().cuda()",
        "criterion = nn.CrossEntropyLoss(weight=None).cuda()",
        "criterion = nn.MSELoss(self.mean).cuda()",
        "criterion = nn.CrossEntropyLoss(weight=out).cuda()",
    ],
)
def test_another_is_placed_as_before(made):
    text = migrate_text(LOSSES.format(made=made, moved="pass"), is_script=False).text
    assert ".to(" not in text and ".cuda()" not in text
