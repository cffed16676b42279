"""T9 over several files: what one file says of processes is known in the others."""

import pytest
from ptmigrate.migrate.elsewhere import MOVER
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

from tests import forked

UTILS = """\
import os
import torch
import torch.distributed as dist


def is_on():
    if not dist.is_available():
        return False
    if not dist.is_initialized():
        return False
    return True


def get_rank():
    if not is_on():
        return 0
    return dist.get_rank()


def is_main_process():
    return get_rank() == 0


def start(args):
    if 'RANK' in os.environ:
        args.rank = int(os.environ['RANK'])
    else:
        args.distributed = False
        return
    args.distributed = True
    dist.init_process_group('nccl', init_method=args.dist_url, rank=args.rank)


def keep(net, path):
    torch.save(net.module.state_dict(), path)


def begin(loader, epoch):
    loader.sampler.set_epoch(epoch)
"""

MAIN = """\
import argparse
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
import utils

p = argparse.ArgumentParser()
p.add_argument('--dist-url', default='env://')
p.add_argument('--world-size', default=1, type=int)
args = p.parse_args()
utils.start(args)
torch.manual_seed(3 + utils.get_rank())
model = torch.nn.Linear(2, 1)
data = torch.ones(8, 2)
if args.distributed:
    model = DDP(model)
loader = DataLoader(data, 2, sampler=DistributedSampler(data))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    utils.begin(loader, epoch)
    for x in loader:
        loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if utils.is_main_process():
        print(epoch, loss.item())
        utils.keep(model, 'm.pt')
"""


def migrated(tmp_path, **files):
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    done = migrate_all(collect([tmp_path / "main.py"]), Options())
    for m in done:
        m.path.write_bytes(m.data)
    return {m.path.stem: m.path.read_text() for m in done}


def test_a_script_and_its_helpers_become_plain_together(tmp_path):
    texts = migrated(tmp_path, utils=UTILS, main=MAIN)
    assert "distributed" not in texts["main"] and "dist-url" not in texts["main"] and "DDP" not in texts["main"]
    assert "torch.manual_seed(3)\n" in texts["main"]
    assert "    return is_global_zero()\n" in texts["utils"] and "init_process_group" not in texts["utils"]
    assert "    torch.save(net.state_dict(), path)\n" in texts["utils"]  # rank 0 comes alone, and nobody waits for it
    assert "set_epoch" not in texts["utils"]
    run = forked.run("main.py", cwd=tmp_path)
    assert run.returncode == 0 and len(run.stdout.splitlines()) == 2, run.stderr


def test_an_option_that_another_file_reads_stays(tmp_path):
    utils = UTILS + "\n\ndef size(args):\n    return args.world_size * 2\n"
    assert "--world-size" in migrated(tmp_path, utils=utils, main=MAIN)["main"]


def test_files_that_do_not_import_one_another_are_not_one_project(tmp_path):
    alone = "import torch\nif args.distributed:\n    a()\nif rank == 0:\n    b()\nm.module.c()\n"
    (tmp_path / "other.py").write_text(alone)
    (tmp_path / "utils.py").write_text(UTILS)
    (tmp_path / "main.py").write_text(MAIN)
    done = {m.path.stem: m for m in migrate_all(collect([tmp_path]), Options())}
    assert done["other"].data.decode() == alone


def test_a_function_of_another_file_that_gives_a_wrapped_model(tmp_path):
    made = "import torch.nn as nn\n\n\ndef make(net):\n    return nn.DataParallel(net)\n"
    main = "import torch\nfrom made import make\n\nnet = make(torch.nn.Linear(2, 3)).cuda()\nprint(net.module.weight)\n"
    texts = migrated(tmp_path, made=made, main=main)
    assert texts["made"].endswith("    return net\n") and "print(net.weight)" in texts["main"]


def test_a_question_for_the_one_process_by_another_name_is_known_in_other_files(tmp_path):
    """A save below it was one that all ranks wait for, and only rank 0 came there."""
    (tmp_path / "cluster.py").write_text(
        "import torch.distributed as dist\n\n\nclass Cluster:\n    @property\n    def is_chief(self):\n"
        "        return dist.get_rank() == 0\n\n\ndef begin():\n    dist.init_process_group('gloo')\n"
    )
    (tmp_path / "main.py").write_text(
        "import torch\nfrom cluster import Cluster, begin\nbegin()\nc = Cluster()\nnet = torch.nn.Linear(2, 1)\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nloader = torch.utils.data.DataLoader(torch.ones(8, 2), 2)\n"
        "for x in loader:\n    loss = net(x).mean()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
        "if c.is_chief:\n    torch.save(net.state_dict(), 'net.pt')\n"
    )
    main = next(r for r in migrate_all(collect([tmp_path / "main.py"]), Options()) if r.path.name == "main.py")
    assert "if c.is_chief:\n    torch.save(net.state_dict(), 'net.pt')\n" in main.result.text


def test_functions_that_move_what_they_get_are_looked_for_in_no_time():
    """Each margin was tried at each of its widths: a folder with such a file was never done."""
    deep = "def place(x, y):\n" + (" " * 60 + "y[0],\n") * 12
    assert MOVER.search(deep * 50) is None and MOVER.search(deep * 50 + "def to_gpu(x):\n    return x.cuda()\n")


SAVER = """\
import os
import torch
import torch.distributed as dist


def is_main_process():
    return dist.get_rank() == 0


def save_on_master(*args, **kwargs):
    if is_main_process():
        torch.save(*args, **kwargs)
        os.remove('old.pt')
"""

SAVED = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from saver import is_main_process, save_on_master

dist.init_process_group('nccl')
net = DDP(torch.nn.Linear(2, 1).cuda())
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for x in torch.utils.data.DataLoader(torch.ones(8, 2), 2):
    optimizer.zero_grad()
    net(x.cuda()).mean().backward()
    optimizer.step()
"""


def saver_of(folder, below):
    return migrated(folder, saver=SAVER, main=SAVED + below)["saver"]


def test_what_is_called_on_rank_0_here_and_on_all_there_is_done_once(tmp_path):
    both = "save_on_master(net.state_dict(), 'a')\nif is_main_process():\n    save_on_master(net.state_dict(), 'b')\n"
    found = saver_of(tmp_path, both)
    assert "on_rank_zero(torch.save)(*args, **kwargs)" in found and "on_rank_zero(os.remove)('old.pt')" in found
    # a guard that is the function, and no call of it, lets every process through
    assert saver_of(tmp_path, "if is_main_process:\n    save_on_master(net.state_dict(), 'b')\n") == found


def test_what_is_called_on_rank_0_alone_needs_no_second_guard(tmp_path):
    found = saver_of(tmp_path, "if is_main_process():\n    save_on_master(net.state_dict(), 'b')\n")
    assert "    torch.save(*args, **kwargs)" in found


OPTIONS = """\
import argparse


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    return parser
"""
OF_OPTIONS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from options import options


def evaluate(model, data):
    print(model(data.tensors[0]).sum().item())


args = options().parse_args()
if args.local_rank != -1:
    torch.distributed.init_process_group("nccl")
data = TensorDataset(torch.randn(16, 4), torch.randn(16, 2))
sampler = RandomSampler(data) if args.local_rank == -1 else DistributedSampler(data)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if args.local_rank != -1:
    model = nn.parallel.DistributedDataParallel(model)
for epoch in range(2):
    for x, y in DataLoader(data, sampler=sampler, batch_size=8):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    if ASKED:
        evaluate(model, data)
"""


def with_options(tmp_path, options, asked):
    (tmp_path / "options.py").write_text(options)
    (tmp_path / "train.py").write_text(OF_OPTIONS.replace("ASKED", asked))
    done = {m.path.stem: m for m in migrate_all(collect([tmp_path / "train.py"]), Options())}
    return done["train"].result.text


@pytest.mark.parametrize("asked", ["args.local_rank == -1", "args.local_rank in [-1, 0]", "not args.local_rank != -1"])
def test_a_rank_that_is_asked_for_minus_one_has_it_without_a_launcher(tmp_path, asked):
    text = with_options(tmp_path, OPTIONS, asked)
    assert "evaluate(self.model, self.data)" in text or "evaluate(model, data)" in text
    assert "local_rank" not in text and "Distributed" not in text
    assert "sampler = RandomSampler(data)" in text
