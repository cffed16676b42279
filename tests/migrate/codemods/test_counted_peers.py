"""T9: an option that says how many processes are started, and lists with a place for each of them."""

import pytest
from helpers import migrated

HEAD = """\
import argparse
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
parser = argparse.ArgumentParser()
parser.add_argument("--peers", type=int, default=2)
args = parser.parse_args()
"""
SPAWN = "mp.spawn(work, args=(args,), nprocs={0})\n"
WORK = """\
def work(rank, args):
    dist.init_process_group("nccl", rank=rank, world_size={0})
    {1}
"""


def result(line, option="args.peers", more=""):
    return migrated(HEAD + WORK.format(option, line) + more + SPAWN.format(option), "PTM420").text


@pytest.mark.parametrize("option", ["args.peers", "args['peers']", "args.run.peers"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("use({0})", "use(1)"),
        ("x = [f(i) for i in range({0})]", "x = [f(i) for i in range(1)]"),
        ("use(n={0})", "use(n=1)"),
        ("use(args.others, args['others'])", "use(args.others, args['others'])"),
        ("{0} = 2\n    use({0})", "{0} = 2\n    use({0})"),
    ],
)
def test_the_option_is_one_where_it_is_read(option, before, after):
    text = result(before.format(option), option)
    assert f"    {after.format(option)}\n" in text and text.endswith("\nwork(0, args)\n")


def test_processes_that_a_loop_starts():
    loop = """\
ps = []
for rank in range(args.peers):
    p = mp.Process(target=work, args=(rank, args))
    p.start()
    ps.append(p)
for p in ps:
    p.join()
"""
    text = migrated(HEAD + WORK.format("args.peers", "use(args.peers)") + loop, "PTM420").text
    assert "    use(1)\n" in text and text.endswith("\nwork(0, args)\n")


def test_an_option_of_a_script_that_starts_nothing_stays():
    text = HEAD + 'dist.init_process_group("nccl")\nuse(args.peers)\n'
    assert "use(args.peers)\n" in migrated(text, "PTM420").text


GATHER = """\
def gathered(x, n):
    parts = {0}
    dist.{1}
    return parts
"""


@pytest.mark.parametrize(
    ("made", "gathers", "becomes"),
    [
        ("[torch.zeros_like(x) for _ in range(n)]", "all_gather(parts, x)", "[torch.zeros_like(x) for _ in range(1)]"),
        ("[None] * n", "all_gather_object(parts, x)", "[None] * 1"),
        ("[None for _ in range(args.n)]", "gather_object(x, parts)", "[None for _ in range(1)]"),
        ("[None] * dist.get_world_size()", "all_gather_object(parts, x)", "[None]"),
        ("[None] * 1", "all_gather_object(parts, x)", "[None] * 1"),
        ("[f(i) for i in range(n) if i]", "all_gather(parts, x)", "[f(i) for i in range(n) if i]"),
        ("[f(i) for i in range(0, n)]", "all_gather(parts, x)", "[f(i) for i in range(0, n)]"),
        ("[a, b] * n", "all_gather(parts, x)", "[a, b] * n"),
        ("torch.empty(n, 2)", "all_gather_into_tensor(parts, x)", "torch.empty(n, 2)"),
        ("[None] * n", "barrier()", "[None] * n"),
    ],
)
def test_a_list_for_what_peers_send_has_one_place(made, gathers, becomes):
    more = GATHER.format(made, gathers) + "use(gathered)\n"
    assert f"    parts = {becomes}\n" in result("pass", more=more)
