"""Batches that a script hands to its cards by itself: what stays of that in a step is told of."""

import pytest
from ptmigrate.migrate.codemods.plain_parallel import PlainParallel
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

STEP = """
import torch
from torch import nn
from torch.nn.parallel import parallel_apply, replicate, scatter, gather
from torch.utils.data import DataLoader, TensorDataset

ids = [0, 1]
loader = DataLoader(TensorDataset(torch.randn(32, 8), torch.randn(32, 8)), batch_size=8)
net = nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        out = gather(parallel_apply(replicate(net, ids), scatter(x, ids)), 0)
        loss = (out - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_in_a_lifted_step():
    told = [n.message for n in migrate_text(STEP).attention if n.code == "PTM420"]
    assert len(told) == 2 and all("divides the batch among cards by hand" in message for message in told)


@pytest.mark.parametrize("call", ["replicate(rows)", "nn.parallel.data_parallel(net, x)", "pool.parallel_apply(f)"])
def test_others_are_not(call):
    source = f"import torch.nn as nn\n\n\ndef replicate(rows):\n    return rows * 2\n\n\n{call}\n"
    assert not list(PlainParallel().notes(Facts(source)))
