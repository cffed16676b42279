"""A script without devices whose step makes its own batches stays on the CPU, and that is told."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import check_same

TEXT = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
data = torch.randn(40, 3)
array = data.numpy()
loader = torch.utils.data.DataLoader(data, 8)
it = iter(loader)


def draw(n):
    return torch.stack([data[i] for i in torch.randint(40, (n,))])


def again(n):
    return draw(n) * 2


def name(i):
    return f"step {{i}}"


net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in {over}:
    {made}
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(name(i), loss.item())
"""


@pytest.mark.parametrize(
    ("made", "call"),
    [
        ("x = draw(4)", "draw(4)"),
        ("x = again(4)", "again(4)"),
        ("x = next(it)", "next(it)"),
        ("x = torch.from_numpy(array[i : i + 2])", "torch.from_numpy"),
    ],
)
def test_it_stays_on_the_cpu(made, call):
    source = TEXT.format(over="range(4)", made=made)
    assert 'accelerator="cpu"' in check_same(source, "module")
    told = [n.message for n in migrate_text(source).attention if "names no device" in n.message]
    assert len(told) == 1 and call in told[0]


@pytest.mark.parametrize(
    ("over", "made"),
    [
        ("range(4)", "x = data"),  # which is a buffer
        ("range(4)", "x = torch.randn(4, 3)"),  # which is made where the model is
        ("range(4)", "x = data[i : i + 2]"),
        ("range(4)", "x = data; c = 'cuda'; y = draw(3)"),  # a script that knows of devices
        ("loader", "x = i; y = draw(2)"),  # whose batches the Trainer moves
        ("range(4)", "x = data.to(torch.float64).float(); y = draw(2)"),
        ("range(4)", "x = data; draw(2)"),  # nothing reads it
    ],
)
def test_where_the_trainer_finds_the_device(over, made):
    source = TEXT.format(over=over, made=made)
    result = migrate_text(source)
    assert result.plan in ("module", "manual") and "accelerator" not in result.text
    assert not any("names no device" in n.message for n in result.attention)
