"""data_parallel() is a call, no_sync() holds nothing back."""

import pytest
from helpers import check, check_unchanged, migrated
from ptmigrate.migrate.codemods.plain_parallel import PlainParallel
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.running import run

HEAD = "import torch.nn as nn\nfrom torch.nn.parallel import data_parallel\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = data_parallel(net, x)", "y = net(x)"),
        ("y = nn.parallel.data_parallel(self.main, x, range(ngpu))", "y = self.main(x)"),
        ("y = data_parallel(net, (a, b), [0, 1])", "y = net(a, b)"),
        ("y = data_parallel(module=net, inputs=x, dim=0).mean()", "y = net(x).mean()"),
        (
            "if x.is_cuda and n > 1:\n    # many\n    y = data_parallel(net, x, range(n))\nelse:\n    y = net(x)",
            "# many\ny = net(x)",
        ),
        (
            "if x.is_cuda:\n    y = data_parallel(net, x)\nelse:\n    y = net(x) * 2",
            "if x.is_cuda:\n    y = net(x)\nelse:\n    y = net(x) * 2",
        ),
    ],
)
def test_the_function_is_a_call(before, after):
    check(HEAD + before + "\n", HEAD + after + "\n", select="PTM420")


@pytest.mark.parametrize(
    "source",
    [
        "y = data_parallel(net, x, module_kwargs={'k': 1})",
        "y = data_parallel(*given)",
        "y = data_parallel(net, x, **how)",
        "x = (a, b)\ny = data_parallel(net, x)",
        "def data_parallel(net, x):\n    return net\n\n\ny = data_parallel(net, x)",
        "y = nn.parallel.replicate(net, [0, 1])",
        "from mine import data_parallel\ny = data_parallel(net, x)",
        "y = self.data_parallel(net, x)",
        "run(data_parallel)",
        "def f(data_parallel):\n    return data_parallel(net, x)",
        "text = 'data_parallel(net, x)'  # data_parallel(net, x)",
        "ys = nn.parallel.parallel_apply(nets, xs)",
        "y = data_parallel(net)",
        "y = data_parallel(inputs=x)",
        "parser.add_argument('--data-parallel', action='store_true')",
        "if args.data_parallel:\n    y = net(x)",
        "x = [a, b]\ny = data_parallel(net, x)",
        "print(f'{data_parallel(net, x)=}')",
        "class Net:\n    data_parallel = 3\ny = Net.data_parallel",
    ],
)
def test_unchanged(source):
    assert migrated(HEAD + source + "\n", "PTM420").text == HEAD + source + "\n"


WRAPPED = "from contextlib import nullcontext\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n{}go()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("with net.no_sync():\n    # held\n    step()", "# held\nstep()"),
        ("with net.no_sync() if i % 2 else nullcontext():\n    step()", "step()"),
        ("if i % 2:\n    with net.no_sync():\n        step()\nelse:\n    step()  # together", "step()  # together"),
        ("# at last\nif last:\n    step()\nelse:\n    with net.no_sync():\n        step()", "# at last\nstep()"),
        ("if i:\n    with net.no_sync():\n        a()\nelse:\n    b()", "if i:\n    a()\nelse:\n    b()"),
        (
            "if i:\n    # not yet\n    with net.no_sync():\n        a()  # keeps\nelse:\n    a()",
            "if i:\n    # not yet\n    a()  # keeps\nelse:\n    a()",
        ),
        (
            "if i:  # each second\n    with net.no_sync():\n        a()\nelse:\n    a()",
            "if i:  # each second\n    a()\nelse:\n    a()",
        ),
        (
            "if i:\n    with net.no_sync():\n        a()\nelse:  # at last\n    a()",
            "if i:\n    a()\nelse:  # at last\n    a()",
        ),
        ("if i:\n    with net.no_sync():  # not yet\n        a()\nelse:\n    a()  # now", "a()  # now"),
        ("if f():\n    with net.no_sync():\n        a()\nelse:\n    a()", "if f():\n    a()\nelse:\n    a()"),
        ("with (nullcontext() if last else net.no_sync()):\n    step()", "step()"),
        ("how = net.no_sync if i % 2 else nullcontext\nwith how():\n    # held\n    step()", "# held\nstep()"),
        ("how = nullcontext() if i % 2 else net.no_sync()\nwith how:\n    step()", "step()"),
        ("how = net.no_sync()\nif last:\n    how = nullcontext()\nwith how:\n    a()\nwith how:\n    b()", "a()\nb()"),
        ("how = net.no_sync if i % 2 else nullcontext\nwith how(), other():\n    step()",) * 2,
        ("how = net.no_sync() if i % 2 else nullcontext()\nrun(how)\nwith how:\n    step()",) * 2,
        ("how = net.no_sync if i % 2 else profile\nwith how():\n    step()",) * 2,
        ("how = net.no_sync() if more() else nullcontext()\nwith how:\n    step()",) * 2,
        ("with net.no_sync(), other():\n    step()", "with nullcontext(), other():\n    step()"),
        ("with net.join():\n    step()", "step()"),
        ("with net.join(divide_by_initial_world_size=False):\n    step()", "step()"),
        (
            "import torch.distributed.algorithms as a\nwith a.join.Join([net, opt]):\n    step()",
            "import torch.distributed.algorithms as a\nstep()",
        ),
        (
            "import torch.distributed as dist\nwith other(), dist.algorithms.Join([net]):\n    step()",
            "import torch.distributed as dist\nwith other(), nullcontext():\n    step()",
        ),
    ],
)
def test_nothing_is_held_back(before, after):
    if before == after:
        after = after.replace("net.no_sync", "nullcontext")
    check(WRAPPED.format("net = DDP(net)\n" + before + "\n"), WRAPPED.format(after + "\n"), select="PTM420")


def test_nullcontext_is_imported_where_it_is_not():
    source = "import torch\nnet = torch.nn.parallel.DistributedDataParallel(net)\nhow = net.no_sync if i else g\ngo()\n"
    result = "import contextlib\nimport torch\nhow = contextlib.nullcontext if i else g\ngo()\n"
    check(source, result, select="PTM420")


@pytest.mark.parametrize("source", ["with net.no_sync():\n    step()", "with trainer.no_sync():\n    step()"])
def test_what_is_not_wrapped_keeps_its_no_sync(source):
    check_unchanged("import torch\n" + source + "\n", [], select="PTM420")


@pytest.mark.parametrize(
    "source",
    [
        "with db.no_sync():\n    step()",
        "with thread.join():\n    step()",
        "path = os.path.join(net, 'a')",
        "net.join()",
        "class Join:\n    pass\nwith Join([net]):\n    step()",
        "print(net.no_sync_steps)",
        "text = 'net.no_sync()'",
        "def no_sync():\n    return 3\nwith no_sync():\n    step()",
        "class Accelerated:\n    def no_sync(self):\n        return lock\nwith Accelerated().no_sync():\n    step()",
        "with accelerator.no_sync(net):\n    step()",
        "with fabric.no_backward_sync(net):\n    step()",
        "with nullcontext():\n    step()",
    ],
)
def test_a_no_sync_of_something_else_stays(source):
    check(WRAPPED.format("net = DDP(net)\n" + source + "\n"), WRAPPED.format(source + "\n"), select="PTM420")


SCRIPT = """\
import time
import torch
import torch.distributed as dist
from contextlib import nullcontext
from torch.utils.data import DataLoader, TensorDataset
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
x = torch.randn(24, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
net = DDP(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for i, (a, b) in enumerate(loader):
        last = (i + 1) % 2 == 0
        with net.no_sync() if not last else nullcontext():
            loss = (net(a) - b).pow(2).mean() / 2
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
time.sleep(0.2)  # gloo's threads drop what the last gradients held, which the group's end would wait for with the GIL
dist.destroy_process_group()
"""


def test_a_script_with_it_runs_the_same():
    result = migrate_text(SCRIPT)
    assert "no_sync" not in result.text and result.plan == "manual", result.text
    ours, theirs = run(result.text), run(SCRIPT)
    assert ours.losses == theirs.losses and all(map(lambda p, q: p.equal(q), ours.parameters, theirs.parameters))


WRAPS = """
import functools
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
{}
"""


@pytest.mark.parametrize(
    "taken",
    [
        "Wrap = nn.DataParallel if torch.cuda.device_count() > 1 else (lambda m: m)",
        "wrap = functools.partial(DDP, broadcast_buffers=False)",
        "kinds = {'dp': nn.DataParallel, 'ddp': DDP}",
        "def kind():\n    return DDP",
        "net = made(net, wrapper=nn.DataParallel)",
    ],
)
def test_a_wrapper_that_is_a_value_is_told_of(taken):
    facts = Facts(WRAPS.format(taken))
    told = list(PlainParallel().notes(facts))
    assert told and all("is a value here" in n.message for n in told)


@pytest.mark.parametrize(
    "taken",
    [
        "net = nn.DataParallel(net)",
        "if isinstance(net, (nn.DataParallel, DDP)):\n    net = net.module",
        "Parallel = nn.DataParallel\nnet = Parallel(net)",
        "def f(net: nn.DataParallel) -> DDP:\n    return net",
        "class Mine(nn.DataParallel):\n    pass",
        "same = type(net) is DDP",
    ],
)
def test_one_that_wraps_or_is_asked_for_is_not(taken):
    assert list(PlainParallel().notes(Facts(WRAPS.format(taken)))) == []


@pytest.mark.parametrize(("made", "stays"), [("torch.load('m.pt')", True), ("nn.Linear(4, 1)", False)])
def test_a_model_that_was_loaded_whole_keeps_its_move_below_the_training(made, stays):
    """No Trainer sees it: the wrapper goes, and the move is still the script's."""
    text = f"import torch\nfrom torch import nn\nfrom n import x\nloaded = {made}\ndevice = torch.device('cuda')\n"
    result = migrated(text + "net = nn.DataParallel(loaded).to(device)\nprint(net(x))\n")
    assert ("net = loaded.to(device)\n" in result.text) is stays and "DataParallel" not in result.text
