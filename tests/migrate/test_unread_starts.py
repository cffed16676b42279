"""What only told processes where, and as how many, to meet goes with them; what anything else reads stays."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """\
import argparse
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, size, args):
    dist.init_process_group("gloo", f"tcp://localhost:{args.port}", rank=rank, world_size=size)
    model = torch.nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr)
    for x, y in torch.utils.data.DataLoader(make(), batch_size=4):
        opt.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        opt.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--port", type=int, default=29500)
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    size = 2
    mp.spawn(work, args=(size, args), nprocs=size)
"""
SIZE = "    size = 2\n"
SETUP = """\
import torch
import torch.distributed as dist


def setup():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    return rank, dist.get_world_size()


def main():
    rank, world = setup()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in torch.utils.data.DataLoader(make(), batch_size=4):
        opt.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        opt.step()


main()
"""


def migrated(text):
    result = migrate_text(text)
    assert result.plan == "module" and migrate_text(result.text).text == result.text
    return result


def test_the_number_of_processes_and_its_option_go():
    result = migrated(SCRIPT)
    assert "size" not in result.text.replace("batch_size", "") and "--port" not in result.text
    assert "--processes" in result.text  # nothing has read it before either
    assert sum("--port" in e.message for e in result.edits) == 1
    result = migrated(SCRIPT.replace(SIZE, "").replace("size, args), nprocs=size", "2, args), nprocs=args.processes"))
    assert "--processes" not in result.text
    assert any("a command line goes without --processes now" in e.message for e in result.edits)


@pytest.mark.parametrize(
    ("old", "new", "stays"),
    [
        (SIZE, "    size = ask()\n", "size = ask()"),
        (SIZE, SIZE + "    f(size)\n", "size = 2"),
        ("args = parser.parse_args()", "args = parser.parse_args()\n    f(getattr(args, 'port'))", '"--port"'),
        ("args = parser.parse_args()", "args = parser.parse_args()\n    f(vars(args))", '"--port"'),
    ],
)
def test_what_something_else_reads_or_does_stays(old, new, stays):
    assert stays in migrated(SCRIPT.replace(old, new)).text


def test_options_that_are_looked_at_as_a_whole_are_told():
    whole = "args = parser.parse_args()\n    f(vars(args))"
    result = migrated(SCRIPT.replace("args = parser.parse_args()", whole))
    assert any("args.port` stays" in n.message for n in result.attention)


def test_a_setup_whose_numbers_nothing_reads_goes():
    assert "setup" not in migrated(SETUP).text and "rank" not in migrated(SETUP).text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rank = dist.get_rank()", "rank = dist.get_rank()\n    log()"),
        ("rank, world = setup()", "rank, world = setup()\n    f(world)"),
        ("rank, world = setup()", "rank, world = setup()\n    f(setup)"),
    ],
)
def test_a_setup_that_does_more_or_is_read_stays(old, new):
    assert "def setup():" in migrated(SETUP.replace(old, new)).text
