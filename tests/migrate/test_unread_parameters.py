"""T9: a rank that only removed lines read goes from the function and from its calls."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

def main(rank, world_size, epochs):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DDP(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(epochs):
        for x in DataLoader(torch.ones(8, 2), batch_size=2):
            loss = model(x).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    {more}

if __name__ == "__main__":
    world_size = {world}
    mp.spawn(main, args=(world_size, 3), nprocs=world_size)
    {after}
"""


def lifted(more="pass", after="pass", world="torch.cuda.device_count()"):
    result = migrate_text(SCRIPT.format(more=more, after=after, world=world))
    assert result.plan == "module"
    return result


@pytest.mark.parametrize("world", ["torch.cuda.device_count()", "4", "int(os.environ['WORLD_SIZE'])"])
def test_rank_and_world_go(world):
    result = lifted(world=world)
    assert "def main(epochs):" in result.text and "main(3)" in result.text and "rank" not in result.text
    told = {(e.code, e.line) for e in result.edits if "parameter" in e.message or "argument" in e.message}
    assert told >= {("PTM102", 7), ("PTM102", 21)}
    assert migrate_text(result.text).text == result.text


@pytest.mark.parametrize(
    ("more", "left"),
    [
        ("print(rank)", "def main(rank, epochs):"),
        ("save(world_size)", "def main(world_size, epochs):"),
        ("print(locals(), rank, world_size)", "def main(rank, world_size, epochs):"),
    ],
)
def test_what_is_read_stays(more, left):
    assert left in lifted(more).text


@pytest.mark.parametrize("after", ["register(main)", "main(*everything)"])
def test_a_function_that_others_call_keeps_them(after):
    assert "def main(rank, world_size, epochs):" in lifted(after=after).text
