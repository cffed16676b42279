"""Tensors that a script makes once and fills with each batch: what is computed of them is of its samples."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

SCRIPT = """
import torch
import torch.nn as nn
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net, back = nn.Linear(4, 1), nn.Linear(3, 4)
criterion = nn.MSELoss()
input = torch.FloatTensor(8, 4)
label = torch.FloatTensor(8)
optimizer = torch.optim.Adam([*net.parameters(), *back.parameters()], lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(28, 4) + 1), batch_size=8)
for epoch in range(2):
    for i, (real,) in enumerate(loader):
        FILL
        label.resize_(real.size(0)).fill_(1)
        loss = criterion(net(Variable(input)).view(-1), Variable(label))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f'{loss.item():.5f}')
"""
FILLS = [
    "input.resize_as_(real).copy_(real)",
    "input.resize_(real.size())\n        input.copy_(real)",
    "input.resize_as_(real)\n        input.data.copy_(real.data)",
]


@pytest.mark.parametrize("fill", FILLS)
def test_a_loss_of_one_is_brought_together(fill):
    result = check_same("epochs = 2\n" + SCRIPT.replace("FILL", fill), "module")
    assert "loss = self.batch_mean(self.loss)" in result


@pytest.mark.parametrize("fill", ["real = real + 0 * input[0]", "input[0].add_(1)", "label.add_(1)"])
def test_one_that_is_filled_with_other_things_is_not_of_the_samples(fill):
    text = SCRIPT.replace("label.resize_(real.size(0)).fill_(1)", "label.fill_(1)").replace("FILL", fill)
    assert "batch_mean" not in migrate_text(text.replace("net(Variable(input)).view(-1)", "net.bias")).text


@pytest.mark.parametrize("fill", FILLS)
def test_what_mixes_in_one_gets_whole_batches(fill):
    text = SCRIPT.replace("net(Variable(input))", "net(input - input.mean(0))").replace("FILL", fill)
    assert "divide_batches = False" in migrate_text(text).text


@pytest.mark.parametrize("fill", FILLS)
def test_what_a_step_shows_of_one_is_brought_together(fill):
    shows = "        optimizer.step()\n        print(net(Variable(input)).mean().item())\n"
    text = SCRIPT.replace("FILL", fill).replace("        optimizer.step()\n", shows)
    assert "self.print(self.batch_mean(" in migrate_text(text).text
