# ====== 1
# only PTM5 PTM6
import torch
from torch.utils.data import DataLoader, TensorDataset
import torch.utils.data as D
a = DataLoader(ds, batch_size=3)  #~ PTM501
b = D.DataLoader(ds, 3, True, num_workers=0)  #~ PTM501
c = torch.utils.data.DataLoader(ds, 3, True, None, None, 0)  #~ PTM501
d = DataLoader(TensorDataset(x, y), 3)
e = DataLoader(ds, num_workers=4)
f = DataLoader(ds, num_workers=args.workers)
g = DataLoader(ds, **kw)
opt.zero_grad(set_to_none=False)  #~ PTM505
opt.zero_grad(False)  #~ PTM505
model.zero_grad(set_to_none=True)
for x, y in e:
    x = x.to("cuda")
    loss = crit(model(x), y)
    loss.backward()
# ====== 2
# only PTM5
import torch
from torch.utils.data import DataLoader
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
train_loader = DataLoader(ds, num_workers=4)  #~ PTM503
val_loader = DataLoader(ds, num_workers=4, pin_memory=False)  #~ PTM503
for epoch in range(3):
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        loss = crit(model(x), y)
        loss.backward()
        opt.step()
# ====== 3
# only PTM5
import torch
from torch.utils.data import DataLoader
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
train_loader = DataLoader(ds, num_workers=4, pin_memory=True)
for epoch in range(3):
    for x, y in train_loader:
        x, y = x.to(device), y.cuda()  #~ PTM504
        loss = crit(model(x), y)
        loss.backward()
        opt.step()
        z = loss.to(device)
    for batch in train_loader:
        x = batch["image"].to(device)  #~ PTM504
        y = batch[1].to(device=device)  #~ PTM504
        w = batch[2].to(device, non_blocking=True)
        batch = {k: v.to(device) for k, v in batch.items()}  #~ PTM504
        batch = [b.to(device) for b in batch]
        loss = crit(model(x), y)
        loss.backward()
        opt.step()
# ====== 4
# only PTM5
import torch
from torch import multiprocessing as mp
from torch.utils.data import DataLoader
def work(rank):
    a = DataLoader(ds, num_workers=16)  #~ PTM502
    b = DataLoader(ds, num_workers=args.n)  #~ PTM502
    c = DataLoader(ds, num_workers=4, persistent_workers=True)
if __name__ == "__main__":
    mp.spawn(work, nprocs=8)
# ====== 5
# only PTM6
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch.autograd import Variable as V
from torch import autograd
from torch.cuda.amp import autocast, GradScaler
import torch.cuda.amp as amp
x = Variable(x)  #~ PTM601
x = V(x, requires_grad=True)  #~ PTM601
x = autograd.Variable(x)  #~ PTM601
x = torch.autograd.Variable(x, volatile=True)  #~ PTM601 PTM609
y = Variable(torch.zeros(3)).cuda()  #~ PTM601
isinstance(x, Variable)
l = nn.MSELoss(size_average=False)  #~ PTM602
l = nn.CrossEntropyLoss(weight, False)  #~ PTM602
l = F.cross_entropy(x, y, reduce=False)  #~ PTM602
l = F.nll_loss(x, y, size_average=args.avg)  #~ PTM602
a = loss.data[0]  #~ PTM604
b = losses["x"].data[0]  #~ PTM604
c = total_loss.data[0]  #~ PTM604
d = w.data[0]
e = err_G.data[0]  #~ PTM604
with autocast():  #~ PTM605
    pass
with torch.cuda.amp.autocast(enabled=False):  #~ PTM605
    pass
@autocast()  #~ PTM605
def fwd(x):  
    pass
@amp.custom_fwd  #~ PTM605
def fw(x):
    pass
s = GradScaler()  #~ PTM605
s = amp.GradScaler(enabled=True)  #~ PTM605
s = torch.amp.GradScaler("cuda")
with torch.autocast("cuda"):
    pass
torch.nn.utils.clip_grad_norm(p, 1)  #~ PTM606
nn.init.xavier_normal(w)  #~ PTM606
nn.init.constant(w, 0)  #~ PTM606
F.softmax(x)  #~ PTM607
nn.Softmax()  #~ PTM607
F.softmax(x, dim=1)
F.sigmoid(x)
parser.add_argument("--local_rank", type=int)  #~ PTM608
