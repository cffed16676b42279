"""Pictures of what a step has of its batch are told of where ranks hold shares; those of anything else are not."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

STEP = """
import torch
import matplotlib.pyplot as plt
from torch.utils.tensorboard import SummaryWriter
from torchvision.utils import make_grid, save_image

loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(16, 1, 8, 8)), batch_size=4)
net = torch.nn.Conv2d(1, 1, 3, padding=1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
writer = SummaryWriter()
noise = torch.rand(5, 1, 8, 8)

def show(images, name):
    save_image(images[:2], name)

def shape(images):
    return images.ndim

for epoch in range(2):
    for i, (x,) in enumerate(loader):
        opt.zero_grad()
        out = net(x)
        loss = (out - x).pow(2).mean()
        loss.backward()
        opt.step()
        if i % 2 == 0:
            LINE
"""
TOLD = [
    "save_image(out.data[:8], '%d.png' % i, nrow=4)",
    "grid = make_grid(out.detach()); writer.add_image('out', grid, i)",
    "writer.add_images('x', x, i)",
    "writer.add_histogram('out', out, i)",
    "plt.imshow(out[0, 0].detach().numpy())",
    "show(out.detach(), 'out.png')",
]
NOT_TOLD = [
    "save_image(noise, 'noise.png')",
    "with torch.no_grad(): save_image(net(noise), '%d.png' % i)",
    "writer.add_histogram('weight', net.weight, i)",
    "show(noise, 'noise.png')",
    "shape(out)",
    "writer.add_scalar('loss', loss.item(), i)",
]


def told(line):
    result = migrate_text(STEP.replace("LINE", line))
    assert "(Module)" in result.text and "divide_batches" not in result.text
    return [n.message for n in result.attention if "shows what the process sees" in n.message]


@pytest.mark.parametrize("line", TOLD)
def test_of_the_batch(line):
    assert len(told(line)) == 1


@pytest.mark.parametrize("line", NOT_TOLD)
def test_of_anything_else(line):
    assert not told(line)


def test_whole_batches_are_shown_whole():
    line = "save_image(out.data, 'out.png')"
    result = migrate_text(STEP.replace("LINE", line).replace(".mean()", ".mean() + (out - out.mean(0)).pow(2).mean()"))
    assert "divide_batches = False" in result.text
    assert not any("what the process sees" in n.message for n in result.attention)
