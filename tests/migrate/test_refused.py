"""Scripts that are left as they are, with the reason; and as many that look alike and are not."""

import ast

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

LOOP = "for x, y in loader:\n    loss = model(x).sum()\n    loss.backward()\n    opt.step()\n"
TRAIN = "def train(rank, model):\n    for x in data:\n        model(x).sum().backward()\n"

REFUSED = {
    "rpc": ("import torch.distributed.rpc as rpc\nif rank == 0:\n    rpc.init_rpc('master', rank=0)\n", "rpc"),
    "rpc by name": ("from torch.distributed.rpc import RRef, rpc_sync\nrpc_sync('w', f, args=())\n" + LOOP, "rpc"),
    "hogwild": (
        "import torch.multiprocessing as mp\n" + TRAIN + "model.share_memory()\n"
        "for r in range(4):\n    p = mp.Process(target=train, args=(r, model))\n    p.start()\n",
        "Hogwild",
    ),
    "hogwild, train elsewhere": (
        "import torch\nimport torch.multiprocessing as mp\nfrom train import train\nmodel = Net().to(device)\n"
        "model.share_memory()\nmp.Process(target=train, args=(0, model)).start()\n",
        "Hogwild",
    ),
    "processes by hand": (
        "import torch\nfrom torch.multiprocessing import Process\n" + TRAIN.replace("train", "run") +
        "def init(rank, fn):\n    fn(rank, run)\n\nProcess(target=init, args=(0, run)).start()\n",
        "starts the processes",
    ),
    "a function that trains, given": (
        "import torch\nimport torch.multiprocessing as mp\n" + TRAIN +
        "def init(rank, fn):\n    fn(rank, 2)\n\nmp.Process(target=init, args=(0, train)).start()\n",
        "starts the processes",
    ),
    "a method that trains": (
        "import torch\nfrom multiprocessing import Process\nclass T:\n    " + TRAIN.replace("\n    ", "\n        ") +
        "    def go(self):\n        Process(None, self.train, 'n', (0, 1)).start()\n",
        "starts the processes",
    ),
    "a context's processes": (
        "import torch\nimport multiprocessing\nctx = multiprocessing.get_context('spawn')\n" + TRAIN +
        "ctx.Process(target=train).start()\n",
        "starts the processes",
    ),
    "fsdp": (
        "import torch\nfrom torch.distributed.fsdp import FullyShardedDataParallel as F\nmodel = F(model)\n" + LOOP,
        "FSDP",
    ),
    "fully_shard": ("import torch\nfrom torch.distributed.fsdp import fully_shard\nfully_shard(m)\n" + LOOP, "FSDP"),
    "deepspeed": ("import torch, deepspeed\nm, opt, _, _ = deepspeed.initialize(model=model)\n" + LOOP, "DeepSpeed"),
    "horovod, in another way": (
        "import torch\nimport horovod.torch as hvd\nhvd.init()\nx = hvd.alltoall(x)\n" + LOOP, "processes talk there"
    ),
    "stages": ("import torch\nfrom torch.distributed.pipelining import pipeline\npipeline(m, 1)\n" + LOOP, "stages"),
    "a mesh": (
        "import torch\nfrom torch.distributed.device_mesh import init_device_mesh\n"
        "mesh = init_device_mesh('cuda', (2, 4))\n" + LOOP,
        "mesh",
    ),
}  # fmt: skip

NOT_REFUSED = {
    "rpc imported only": "import torch\nimport torch.distributed.rpc as rpc\n" + LOOP,
    "fsdp is one way of several": (
        "import torch\nfrom torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
        "if args.fsdp:\n    model = FSDP(model)\n" + LOOP
    ),
    "another rpc": "import torch\nimport rpc\nrpc.init_rpc('a')\n" + LOOP,
    "processes that prepare data": (
        "import torch\nimport multiprocessing as mp\ndef fill(q):\n    q.put(1)\n\nmp.Process(target=fill).start()\n"
        + LOOP
    ),
    "spawned and wrapped": (
        "import torch\nimport torch.multiprocessing as mp\ndef work(rank):\n"
        + "".join(f"    {line}\n" for line in LOOP.splitlines())
        + "\nif __name__ == '__main__':\n    mp.spawn(work, nprocs=2)\n"
    ),
    "shared memory alone": "import torch\nbuffer = torch.zeros(3)\nbuffer.share_memory_()\n" + LOOP,
    "processes that are given what trains not": (
        "import torch\nimport multiprocessing as mp\ndef fill(q, n):\n    q.put(n)\n\n"
        "mp.Process(target=fill, args=(q, size)).start()\n" + LOOP
    ),
    "processes that make what trains not": (
        "import torch\nimport multiprocessing as mp\n"
        "class Queue:\n    def put(self, n):\n        return n\ndef fill(n):\n    Queue().put(n)\n\n"
        + TRAIN
        + "mp.Process(target=fill, args=(2,)).start()\n"
    ),
    "horovod": "import torch\nimport horovod.torch as hvd\nhvd.init()\n" + LOOP,
    "a function of that name": "import torch\ndef Process(target): ...\nProcess(None)\n" + LOOP,
}

GATHERS = (
    "import torch\nimport torch.distributed as dist\ndef gather(x):\n    {}\n"
    "    parts = [x.clone() for _ in range(2)]\n    dist.all_gather(parts, x, async_op=True).wait()\n"
    "    return torch.cat(parts)\n\n"
)
ENDS = "if __name__ == '__main__':\n    print(gather(net(x)))\n"
REFUSED["peers that another connects"] = (GATHERS.format("pass") + ENDS, "processes talk there")
NOT_REFUSED["peers that are asked for first"] = (
    GATHERS.format("if not dist.is_initialized():\n        return x") + LOOP + ENDS
)
NOT_REFUSED["what counts operations"] = (
    "import torch\nimport torch.distributed as dist\nfrom deepspeed.profiling.flops_profiler import get_model_profile\n"
    "dist.init_process_group('gloo')\nprint(get_model_profile(model))\n" + LOOP
)
NOT_REFUSED["gathers in a library"] = GATHERS.format("pass") + "def to(x):\n    return x.cuda()\n"

CARRIED = {
    "accelerate": (
        "import torch\nfrom accelerate import Accelerator\naccelerator = Accelerator()\n"
        "model = model.to(accelerator.device)\nfor x in loader:\n    accelerator.backward(model(x).sum())\n"
    ),
    "fabric": "import torch\nimport lightning as L\nfabric = L.Fabric()\nfabric.backward(model(x))\n",
    "accelerate, made in another file": "import torch\ndef step(accelerator, x):\n    accelerator.backward(model(x))\n",
    "an engine": "import torch\ndef step(self, x):\n    self.engine.backward(self.engine(x.cuda()))\n",
    "ignite": (
        "import torch\nfrom ignite.engine import Engine\n"
        "def update(e, b):\n    model(b).backward()\n\nt = Engine(update)\n"
    ),
}


@pytest.mark.parametrize("text, why", REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_the_reason_and_left_as_it_is(text, why):
    ast.parse(text)
    result = migrate_text(text)
    assert result.plan == "refused" and result.text == text and not result.edits
    (note,) = result.attention
    assert why in note.message and note.code == "PTM704" and note.line > 1


@pytest.mark.parametrize("text", NOT_REFUSED.values(), ids=NOT_REFUSED.keys())
def test_not_refused(text):
    assert migrate_text(text).plan in ("module", "manual", "loop", "definitions")


@pytest.mark.parametrize("text", CARRIED.values(), ids=CARRIED.keys())
def test_what_another_library_carries_keeps_its_bytes(text):
    result = migrate_text(text)
    assert result.plan == "none" and result.text == text and "carries its loop already" in result.reason


@pytest.mark.parametrize("name", ["hogwild", "deepspeed", "processes by hand"])
def test_a_module_that_trains_in_such_a_way_stays_too(name):
    result = migrate_text(REFUSED[name][0], is_script=False)
    assert result.plan == "refused" and result.text == REFUSED[name][0]


@pytest.mark.parametrize(
    "call",
    ["all_to_all_single(x, y)", "reduce_scatter_tensor(x, y)", "batch_isend_irecv(ops)", "send_object_list([x], 1)"],
)
def test_what_has_no_form_of_one_process_is_told(call):
    text = f"import torch\nimport torch.distributed as dist\ndist.init_process_group('gloo')\ndist.{call}\n{LOOP}"
    result = migrate_text(text)
    assert result.plan == "refused" and [n.line for n in result.attention] == [4]


def test_the_modules_of_a_refused_script_keep_their_bytes(tmp_path):
    text = REFUSED["hogwild, train elsewhere"][0]
    (tmp_path / "main.py").write_text(text, encoding="utf-8")
    (tmp_path / "train.py").write_text(
        "import torch\n" + TRAIN.replace("model(x)", "model(x.cuda())"), encoding="utf-8"
    )
    done = migrate_all(collect([tmp_path / "main.py"]), Options())
    assert [m.report.plan for m in done] == ["refused", "none"] and not any(m.report.changed for m in done)


def test_a_refused_script_that_shares_its_modules_stays_and_is_told_of_them(tmp_path):
    joins = "import torch\nimport torch.distributed as dist\ndef join():\n    dist.init_process_group('gloo')\n"
    (tmp_path / "utils.py").write_text(joins, encoding="utf-8")
    use = "import utils\nutils.join()\n"
    (tmp_path / "evaluate.py").write_text("from torch import nn\n" + use + GATHERS.format("pass") + ENDS)
    (tmp_path / "train.py").write_text("import torch\n" + use + "model = torch.nn.Linear(2, 1)\n" + LOOP)
    for again in (False, True):
        done = {m.path.name: m for m in migrate_all(collect([tmp_path]), Options())}
        assert done["evaluate.py"].report.plan == "refused" and not done["evaluate.py"].report.changed
        told = [n for n in done["evaluate.py"].report.attention if "utils.py" in n.message]
        assert len(told) == (not again)
        for m in done.values():
            assert m.report.changed is (not again and m.path.name != "evaluate.py")
            m.path.write_bytes(m.data)


def test_python_2_is_refused_by_name(tmp_path):
    (tmp_path / "old.py").write_text("import torch\nprint 'epoch', 1\n", encoding="utf-8")
    (done,) = migrate_all(collect([tmp_path / "old.py"]), Options())
    assert done.report.plan == "refused" and "old.py:2:" in done.report.error and "Python 2" in done.report.error


def test_what_is_left_of_a_fault_once_async_is_mended_is_told_at_its_place(tmp_path):
    path = tmp_path / "old.py"
    path.write_text("import torch\nx = torch.ones(2).cuda(async=True)\ny = (\n")
    done = migrate_all(collect([path]), Options())
    assert done[0].report.error.startswith(f"{path}:3:5: ")


def test_a_sharded_script_keeps_the_group_that_its_optimizer_needs():
    text = "import torch\nimport torch.distributed as dist\nfrom fairscale.optim.oss import OSS\n"
    text += "dist.init_process_group('gloo')\noptimizer = OSS(net.parameters(), optim=torch.optim.SGD, lr=0.1)\n"
    text += TRAIN.replace("optimizer = ", "unused = ")
    result = migrate_text(text)
    assert result.plan == "refused" and result.text == text and [n.line for n in result.attention] == [5]
