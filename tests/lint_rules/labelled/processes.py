# ====== 1 lambdas with default args etc
# only PTM2 PTM4
import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, random_split
class DM(pl.LightningDataModule):
    def __init__(self):
        super().__init__()
        self.transform = lambda x: x  #~ PTM201
    def setup(self, stage):
        self.train_set, self.val_set = random_split(full, [1, 2])  #~ PTM414
    def train_dataloader(self):
        return DataLoader(self.train_set, shuffle=True, num_workers=2)
    def val_dataloader(self):
        return DataLoader(self.val_set, shuffle=True, num_workers=2)  #~ PTM404
    def test_dataloader(self):
        return [DataLoader(d, shuffle=True, num_workers=2) for d in self.sets]  #~ PTM404
    def predict_dataloader(self):
        return DataLoader(self.p, shuffle=False, num_workers=2)
class M(pl.LightningModule):
    @torch.no_grad()
    def on_validation_epoch_end(self):
        loss = self.total / self.n
        self.log("val", loss)  #~ PTM402
        if self.trainer.global_rank == 0:
            self.all_gather(loss)  #~ PTM409
        self.trainer.strategy.barrier()
        if self.trainer.is_global_zero:
            self.trainer.strategy.barrier()  #~ PTM409
            print("x")
            self.log("z", loss, rank_zero_only=True)
# ====== 2 accelerate
# only PTM4
from accelerate import Accelerator
import torch
accelerator = Accelerator()
for batch in loader:
    loss = model(batch)
    accelerator.backward(loss)
    if accelerator.is_main_process:
        accelerator.wait_for_everyone()  #~ PTM409
        torch.save(accelerator.unwrap_model(model).state_dict(), "x")
accelerator.wait_for_everyone()
# ====== 3 world in functions, dist guards variants
# only PTM4
import os
import torch
import torch.distributed as dist
RANK = int(os.environ.get("RANK", -1))
LOCAL_RANK = int(os.getenv("LOCAL_RANK", -1))
def f(args):
    dist.init_process_group("nccl")
    if RANK in {-1, 0}:
        torch.save(x, "a.pt")
    if RANK != -1:
        dist.broadcast(x, 0)
    if LOCAL_RANK == 0:
        dist.all_reduce(x)  #~ PTM409
    with torch_distributed_zero_first(LOCAL_RANK):
        ds = make()
    if not dist.get_rank():
        dist.barrier()  #~ PTM409
    is_main = dist.get_rank() == 0
    if is_main and epoch % 2 == 0:
        dist.gather(x)  #~ PTM409
    if args.rank % args.ngpus == 0:
        torch.save(x, "b.pt")
    torch.save(x, "c.pt")  #~ PTM410
    if args.world_size > 1 and dist.get_rank() == 0:
        torch.save(x, "d.pt")
    assert dist.get_rank() == 0 or dist.get_world_size() > 1
    y = dist.all_reduce(x) if dist.get_rank() == 0 else None  #~ PTM409
def g():
    match dist.get_rank():
        case 0:
            dist.barrier()  #~ PTM409
# ====== 4 set_epoch variants
# only PTM406
import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
def main():
    train_sampler = DistributedSampler(train_set) if distributed else None  #~ PTM406
    test_sampler = DistributedSampler(test_set, shuffle=False)
    loader = DataLoader(train_set, sampler=train_sampler)
    for epoch in range(3):
        for x in loader:
            step(x)
# ====== 5 zero_grad, DataParallel attr
# only PTM4 PTM5
import torch
from torch import nn
class T:
    def __init__(self, net):
        self.model = nn.DataParallel(net)  #~ PTM412
    def save(self):
        torch.save(self.model.state_dict(), "x")  #~ PTM411
    def step(self):
        for p in self.params:
            p.zero_grad(set_to_none=False)  #~ PTM505
