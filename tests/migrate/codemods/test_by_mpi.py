"""MPI by hand is told of where a file first asks for its processes, and stays."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

TEXT = """
import torch
IMPORT
ASK

net = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x in torch.utils.data.DataLoader(torch.randn(8, 2), batch_size=4):
        loss = net(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, MEAN)
"""


def _told(source: str, ask: str, mean: str) -> tuple[list[int], str]:
    result = migrate_text(TEXT.replace("IMPORT", source).replace("ASK", ask).replace("MEAN", mean))
    return [n.line for n in result.attention if n.code == "PTM420" and "MPI by hand" in n.message], result.text


@pytest.mark.parametrize(
    ("source", "ask", "mean"),
    [
        ("from mpi4py import MPI", "comm = MPI.COMM_WORLD", "comm.allreduce(loss.item()) / comm.Get_size()"),
        ("import mpi4py.MPI as M", "rank = M.COMM_WORLD.Get_rank()", "M.COMM_WORLD.allreduce(loss.item())"),
        ("from mpi4py.MPI import COMM_WORLD as comm", "rank = comm.Get_rank()", "comm.allreduce(loss.item())"),
    ],
)
def test_it_is_told_once(source, ask, mean):
    lines, text = _told(source, ask, mean)
    assert lines == [4] and ask in text


@pytest.mark.parametrize(
    ("source", "ask"),
    [("from mpi4py import MPI", "sums = MPI.SUM"), ("import mpi4py", ""), ("# no mpi4py", "COMM_WORLD = 3")],
)
def test_a_file_that_asks_for_none_is_not(source, ask):
    assert _told(source, ask, "loss.item()")[0] == []
