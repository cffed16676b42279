# ====== 1 good DDP script
# only PTM
import argparse
import os
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

def setup():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))  #~ PTM106

def save_checkpoint(state, path):
    if dist.get_rank() == 0:
        torch.save(state, path)

class Trainer:
    def __init__(self, model, loader, optimizer):
        self.gpu_id = int(os.environ["LOCAL_RANK"])
        self.model = DDP(model.to(self.gpu_id), device_ids=[self.gpu_id])
        self.loader = loader
        self.optimizer = optimizer

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        output = self.model(source)
        loss = nn.functional.cross_entropy(output, targets)
        loss.backward()
        self.optimizer.step()

    def _run_epoch(self, epoch):
        b_sz = len(next(iter(self.loader))[0])
        print(f"[GPU{self.gpu_id}] Epoch {epoch} | Batchsize: {b_sz}")
        self.loader.sampler.set_epoch(epoch)
        for source, targets in self.loader:
            source = source.to(self.gpu_id, non_blocking=True)
            targets = targets.to(self.gpu_id, non_blocking=True)
            self._run_batch(source, targets)

    def _save(self, epoch):
        ckp = self.model.module.state_dict()
        torch.save(ckp, "checkpoint.pt")

    def train(self, max_epochs):
        for epoch in range(max_epochs):
            self._run_epoch(epoch)
            if self.gpu_id == 0 and epoch % 3 == 0:
                self._save(epoch)

def main():
    setup()
    ds = make()
    loader = DataLoader(ds, batch_size=32, pin_memory=True, num_workers=2, shuffle=False, sampler=DistributedSampler(ds))  #~ PTM401
    trainer = Trainer(nn.Linear(2, 2), loader, torch.optim.SGD([], 1e-3))
    trainer.train(3)
    dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    main()
# ====== 2 device choice helpers
# only PTM1
# nothing to find
import torch
def pick_device(name=None):
    if name:
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
def parse():
    parser.add_argument("--device", default="cuda:0", help="cuda")
    return parser.parse_args()
class Config:
    device: str = "cuda"
def autocast_ctx(device):
    return torch.autocast(device_type=device.type, enabled=device.type == "cuda")
is_cuda = device.type == "cuda"
assert x.device == torch.device("cuda:0")
torch.testing.assert_close(x.to("cpu"), y.cpu())
rng = torch.Generator(device="cpu")
ids = [torch.device(f"cuda:{i}") for i in range(torch.cuda.device_count())]
state = torch.load(path, map_location=device)
x = x.to(dtype=torch.float32)
z = torch.zeros(3).to(x)
df = df.to("csv")
if device == "cuda":
    torch.backends.cudnn.benchmark = True
# ====== 3 modules good
# only PTM1
# nothing to find
import torch
from torch import nn
class PosEnc(nn.Module):
    def __init__(self, d):
        super().__init__()
        pe = torch.zeros(10, d)
        position = torch.arange(0, 10).unsqueeze(1)
        pe[:, 0::2] = torch.sin(position)
        self.register_buffer("pe", pe)
        self.scale = nn.Parameter(torch.ones(1))
        self.dim = torch.tensor(d).item()
        self.device_ = None
        mask = torch.tril(torch.ones(3, 3))
        self.bias: torch.Tensor
        self.drop = nn.Dropout(0.1)
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        self.betas = nn.Parameter(torch.linspace(0, 1, 3), requires_grad=False)
        nn.init.constant_(self.scale, 1)
    def forward(self, x):
        b, t = x.shape
        pos = torch.arange(0, t, dtype=torch.long, device=x.device)
        mask = torch.full((t, t), float("-inf"), device=x.device)
        idx = torch.randint(0, b, (b,)).tolist()
        perm = torch.randperm(b)[:3].to(x.device)
        if torch.rand(1) < 0.5:
            x = -x
        n = torch.tensor(3.0)
        z = torch.zeros(b, t, dtype=x.dtype)
        z = z.to(x)
        cu = torch.zeros_like(x)
        lens = torch.tensor([t] * b, device=x.device)
        return x + self.pe[:t]
    def reset_parameters(self):
        with torch.no_grad():
            self.scale.copy_(torch.ones(1))
class Sampler(nn.Module):
    @torch.no_grad()
    def sample(self, n):
        z = torch.randn(n, 3).to(next(self.parameters()).device)
        return self(z)
# ====== 4 pickling good
# only PTM2
# nothing to find
import torch
import threading
from functools import partial
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as T
def scale(x, by):
    return x * by
class Ds(Dataset):
    LABELS = {"a": 1}
    def __init__(self, path, transform=None, target_transform=None):
        self.path = path
        self.transform = transform
        self.file = None
        self.len = sum(1 for _ in open(path))
        with open(path) as f:
            self.index = {k: v for k, v in enumerate(f)}
        self.items = sorted(self.index, key=lambda k: self.index[k])
        self.best = max(self.items, key=lambda x: x)
    def _open(self):
        if self.file is None:
            self.file = open(self.path)
    def __getitem__(self, i):
        self._open()
        return list(filter(lambda v: v, self.items))
class Plain:
    def __init__(self):
        self.lock = threading.Lock()
        self.cb = lambda x: x
def main():
    tf = T.Compose([T.ToTensor(), T.Lambda(partial(scale, by=2))])
    loader = DataLoader(Ds("x", transform=tf), num_workers=4, collate_fn=torch.utils.data.default_collate)
    optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), 0.1)
    for b in loader:
        model(b)
if __name__ == "__main__":
    main()
# ====== 5 distributed good
# only PTM4
# nothing to find
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, random_split
torch.manual_seed(0)
def reduce_mean(t, n):
    rt = t.clone()
    dist.all_reduce(rt, op=dist.ReduceOp.SUM)
    return rt / n
def main(args):
    dist.init_process_group(args.backend, init_method=args.url, rank=args.rank, world_size=args.world)
    args.world_size = args.ngpus_per_node * args.world_size
    a, b = random_split(ds, [1, 2])
    val_loader = DataLoader(b, shuffle=False)
    test_loader = DataLoader(b, shuffle=(sampler is None))
    model = torch.nn.parallel.DistributedDataParallel(net)
    loss = reduce_mean(loss, dist.get_world_size())
    samples = len(ds) / dist.get_world_size()
    h = dist.all_reduce(x, async_op=True)
    h.wait()
    if dist.get_rank() == 0:
        print("done")
        torch.save({"m": model.module.state_dict()}, "x")
    if dist.is_initialized() and dist.get_world_size() > 1:
        dist.barrier()
    if args.rank == 0:
        download()
        dist.barrier()
    else:
        dist.barrier()
        download()
    if args.distributed:
        dist.broadcast(x, 0)
    objs = [x] if dist.get_rank() == 0 else [None]
    dist.broadcast_object_list(objs, src=0)
    group = dist.new_group([0, 1])
    if dist.get_rank() in (0, 1):
        dist.all_reduce(x, group=group)
    if rank == 0:
        for i in range(1, world_size):
            dist.send(x, i)
    else:
        dist.recv(x, 0)
    torch.save(x, f"ckpt_{dist.get_rank()}.pt")
    torch.save(x, os.path.join(tmp, f"rank{rank}.pt"))
    lr = args.lr * (0.1 ** (epoch // 30))
    lr = args.lr * args.batch_size / 256
    steps = args.batch_size * args.accum
# ====== 6 speed and idioms good
# only PTM5 PTM6
# nothing to find
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
from torch.autograd import Variable
train = DataLoader(ds, num_workers=args.j, pin_memory=use_cuda)
val = DataLoader(ds, batch_size=2, **kwargs)
one = DataLoader([1, 2, 3])
model.zero_grad(set_to_none=args.none)
def f(x: Variable) -> Variable:
    return isinstance(x, Variable)
w = x.data[0]
out = outputs.data[0]
loss = F.cross_entropy(x, y, reduction="none")
loss = MyLoss(size_average=False)
p = F.softmax(x, 1)
p = F.log_softmax(x, dim=-1)
m = nn.Softmax2d()
init.normal_(w)
a = np.random.normal(0, 1)
b = torch.normal(0.0, 1.0, (2,))
with torch.amp.autocast("cuda"):
    pass
