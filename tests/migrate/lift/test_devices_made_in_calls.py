"""A device that is made where a function of the script's own gets it is the Module's: the script's names rank 0's."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def rate(net, rows, device, part=1):
    return net(rows.sum(1).to(device)).sum().item() * part


local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")
torch.cuda.set_device(local_rank)
data = TensorDataset(torch.ones(16, 4), torch.ones(16, 1))
loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
net = DistributedDataParallel(torch.nn.Linear(4, 1).to(local_rank), device_ids=[local_rank])
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
rows = torch.ones(3, 2, 4)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        ((net(x.to(local_rank)) - y.to(local_rank)) ** 2).mean().backward()
        optimizer.step()
    print(CALL)
"""


@pytest.mark.parametrize(
    "call",
    [
        'rate(net, rows, torch.device(f"cuda:{local_rank}"))',
        'rate(net, rows, device=torch.device("cuda", local_rank))',
        'rate(net, rows, torch.device("cuda"), part=2)',
    ],
)
def test_it_is_the_modules(call):
    text = migrate_text(SCRIPT.replace("CALL", call)).text
    assert "torch.device(" not in text and ("self.device" in text or "device" not in text.partition("print(")[2])


@pytest.mark.parametrize(
    "call",
    [
        'rate(net, rows, torch.device("cpu"))',  # wanted there
        'str(torch.device("cuda", local_rank))',  # no function of the script's own
        'other(torch.device("cuda", 0), torch.device("cuda", 1))',  # of several
    ],
)
def test_others_stay(call):
    script = SCRIPT.replace("local_rank = int", "def other(a, b):\n    return str(a)\n\n\nlocal_rank = int", 1)
    assert "torch.device(" in migrate_text(script.replace("CALL", call)).text
