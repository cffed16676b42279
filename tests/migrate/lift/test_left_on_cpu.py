"""Tensors that a script keeps on the CPU beside a loop on a device: a buffer would be on the card."""

import pytest

from tests.migrate.running import check_same

TEXT = """
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
loader = torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=4)
seen, wanted = torch.randn(6, 4), torch.randint(0, 4, (6,))
net = nn.Linear(4, 4).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for epoch in range(2):
    for x in loader:
        x = x.to(device)
        loss = (net(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        out = net(seen.to(device))
        READ
    print(right)
"""
BUFFER = 'self.register_buffer("wanted", wanted, persistent=False)'


@pytest.mark.parametrize(
    "read",
    [
        "right = (out.cpu().argmax(1) == wanted).sum().item()",
        "right = (wanted.float() - out.argmax(1).cpu()).sum().item()",
        "out = out.cpu()\n        right = torch.eq(wanted, out.argmax(1)).sum().item()",
        "right = (out.argmax(1).cpu().numpy() == wanted.numpy()).sum()",
        "import numpy as np\n        right = np.equal(wanted, out.argmax(1).cpu()).sum().item()",
        "out = out.to('cpu')\n        right = [(out.argmax(1)[i] == wanted[i]).item() for i in range(6)]",
    ],
)
def test_what_meets_the_cpu_stays_there(read):
    result = check_same(TEXT.replace("READ", read), "module")
    assert BUFFER not in result and "self.wanted = wanted" in result


@pytest.mark.parametrize(
    "read",
    [
        "right = (out.argmax(1) == wanted.to(device)).sum().item()",
        "right = (out.argmax(1) == wanted.to(device)).float().cpu().numpy().sum()",
        "right = (out.argmax(1) == wanted.to(device)).sum().item() + out.cpu().sum().item()",
    ],
)
def test_what_meets_the_model_goes_with_it(read):
    assert BUFFER in check_same(TEXT.replace("READ", read), "module")


def test_a_batch_that_it_meets_decides():
    read = "right = (out.cpu().argmax(1) == wanted).sum().item()"
    met = TEXT.replace("READ", read).replace("x = x.to(device)", "x = (x + wanted[0]).to(device)")
    assert BUFFER in check_same(met, "module")


def test_in_a_script_that_names_no_device_all_go_together():
    text = TEXT.replace(".to(device)", "").replace("READ", "right = (out.argmax(1) == wanted).sum().item()")
    assert BUFFER in check_same("\n".join(line for line in text.splitlines() if "device" not in line), "module")
