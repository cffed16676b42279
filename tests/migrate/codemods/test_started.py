"""T9: processes that a loop starts one by one, each with its rank, and that join a group: a call of their function."""

import pytest
from helpers import check, migrated
from ptmigrate.migrate.migrate import migrate_text

HEAD = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.multiprocessing import Process

"""
TRAIN = """\
def train(rank, size, more=None):
{init}    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1 * size)
    for epoch in range(2):
        for x in torch.utils.data.DataLoader(torch.ones(8, 2), 4 // size):
            opt.zero_grad()
            model(x).sum().backward()
            opt.step()

"""
INIT = "    dist.init_process_group('gloo', rank=rank, world_size=size)\n"
LOOP = """\
ps = []
# one a card
for rank in range(2):
    p = {}
    p.start()
    ps.append(p)
for p in ps:
    p.join()
print('done')
"""
PROCESS = "mp.Process(target=train, args=(rank, 2))"


@pytest.mark.parametrize(
    ("made", "call"),
    [
        (PROCESS, "train(0, 1)"),
        ("Process(target=train, args=(rank, 2, go))", "train(0, 1, go)"),
        ("mp.get_context('spawn').Process(target=train, args=(rank, 2, 3))", "train(0, 1, 3)"),
        ("Process(None, target=train, args=(rank, 2))", None),
    ],
)
def test_the_one_process_is_a_call(made, call):
    result = migrate_text(HEAD + TRAIN.format(init=INIT) + LOOP.format(made))
    if call is None:
        assert result.plan == "refused"
        return
    assert result.plan == "module" and "Process(" not in result.text and " ps" not in result.text
    assert migrate_text(result.text).text == result.text
    arguments = call.removeprefix("train(0, ")
    assert f"# one a card\ntrain({arguments}\n" in result.text and "print('done')" in result.text
    compile(result.text, "script", "exec")


def test_beside_the_call_all_keeps_its_bytes():
    start = "def work(rank, size):\n    dist.init_process_group('gloo', rank=rank, world_size=size)\n    go(rank)\n\n"
    loop = LOOP.replace("2):", "n):").format("mp.Process(target=work, args=(rank, n))")
    after = "def work(rank, size):\n    go(rank)\n\n# one a card\nwork(0, 1)\nprint('done')\n"
    check(HEAD + start + loop, HEAD + after, select="PTM420")


RUNNER = """\
class Log:
    def __init__(self, path):
        self.path = path

class Runner:
    def __init__(self, rank, size):
        {}
        self.train()

    def train(self):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.utils.data.DataLoader(torch.ones(8, 2), 4):
            opt.zero_grad()
            model(x).sum().backward()
            opt.step()

class Last:
    def __init__(self):
        self.rows = []

def work(rank, world_size):
    Runner(rank, world_size)

"""


def test_a_class_connects_and_trains():
    """Who names a class comes to its methods, to its own `__init__`, too."""
    loop = LOOP.format("mp.Process(target=work, args=(rank, 2))")
    result = migrate_text(HEAD + RUNNER.format(INIT.strip()) + loop)
    assert result.plan not in ("refused", "none") and "# one a card\nwork(1)\n" in result.text
    assert migrate_text(HEAD + RUNNER.format("self.rank = rank") + loop).plan == "refused"


@pytest.mark.parametrize(
    "loop",
    [
        LOOP.format("mp.Process(target=train, args=(2, rank))"),
        LOOP.format("mp.Process(target=train, args=(rank, rank))"),
        LOOP.format("mp.Process(target=train, args=given)"),
        LOOP.format(PROCESS).replace("range(2)", "range(1, 2)"),
        LOOP.format(PROCESS).replace("range(2)", "cards"),
        LOOP.format(PROCESS).replace("    p.start()\n", "    p.start()\n    log(p.pid)\n"),
        LOOP.format(PROCESS).replace("    p.start()\n", ""),
        LOOP.format(PROCESS).replace("    p.join()\n", "    p.join()\n    print(p.exitcode)\n"),
        LOOP.format(PROCESS).replace("print('done')", "print(len(ps))"),
        LOOP.format(PROCESS).replace("print('done')", "print(p)"),
        f"rank = 0\np = {PROCESS}\np.start()\np.join()\n",
    ],
)
def test_what_is_started_otherwise_is_refused(loop):
    result = migrate_text(HEAD + TRAIN.format(init=INIT) + loop)
    assert result.plan == "refused" and result.text == HEAD + TRAIN.format(init=INIT) + loop
    assert any(n.code == "PTM704" and "starts the processes" in n.message for n in result.attention)


def test_processes_of_no_group_are_refused():
    """Without a group they do not wait for one another: it is another run."""
    assert migrate_text(HEAD + TRAIN.format(init="") + LOOP.format(PROCESS)).plan == "refused"


def test_hogwild_is_refused():
    shares = "net = torch.nn.Linear(2, 1)\nnet.share_memory()\n"
    result = migrate_text(HEAD + TRAIN.format(init=INIT) + shares + LOOP.format(PROCESS))
    assert result.plan == "refused" and any("Hogwild" in n.message for n in result.attention)


def test_workers_that_train_nothing_stay():
    worker = "def fill(rank, queue):\n    queue.put(rank)\n\n"
    loop = LOOP.format("mp.Process(target=fill, args=(rank, queue))")
    meet = "dist.init_process_group('gloo')\nnet = torch.nn.parallel.DistributedDataParallel(net)\n"
    assert loop in migrated(HEAD + worker + loop + meet, "PTM420").text
