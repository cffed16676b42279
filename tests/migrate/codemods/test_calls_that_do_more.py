"""A call of the script's own that gives a device, a flag or a rank and does more: it stays for what else it does."""

import pytest
from helpers import check, check_unchanged, dedent, migrated

from tests.migrate.running import check_same

SETUP = """
import random, torch
def setup(seed):
    {does}
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""
NET = "net = torch.nn.Linear(2, 1)"
DOES = ["torch.manual_seed(seed)", "print('seeded', seed)", "random.seed(seed)", "torch.cuda.manual_seed_all(seed)",
        "torch.backends.cudnn.deterministic = True", "open('log', 'w').write('begun')", "global began"]  # fmt: skip
ASKS = ["index = int(seed.split(',')[0])", "torch.cuda.set_device(seed)", "name = 'cuda:{}'.format(len(str(seed)))",
        "assert seed >= 0", "if not torch.cuda.is_available(): raise RuntimeError('no card')"]  # fmt: skip


@pytest.mark.parametrize("does", DOES)
def test_a_call_that_does_more_stays_as_a_statement(does):
    setup = dedent(SETUP).format(does=does)
    more = "torch.manual_seed(seed)" if does.startswith("open") else does  # files are another test's
    setup = setup.replace(does, more)
    says = ["PTM102 line 5: `device = setup(7)` became `setup(7)`: nothing reads what it gives, and it does more"]
    before, after = f"{setup}device = setup(7)\n{NET}.to(device)\n", f"{setup}setup(7)\n{NET}\n"
    check(before, after, [*says, "PTM101 line 6"], select="PTM101,PTM102")


@pytest.mark.parametrize("asks", ASKS)
def test_a_call_that_only_asks_goes(asks):
    setup = dedent(SETUP).format(does=asks)
    text = migrated(f"{setup}device = setup(7)\n{NET}.to(device)\n").text
    assert text.endswith(f"\n{NET}\n") and "setup(7)" not in text


def test_what_the_functions_that_it_calls_do_counts():
    setup = dedent(SETUP).format(does="begin(seed)") + "def begin(seed):\n    torch.manual_seed(seed)\n"
    check(f"{setup}device = setup(7)\n{NET}.to(device)\n", f"{setup}setup(7)\n{NET}\n", select="PTM101,PTM102")


def test_the_value_keeps_its_lines_and_what_stands_beside_it():
    setup = dedent(SETUP).format(does="torch.manual_seed(seed)")
    before = f"{setup}device = (\n    setup(7)  # first\n); n = 3\n{NET}.to(device)\n"
    check(before, f"{setup}(\n    setup(7)  # first\n); n = 3\n{NET}\n", select="PTM101,PTM102")


def test_an_attribute_and_an_option_leave_the_call():
    setup = dedent(SETUP).format(does="torch.manual_seed(seed)")
    holder = (
        "class T:\n    def __init__(self):\n        {d}where(7)\n        self.net = torch.nn.Linear(2, 1){m}\nT()\n"
    )
    setup = setup.replace("setup", "where")
    check(setup + holder.format(d="self.device = ", m=".to(self.device)"), setup + holder.format(d="", m=""))
    option = "import argparse\nargs = argparse.ArgumentParser().parse_args()\n"
    before = f"{option}{setup}args.device = where(7)\n{NET}.to(args.device)\n"
    check(before, f"{option}{setup}where(7)\n{NET}\n")


def test_an_argument_that_does_more_stays_with_its_parameter():
    setup = dedent(SETUP).format(does="torch.manual_seed(seed)")
    build = "def build(device):\n    return torch.nn.Linear(2, 1){}\nnet = build(setup(4))\n"
    check(setup + build.format(".to(device)"), setup + build.format(""))


def test_a_mover_of_the_script_s_own_stays_where_its_argument_does_more():
    setup = dedent(SETUP).format(does="torch.manual_seed(seed)")
    place = f"def place(x, device):\n    return x{{}}\n{NET}\nnet = place(net, setup(1))\n"
    check(setup + place.format(".to(device)"), setup + place.format(""))


def test_a_move_whose_device_does_more_stays_and_is_told():
    setup = dedent(SETUP).format(does="torch.manual_seed(seed)")
    says = "PTM101 line 5: `torch.nn.Linear(2, 1).to(setup(2))` stays: `setup(2)` does more than name a device"
    check_unchanged(f"{setup}{NET}.to(setup(2))\n", [says])


def test_a_move_whose_device_is_shown_as_well_goes():
    setup = dedent(SETUP).format(does="print(seed)")
    check(f"{setup}{NET}.to(setup(2))\n", f"{setup}{NET}\n", select="PTM101,PTM102")


LOOP = """
{net}
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in [(torch.ones(3, 2), torch.ones(3, 1))] * 3:
    {moves}
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
"""


@pytest.mark.parametrize(
    ("made", "net", "moves"),
    [
        ("device = setup(7)", NET + ".to(device)", "x, y = x.to(device), y.to(device)"),
        ("on = check(7)", f"{NET}\nif on:\n    net.cuda()", "x, y = (x.cuda(), y.cuda()) if on else (x, y)"),
        ("", NET + ".to(setup(7))", "x, y = x.to('cpu'), y.to('cpu')"),
    ],
)
def test_the_loop_draws_as_before(made, net, moves):
    setup = dedent(SETUP).format(does="torch.manual_seed(seed)")
    check = "def check(seed):\n    torch.manual_seed(seed)\n    return torch.cuda.is_available()\n"
    text = check_same(f"{setup}{check}{made}\n{LOOP.format(net=net, moves=moves)}", "module")
    assert text.count("setup(7)") + text.count("check(7)") == 1


def test_a_rank_whose_function_seeds():
    text = """
    import os, torch
    import torch.distributed as dist
    def init(seed):
        torch.manual_seed(seed)
        rank = int(os.environ.get("LOCAL_RANK", 0))
        if "RANK" in os.environ:
            dist.init_process_group("gloo")
        return rank
    local_rank = init(2)
    """
    after = check_same(dedent(text) + LOOP.format(net=NET, moves="pass"), "module")
    assert "\ninit(2)\n" in after


def test_a_rank_whose_function_has_nothing_left_goes_with_it():
    text = """
    import os, torch
    import torch.distributed as dist
    def init():
        os.environ["MASTER_ADDR"] = "localhost"
        rank = int(os.environ.get("LOCAL_RANK", 0))
        if "RANK" in os.environ:
            dist.init_process_group("gloo")
        return rank
    local_rank = init()
    """
    after = check_same(dedent(text) + LOOP.format(net=NET, moves="pass"), "module")
    assert "init()" not in after.replace("__init__()", "")


DECIDES = """
import os
import torch
import torch.distributed as dist
def init(seed):
    {}
    many = int(os.environ.get("WORLD_SIZE", 1)) > 1
    if many:
        dist.init_process_group("gloo")
        {}
    return many
net = torch.nn.Linear(2, 1)
if init(4):
    net = torch.nn.parallel.DistributedDataParallel(net)
"""


def test_a_branch_on_what_seeds_calls_it_still():
    text = migrated(DECIDES.format("torch.manual_seed(seed)", "pass")).text
    assert "torch.manual_seed(seed)" in text and "if init(4):" in text and "DistributedDataParallel" not in text


def test_one_that_several_processes_alone_seed_is_decided():
    assert "if init(" not in migrated(DECIDES.format("pass", "torch.manual_seed(seed)")).text
