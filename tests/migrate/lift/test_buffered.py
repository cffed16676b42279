"""A tensor made on a device by name, which the Module registers, goes where the Module is: it is not told of."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

TEXT = """
import torch
from torch import nn

device = torch.device("{device}")
x = torch.randn(8, 3, device=device)
{more}
net = nn.Linear(3, 1).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for t in range(5):
    loss = net(x).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(t, loss.item())
"""


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ("", []),
        ("y = torch.zeros(8, 1, device=device)", [7]),  # which no step reads, and no Module takes along
        ("x = torch.zeros(8, 3, device=device)", [6, 7]),
    ],
)
def test_what_is_told_of_devices_by_name(more, lines):
    result = migrate_text(TEXT.format(device="cuda", more=more))
    assert result.plan == "module"
    assert [n.line for n in result.attention if n.code == "PTM104"] == lines
