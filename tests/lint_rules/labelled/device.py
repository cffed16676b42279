# ====== 1
# only PTM1
import torch as t
from torch import cuda, nn, device as Dev
import os as system
from os import environ
from torch.nn.parallel import DistributedDataParallel as DDP2

cuda.set_device(0)  #~ PTM106
t.cuda.set_device(rank)  #~ PTM106
system.environ["CUDA_VISIBLE_DEVICES"] = "0"  #~ PTM107
environ["CUDA_VISIBLE_DEVICES"] = str(gpu)  #~ PTM107
environ.update({"CUDA_VISIBLE_DEVICES": "0"})  #~ PTM107
environ.setdefault("CUDA_VISIBLE_DEVICES", "1")  #~ PTM107
dev = Dev("cuda")  #~ PTM101
dev2 = Dev("cuda", 0)  #~ PTM101
dev3 = Dev("cuda" if cuda.is_available() else "cpu")
dev4 = Dev(type="cuda")  #~ PTM101
dev5 = Dev(f"cuda:{rank}")
dev6 = Dev("cpu")
model = nn.Linear(2, 2).to("cuda")  #~ PTM101
model = nn.Linear(2, 2).to(device="cuda:0")  #~ PTM101
x = t.zeros(3).to(dev)
y = t.zeros(3, device="cuda:1")  #~ PTM101
z = [b.cuda() for b in batch]  #~ PTM101
w = {k: v.to("cuda") for k, v in batch.items()}  #~ PTM101
q = x.cuda(non_blocking=True)  #~ PTM101
t.set_default_tensor_type(t.cuda.FloatTensor)  #~ PTM108
t.set_default_tensor_type("torch.FloatTensor")  #~ PTM108
t.set_default_device("cuda")  #~ PTM108
a = t.load("a.pt")  #~ PTM109
a = t.load("a.pt", map_location="cpu")
a = t.load("a.pt", weights_only=True)  #~ PTM109
a = t.load("a.pt", lambda storage, loc: storage)
a = t.load(f, **kw)
m = DDP2(model, device_ids=[0], output_device=0)  #~ PTM111
m = nn.DataParallel(model, [0, 1])  #~ PTM111
m = nn.DataParallel(model, device_ids=range(4))  #~ PTM111
m = nn.DataParallel(model, device_ids=list(range(t.cuda.device_count())))
m = DDP2(model, device_ids=[args.gpu])
c = t.cuda.FloatTensor(3)  #~ PTM101
c2 = t.cuda.LongTensor([1, 2])  #~ PTM101
d = x.type(t.cuda.FloatTensor)  #~ PTM101
e = x.type("torch.cuda.FloatTensor")  #~ PTM101
if x.device == t.device("cuda"):
    pass
with t.cuda.device(0):  #~ PTM101
    pass
with t.cuda.device(x.device):
    pass
t.zeros(3).pin_memory()
model.load_state_dict(t.load("x.pt")["state"])  #~ PTM109
# ====== 2
# only PTM1
import torch
import torch.nn as nn
device = "cuda" if torch.cuda.is_available() else "cpu"
use_cuda = torch.cuda.is_available()
FloatTensor = torch.cuda.FloatTensor if use_cuda else torch.FloatTensor

class Base(nn.Module):
    pass

class Net(Base):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2).cuda()  #~ PTM103
        self.scale = torch.ones(3)  #~ PTM105
        self.scale2 = torch.ones(3).to(device)  #~ PTM103 PTM105
        self.register_buffer("mean", torch.zeros(3))
        self.anchors = [torch.ones(3), torch.zeros(2)]  #~ PTM105
        self.w = nn.Parameter(torch.ones(3))
        self.n = torch.tensor(3).item()
        self.pos: torch.Tensor = torch.arange(3)  #~ PTM105
        self.a, self.b = torch.ones(1), torch.zeros(2)  #~ PTM105
        self.eps = torch.finfo(torch.float32).eps
        self.list = torch.linspace(0, 1, 10).tolist()
        self.like = torch.zeros_like(self.w)  #~ PTM105
        self.np = torch.from_numpy(arr).float()  #~ PTM105

    def forward(self, x):
        h = torch.zeros(x.size(0), 3)  #~ PTM104
        h = torch.zeros(1, *x.shape[1:])  #~ PTM104
        h = torch.zeros(1, *x.shape[1:], **self.where)
        mask = torch.ones(3, device=x.device)
        n = torch.randn_like(x)
        idx = torch.arange(x.size(1))  #~ PTM104
        e = torch.eye(3).cuda()  #~ PTM103
        g = torch.zeros(3).to(device)  #~ PTM103
        k = torch.zeros(3).type_as(x)
        f = torch.FloatTensor(3, 3)  #~ PTM104
        v = x.new_zeros(3)
        dev = x.device
        u = torch.zeros(3).to(dev)
        r = torch.rand(3).to(self.device)
        s = torch.zeros(3, device="cuda")  #~ PTM101
        l = torch.zeros(3, device=device)  #~ PTM103
        c, d = torch.zeros(3), torch.ones(3)  #~ PTM104
        c = c.to(x.device)
        i, j = torch.zeros(3), torch.ones(3)
        i, j = i.to(x.device), j.to(x.device)
        t = torch.zeros(3)  #~ PTM104
        out = self.layer(x * t)
        self.seen = out.mean().item()
        p = torch.zeros(3)
        q = p.argmax() + 1
        self.at = q.item()
        return self.helper(x)

    def helper(self, x):
        noise = torch.randn(x.shape)  #~ PTM104
        return x + noise

    def reset(self):
        return torch.zeros(3)
# ====== 3
# only PTM1
import torch
from torch import nn
from mylib import BaseModel
class A(BaseModel):
    def forward(self, x):
        m = torch.ones(3)  #~ PTM104
        return x.cuda() * m  #~ PTM103
class Loss(nn.CrossEntropyLoss):
    def forward(self, x, y):
        w = torch.tensor([0.1, 0.9])  #~ PTM104
        return nn.functional.cross_entropy(x, y, w)
class Lit(BaseModel):
    def training_step(self, batch, batch_idx):
        z = torch.randn(3, 4)  #~ PTM104
        x = batch.cuda()  #~ PTM103
        return self.loss(x, z)
# ====== 4
# only PTM1
import torch
import torch.multiprocessing as mp
def worker(rank):
    torch.cuda.set_device(rank)  #~ PTM106
    torch.accelerator.set_device_index(rank)  #~ PTM106
def main():
    model = Net().cuda()  #~ PTM101 PTM110
    torch.cuda.manual_seed(0)
    mp.spawn(worker, args=(model,), nprocs=2)
def main2():
    n = torch.cuda.device_count()
    torch.cuda.init()  #~ PTM110
    ps = [mp.Process(target=worker, args=(i,)) for i in range(n)]
def main3():
    x = torch.zeros(2, device="cuda")  #~ PTM101 PTM110
    mp.spawn(worker, nprocs=2)
def main4():
    device = torch.device("cuda")  #~ PTM101
    x = torch.zeros(2).to(device)  #~ PTM110
    mp.spawn(worker, nprocs=2)
def main5():
    ctx = mp.get_context("fork")
    torch.cuda.get_device_properties(0)  #~ PTM110
    p = ctx.Process(target=worker)
    p.start()
# ====== 5
# only PTM1
import torch
# flags deciding
def get_device(args):
    if args.cuda:
        return torch.device("cuda")
    return torch.device("cpu")
def pick():
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda")
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
device = torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")  #~ PTM101
parser.add_argument("--device", default="cuda")
def f(model, device="cuda"):
    pass
@torch.no_grad()
def ev(model):
    model.cuda()  #~ PTM101
if args.cuda:
    model.cuda()  #~ PTM101
if torch.cuda.is_available():
    model = model.cuda()  #~ PTM101
    torch.cuda.manual_seed_all(0)
cfg = dict(device="cuda")  #~ PTM101
with torch.autocast(device_type="cuda"):
    pass
with torch.autocast("cuda"):
    pass
scaler = torch.amp.GradScaler("cuda")
x.to(torch.float16)
x.to(y)
x.to(memory_format=torch.channels_last)
x.to("cpu")
x.to(0)  #~ PTM101
x.to(device=0)  #~ PTM101
x.cuda(0)  #~ PTM101
x.cuda(args.gpu)  #~ PTM101
x.cuda(rank)  #~ PTM101
