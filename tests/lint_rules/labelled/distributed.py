# ====== 1
# only PTM4
import os
import torch
import torch.distributed as dist
from torch.distributed import all_reduce, get_rank as gr
from torch.utils.data import DataLoader, DistributedSampler as DS
from torch.utils.data.distributed import DistributedSampler
from torch.nn.parallel import DistributedDataParallel as DDP
os.environ["MASTER_ADDR"] = "localhost"  #~ PTM403
os.environ["MASTER_PORT"] = "12355"  #~ PTM403
os.environ["MASTER_PORT"] = str(12355)  #~ PTM403
os.environ.update({"MASTER_ADDR": "localhost"})  #~ PTM403
os.environ["MASTER_PORT"] = str(find_free_port())
os.environ.setdefault("MASTER_PORT", "29500")
dist.init_process_group("nccl", init_method="tcp://localhost:23456", rank=0, world_size=2)  #~ PTM403
dist.init_process_group(backend="nccl", init_method="tcp://127.0.0.1:%d" % 29500)  #~ PTM403
dist.init_process_group(backend="nccl", init_method=f"tcp://127.0.0.1:{port}")
dist.init_process_group("gloo", init_method="env://")
store = dist.TCPStore("127.0.0.1", 29500, 2, True)  #~ PTM403
parser.add_argument("--dist-url", default="tcp://224.66.41.62:23456")
sampler = DS(ds)  #~ PTM401 PTM406
model = DDP(net)
for epoch in range(10):
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
    print("epoch", epoch)  #~ PTM410
    torch.save(model.state_dict(), "m.pt")  #~ PTM410 PTM411
    torch.save({"model": model.state_dict(), "epoch": epoch}, "m.pt")  #~ PTM410 PTM411
    state = {"m": model.state_dict()}  #~ PTM411
    torch.save(state, "x.pt")  #~ PTM410
    torch.save(model, "x.pt")  #~ PTM410 PTM411
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "m.pt")
        dist.barrier()  #~ PTM409
        all_reduce(x)  #~ PTM409
    if gr() == 0:
        dist.all_gather(xs, x)  #~ PTM409
    if rank != 0:
        continue
    print("hi")
    dist.broadcast(x, 0)  #~ PTM409
# ====== 2
# only PTM4
import torch
import torch.distributed as dist
def is_main():
    return dist.get_rank() == 0
def save():
    if not is_main():
        return
    dist.barrier()  #~ PTM409
    torch.save(x, "a.pt")
def reduce_all(t):
    dist.all_reduce(t)
def main():
    dist.init_process_group("nccl")
    master = dist.get_rank() == 0
    if master:
        reduce_all(t)  #~ PTM409
        dist.reduce(t, 0)  #~ PTM409
    if int(os.environ["RANK"]) == 0:
        dist.barrier()  #~ PTM409
    if torch.distributed.is_initialized():
        dist.barrier()
    if world_size > 1:
        dist.barrier()
    if args.distributed:
        dist.all_reduce(t)
    if dist.get_rank() == 0:
        dist.send(t, 1)
    else:
        dist.recv(t, 0)
    if rank == 0:
        work = dist.all_reduce(t, async_op=True)  #~ PTM409
        work.wait()
    h = dist.isend(t, 1)  #~ PTM416
    dist.irecv(t, 1)  #~ PTM416
    r = dist.irecv(t)
    r.wait()
    rs = []
    rs.append(dist.isend(t, 1))
    for q in rs:
        q.wait()
    dist.isend(t, 1).wait()
    ops = dist.all_reduce(t, async_op=True)  #~ PTM416
    reqs = [dist.isend(t, i) for i in range(3)]  #~ PTM416
    self.h = dist.all_reduce(t, async_op=True)
    dist.all_reduce(t, async_op=False)
# ====== 3
# only PTM4
import torch
import torch.distributed as dist
def g():
    pending = dist.irecv(t)  #~ PTM416
    print(t)
def g2():
    pending = dist.irecv(t)
    return pending
def g3():
    pending = 3
    print(pending)
# ====== 4 Lightning
# only PTM4
import lightning as L
from lightning.pytorch import LightningModule, Trainer
import lightning.pytorch as pl
import torch, torchmetrics
from torchmetrics import Accuracy
from torch.utils.data import DataLoader, WeightedRandomSampler
class Base(L.LightningModule):
    pass
class M(Base):
    def __init__(self):
        super().__init__()
        self.acc = Accuracy(task="binary")
        self.best = 0.0
    def training_step(self, batch, batch_idx):
        loss = self.step(batch)
        self.log("train_loss", loss)
        self.log("train_loss", loss, sync_dist=True)  #~ PTM407
        self.log_dict({"a": loss}, on_step=True, sync_dist=True)  #~ PTM407
        self.log("a", loss, on_step=False, on_epoch=True, sync_dist=True)
        self.log("a", loss, sync_dist=False)
        if self.trainer.is_global_zero:
            self.log("b", loss, sync_dist=True)  #~ PTM407 PTM408
        if self.global_rank == 0:
            self.log("b", loss, on_step=False, on_epoch=True, sync_dist=True)  #~ PTM408
        if loss > 3:
            self.log("c", loss, sync_dist=True)  #~ PTM407 PTM408
        if batch_idx % 10 == 0:
            self.log("d", loss)
        return loss
    def validation_step(self, batch, batch_idx):
        loss = self.step(batch)
        self.log("val_loss", loss)  #~ PTM402
        self.log("val_loss", loss, on_epoch=True, prog_bar=True)  #~ PTM402
        self.log_dict({"val_loss": loss, "x": loss})  #~ PTM402
        self.log("val_loss", loss, sync_dist=True)
        self.log("val_acc", self.acc)
        self.log("val_acc", self.acc(loss, loss))  #~ PTM402
        self.log("best", self.best)
        self.log_dict(self.metrics)
        self.log_dict({"acc": self.acc})
        self.log("v", loss, sync_dist=self.hparams.sync)
        self.shared("val", loss)
        x, y = batch
        if y.sum() > 0:
            self.log("p", loss, sync_dist=True)  #~ PTM408
        if len(y) > 3:
            self.log("p", loss, sync_dist=True)
        if batch_idx == 0:
            self.log("p", loss, sync_dist=True)
        if stage == "fit":
            self.log("p", loss, sync_dist=True)
    def shared(self, name, loss):
        self.log(f"{name}_x", loss)  #~ PTM402
    def test_step(self, batch, batch_idx):
        loss = self.step(batch)
        self.log("test_loss", loss, logger=True)  #~ PTM402
    def on_validation_epoch_end(self):
        avg = torch.stack(self.outs).mean()
        self.log("avg", avg)  #~ PTM402
        self.log("acc", self.acc.compute())
        self.log("lr", self.lr)
    def val_dataloader(self):
        return DataLoader(self.val, shuffle=True)  #~ PTM404
    def test_dataloader(self):
        return DataLoader(self.test, batch_size=3, drop_last=True)  #~ PTM405
    def train_dataloader(self):
        return DataLoader(self.train_set, sampler=WeightedRandomSampler(w, 10))
trainer = pl.Trainer(accelerator="gpu", devices=2)  #~ PTM417
t2 = L.Trainer(devices=-1)  #~ PTM417
t3 = Trainer(devices=1)
t4 = Trainer(strategy="ddp")  #~ PTM417
t5 = Trainer(devices=4, use_distributed_sampler=False)
t6 = Trainer(gpus=2, strategy="ddp", replace_sampler_ddp=False)
t7 = Trainer(devices="auto")  #~ PTM417
t8 = Trainer(max_epochs=3)
# ====== 5 data
# only PTM4
import torch
import numpy as np
import random
from torch.utils.data import DataLoader, Dataset, random_split, RandomSampler
from torch.utils import data
val = DataLoader(val_ds, 32, True)  #~ PTM404
test_loader = data.DataLoader(test_ds, shuffle=True)  #~ PTM404
loader = {"val": DataLoader(x, shuffle=True)}  #~ PTM404
loaders = {x: DataLoader(ds[x], shuffle=True) for x in ["train", "val"]}
validation_loader = DataLoader(ds, shuffle=False, drop_last=True)  #~ PTM405
train_loader = DataLoader(ds, shuffle=True, drop_last=True)
eval_dl = DataLoader(ds, sampler=RandomSampler(ds))  #~ PTM404
latest_loader = DataLoader(ds, shuffle=True)
contest = DataLoader(ds, shuffle=True)
a, b = random_split(ds, [1, 2])  #~ PTM414
a, b = data.random_split(ds, [1, 2], torch.Generator().manual_seed(0))
class D(Dataset):
    def __getitem__(self, i):
        a = np.random.rand()  #~ PTM415
        b = np.random.default_rng().random()
        if random.random() < 0.5:
            pass
        rng = np.random.RandomState(i)
        c = rng.rand()
        return self.aug(a)
    def aug(self, x):
        return x + np.random.normal()  #~ PTM415
    def __init__(self):
        np.random.shuffle(self.idx)
class E(D):
    def __getitem__(self, i):
        return np.random.choice(3)  #~ PTM415
# ====== 6 dp, bn
# only PTM4
import torch
from torch import nn
from torch.nn import DataParallel as DP
from torch.nn.parallel import DistributedDataParallel
model = DP(net)  #~ PTM412
model = nn.DataParallel(net).cuda()  #~ PTM412
torch.save(model.state_dict(), "x.pt")  #~ PTM410 PTM411
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(3)
m = DistributedDataParallel(Net())  #~ PTM413
n = Net().cuda()
n = DistributedDataParallel(n, device_ids=[r])  #~ PTM413
n.save("x")
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(3))
class Big(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = Block()
k = DistributedDataParallel(Big())  #~ PTM413
# ====== 7 world
# only PTM4
import torch, os
import torch.distributed as dist
ws = dist.get_world_size()
args.batch_size = args.batch_size // args.world_size  #~ PTM418
args.batch_size //= ws  #~ PTM418
lr = args.lr * ws  #~ PTM418
lr = 0.1 * dist.get_world_size()  #~ PTM418
lr = args.lr * args.batch_size * dist.get_world_size() / 256  #~ PTM418
bs = int(args.batch_size / ngpus_per_node)  #~ PTM418
bs = args.batch_size // int(os.environ["WORLD_SIZE"])  #~ PTM418
batch_size = args.batch_size * torch.cuda.device_count()  #~ PTM418
total = args.batch_size * world_size
n = len(ds) // world_size
loss = loss / world_size
opt = torch.optim.SGD(p, lr=1e-3 * world_size)  #~ PTM418
# ====== 8 saving with guards
# only PTM4
# nothing to find
import torch
import torch.distributed as dist
from utils import is_main_process
dist.init_process_group("nccl")
def save(x):
    torch.save(x, "a")
def main(args):
    for epoch in range(3):
        for x, y in loader:
            loss = crit(model(x), y)
            loss.backward()
        if is_main_process():
            save(x)
            print("x")
        if args.rank in (0, -1):
            print("x")
        if not args.distributed or args.rank == 0:
            torch.save(x, "a")
        if dist.get_rank():
            continue
        print("zzz")
# ====== 9 tcp etc
# only PTM4
import torch
import horovod.torch as hvd
hvd.init()
if hvd.rank() == 0:
    torch.save(model.state_dict(), "m")
    hvd.allreduce(x)  #~ PTM409
torch.save(model.state_dict(), "m")  #~ PTM410
hvd.allreduce(x)

# ====== 10
# only PTM4
import lightning.pytorch as pl
class M(pl.LightningModule):
    def _shared(self, batch, stage):
        loss = self.loss(batch)
        if stage == "train":
            self.log("loss", loss)
        self.log("train_x", loss)
        if self.training:
            self.log("y", loss)
        else:
            self.log("y", loss)  #~ PTM402
        if stage == "val":
            self.log("loss", loss)  #~ PTM402
        self.log(f"{stage}_loss", loss)  #~ PTM402
        return loss
    def training_step(self, batch, i):
        return self._shared(batch, "train")
    def validation_step(self, batch, i):
        return self._shared(batch, "val")
# ====== logs of callbacks and of self by other names
# only PTM402
import pytorch_lightning as pl
class Extra(pl.Callback):
    def on_validation_epoch_end(self, trainer, pl_module):
        pl_module.log("a", computed(trainer))  #~ PTM402
        trainer.logger.log("a", 1.0)
    def on_train_epoch_end(self, trainer, pl_module):
        pl_module.log("a", 1.0)
class Net(pl.LightningModule):
    def validation_step(self, batch, batch_idx):
        m = self
        m.log("a", self.loss(batch))  #~ PTM402
        super().log("a", self.loss(batch))  #~ PTM402
        self.log_dict({"a": batch})
    def log_dict(self, values):
        super().log_dict(values, sync_dist=True)
