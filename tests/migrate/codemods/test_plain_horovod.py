"""Horovod by hand goes back to a plain script, as torch.distributed by hand does."""

import pytest
from helpers import check, migrated
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.running import run

HEAD = "import torch\nimport horovod.torch as hvd\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("hvd.init()\nnet = make()", "net = make()"),
        ("hvd.init()\ntorch.cuda.set_device(hvd.local_rank())\nnet = make()", "net = make()"),
        ("opt = hvd.DistributedOptimizer(opt, named_parameters=net.named_parameters())\nf(opt)", "f(opt)"),
        ("o = hvd.DistributedOptimizer(opt, net.named_parameters())\nf(o)", "o = opt\nf(o)"),
        ("o = hvd.DistributedOptimizer(optimizer=SGD(p, 1), op=hvd.Average)\nf(o)", "o = SGD(p, 1)\nf(o)"),
        (
            "fp16 = hvd.Compression.fp16 if args.half else hvd.Compression.none\n"
            "opt = hvd.DistributedOptimizer(\n    opt,  # ours\n    compression=fp16)\nf(opt)",
            "f(opt)",
        ),
        ("hvd.broadcast_parameters(net.state_dict(), root_rank=0)\nnet()", "net()"),
        ("hvd.broadcast_optimizer_state(opt, 0)\nhvd.barrier()\nnet()\nhvd.shutdown()", "net()"),
        ("loss = hvd.allreduce(loss.detach(), name='loss')\nf(loss)", "loss = loss.detach()\nf(loss)"),
        ("hvd.allreduce_(loss)\nf(loss)", "f(loss)"),
        ("h = hvd.allreduce_async(loss)\nf(hvd.synchronize(h))", "h = loss\nf(h)"),
        ("xs = hvd.allgather(x, name='x')\nf(xs)", "xs = x\nf(xs)"),
        ("all = hvd.allgather_object({'n': 3})\nf(all)", "all = [{'n': 3}]\nf(all)"),
        ("epoch = hvd.broadcast(torch.tensor(e), 0, name='e').item()", "epoch = torch.tensor(e).item()"),
        ("last = hvd.broadcast_object(last, root_rank=0)\nf(last)", "f(last)"),
        ("if not hvd.is_initialized():\n    hvd.init()\nnet = make()", "net = make()"),
        ("if args.adasum and hvd.nccl_built():\n    scale = hvd.local_size()\nnet = make()", "net = make()"),
        ("n = len(data) // hvd.size()\nf(n, hvd.rank())", "n = len(data)\nf(n, 0)"),
        ("print(f'{hvd.rank()} of {hvd.size()}')", "print(f'{0} of {1}')"),
        ("done = horovod.run(train, args=(args,), np=4)", "done = [train(args)]"),
        ("done = horovod.run(train, kwargs=how, np=4)", "done = [train(**how)]"),
        (
            "opt = hvd.DistributedOptimizer(opt)\nloss.backward()\nopt.synchronize()\n"
            "clip(net)\nwith opt.skip_synchronize():\n    opt.step()",
            "loss.backward()\nclip(net)\nopt.step()",
        ),
        (
            "opt = hvd.DistributedOptimizer(opt)\nwith timed(), opt.skip_synchronize():\n    opt.step()",
            "with timed():\n    opt.step()",
        ),
    ],
)
def test_what_talks_is_gone(before, after):
    head = HEAD + ("import horovod\n" if "horovod.run" in before else "")
    check(f"{head}hvd.init()\n{before}\n", f"{head}{after}\n", select="PTM420")


OPTIONAL = """import torch
if args.horovod:
    import horovod.torch as hvd
    hvd.init()
    x = hvd.alltoall(x)
f(x)
"""


def test_one_way_of_several_stays_where_it_has_no_plain_form():
    result = migrated(OPTIONAL, "PTM420")
    loop = "for x, y in loader:\n    net(x).backward()\n    opt.step()\n"
    assert migrate_text(OPTIONAL + loop).plan != "refused"
    assert result.text == OPTIONAL and any("hvd.alltoall(x)" in n.message for n in result.attention)
    check(OPTIONAL.replace("    x = hvd.alltoall(x)\n", "    x = hvd.broadcast(x, 0)\n"),
          OPTIONAL.replace("    hvd.init()\n    x = hvd.alltoall(x)\n", ""), select="PTM420")  # fmt: skip


HELPER = f"{HEAD}\n\ndef averaged(value):\n    return hvd.allreduce(torch.tensor(value), name='loss').item()\n"


def test_a_helper_goes_with_its_script(tmp_path):
    assert migrated(HELPER, "PTM420").text == HELPER
    (tmp_path / "averages.py").write_text(HELPER)
    own = BY_HAND[BY_HAND.index("def averaged") : BY_HAND.index("for epoch")]
    (tmp_path / "train.py").write_text("from averages import averaged\n" + BY_HAND.replace(own, ""))
    done = {m.path.name: m.result for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    assert done["train.py"].plan == "module"
    assert not any("hvd" in r.text for r in done.values()), done["averages.py"].text


def test_by_another_name():
    text = "import torch\nfrom horovod import torch as h\nh.init()\nrank = h.rank()\nf(rank)\n"
    result = migrated(text, "PTM420")
    assert "init()" not in result.text and "rank = 0\n" in result.text


@pytest.mark.parametrize(
    "source",
    [
        "x = hvd.alltoall(x)",
        "net = Net(norm=hvd.SyncBatchNorm)",
        "state = hvd.elastic.TorchState(net, opt)",
        "@hvd.elastic.run\ndef train(state):\n    net()",
        "talk(hvd)",
        "ours = hvd\nours.init()",
        "init = hvd.init\ninit()",
        "op = hvd.Sum\nf(op)",
        "h = hvd.allreduce_async(loss)\nwhile not hvd.poll(h):\n    pass",
        "x = hvd.allreduce(**given)",
        "last = hvd.join()\nf(last)",
        "half = hvd.Compression.fp16\nopt = hvd.DistributedOptimizer(opt, compression=half)\nf(half)",
    ],
)
def test_refused_as_a_whole(source):
    text = (
        f"{HEAD}hvd.init()\n{source}\nrank = hvd.rank()\nfor x, y in loader:\n    net(x).backward()\n    opt.step()\n"
    )
    result = migrate_text(text)
    assert result.plan == "refused" and result.text == text
    assert any("no form of" in n.message for n in result.attention)


@pytest.mark.parametrize(
    "source",
    [
        "hvd = Talker()\nhvd.init()",
        "class hvd:\n    rank = 3\nprint(hvd.rank)",
        "import mine as hvd\nhvd.init()\nn = hvd.size()",
        "torch.cuda.synchronize()",
        "opt.synchronize()",
        "opt.synchronize()  # as horovod has it",
        "text = 'horovod.torch'  # hvd.init()",
        "import horovod\nprint(horovod.__version__)",
        "from tensorflow import horovod as hvd\nhvd.init()",
    ],
)
def test_unchanged(source):
    text = f"import torch\n{source}\n"
    assert migrated(text, "PTM420").text == text


def test_what_waits_for_a_card_stays():
    text = f"{HEAD}opt = hvd.DistributedOptimizer(opt)\ntorch.cuda.synchronize()\nstream.synchronize()\n"
    assert migrated(text, "PTM420").text == text.replace("opt = hvd.DistributedOptimizer(opt)\n", "")


def test_nothing_goes_of_a_file_where_not_all_can():
    text = f"{HEAD}opt = hvd.DistributedOptimizer(opt)\nx = hvd.alltoall(x)\n"
    assert migrated(text, "PTM420").text == text


def test_what_is_kept_of_the_wrapper_is_told():
    text = f"{HEAD}hvd.init()\nopt = hvd.DistributedOptimizer(opt)\nheld = opt.skip_synchronize()\nf(held)\n"
    assert any("nothing wraps the optimizer" in n.message for n in migrated(text, "PTM420").attention)


def test_a_sum_or_adasum_is_told():
    text = f"{HEAD}opt = hvd.DistributedOptimizer(opt, op=hvd.Adasum if args.adasum else hvd.Average)\nf(opt)\n"
    assert any("gradients are averaged" in n.message for n in migrated(text, "PTM420").attention)
    assert not any("averaged" in n.message for n in migrated(text.replace("hvd.Adasum if args.adasum else ", ""),
                                                             "PTM420").attention)  # fmt: skip


PLAIN = """import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
xs, ys = torch.randn(30, 4), torch.randint(0, 3, (30,))
loader = DataLoader(TensorDataset(xs, ys), batch_size=6, shuffle=True)
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def averaged(value):
    return torch.tensor(value).item()


for epoch in range(2):
    total = 0.0
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        total += loss.item()
    total = averaged(total / len(loader))
    print(f"{epoch} {total:.5f}")
"""
BY_HAND = (
    PLAIN.replace("import torch\n", "import torch\nimport horovod.torch as hvd\n", 1)
    .replace("torch.manual", "hvd.init()\ntorch.manual")
    .replace("loader = ", "sampler = torch.utils.data.distributed.DistributedSampler(\n"
             "    TensorDataset(xs, ys), num_replicas=hvd.size(), rank=hvd.rank())\nloader = ")
    .replace("shuffle=True", "sampler=sampler")
    .replace("\n\n\ndef", "\nhvd.broadcast_parameters(net.state_dict(), root_rank=0)\n"
             "opt = hvd.DistributedOptimizer(opt, named_parameters=net.named_parameters())\n\n\ndef")
    .replace("torch.tensor(value).item()", "hvd.allreduce(torch.tensor(value), name='loss').item()")
    .replace("    total = 0.0\n", "    sampler.set_epoch(epoch)\n    total = 0.0\n")
    .replace("    print", "    if hvd.rank() == 0:\n        print")
)  # fmt: skip


def test_a_script_trains_as_the_plain_one():
    result = migrate_text(BY_HAND)
    assert result.plan == "module" and "horovod" not in result.text and "divide_batches" not in result.text
    one, other = run(PLAIN), run(result.text)
    assert one.losses == other.losses and one.output == other.output
