# ====== 1
# only PTM1 PTM6
import torch
nn = torch.nn
F = nn.functional
Module = nn.Module
DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"  #~ PTM101
DEV = torch.device(DEVICE)
class Enc(Module):
    def __init__(self, dim):
        Module.__init__(self)
        self.freqs = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))  #~ PTM105
        self.mask = torch.triu(torch.ones(3, 3))  #~ PTM105
        self.register_parameter("w", nn.Parameter(torch.ones(1)))
        self.h = None
        self.idx = torch.stack([torch.arange(3), torch.arange(3)])  #~ PTM105
    def init_hidden(self, b):
        return torch.zeros(1, b, 3)
    def forward(self, x, h=None):
        if h is None:
            h = torch.zeros(1, x.size(0), 3)  #~ PTM104
        out = self.attn(x.to(DEV))  #~ PTM103
        rng = range(3)
        oh = F.one_hot(torch.arange(0, 5) % 3, num_classes=5)  #~ PTM104
        loss = F.cross_entropy(out, torch.zeros(3).long())  #~ PTM104
        return torch.cat([out, torch.zeros(2, 3)], 0)  #~ PTM104
with torch.device("cuda"):  #~ PTM101
    m = Enc(3)
model = Enc(3); model.to("cuda", torch.float16)  #~ PTM101
opt = torch.optim.Adam(model.cuda().parameters())  #~ PTM101
batch = tuple(t.cuda() for t in batch)  #~ PTM101
t = torch.as_tensor(x, device="cuda")  #~ PTM101
a = torch.from_numpy(x).float().cuda(non_blocking=True)  #~ PTM101
ck = torch.load("c.pt", weights_only=False)["model"]  #~ PTM109
ck = torch.hub.load("a", "b")
ck = torch.jit.load("m.pt")
torch.set_default_tensor_type("torch.cuda.HalfTensor")  #~ PTM108
v = torch.autograd.Variable(torch.ones(1), requires_grad=True)  #~ PTM601
crit = nn.BCELoss(reduce=False, size_average=True)  #~ PTM602
# ====== 2
# only PTM3
import torch
def train_one_epoch(model, data_loader, optimizer, device, epoch, print_freq, scaler=None):
    metric_logger = MetricLogger()
    for images, targets in metric_logger.log_every(data_loader, print_freq, header):
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        loss_value = losses.item()  #~ PTM301
        if not math.isfinite(loss_value):
            print(loss_dict)
            sys.exit(1)
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        metric_logger.update(loss=losses.item())  #~ PTM301
        acc = (out.max(1)[1] == targets).sum().item() / len(targets)  #~ PTM301
        x = [l.item() for l in loss_dict.values()]  #~ PTM301
        d = {k: v.item() for k, v in loss_dict.items()}  #~ PTM301
        total_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        norms.append(total_norm.item())  #~ PTM301
        if step and step % print_freq == 0:
            print(losses.item())
        if args.verbose:
            print(losses.item())  #~ PTM301
        if (step + 1) % accum == 0 or step + 1 == len(data_loader):
            optimizer.step()
            print(losses.item())
        pbar.set_description(f"loss {losses.item():.3f}")  #~ PTM301
        wandb.log({"loss": losses.item()})  #~ PTM301
        torch.cuda.current_stream().synchronize()
        with torch.cuda.stream(s):
            pass
# ====== 3
# only PTM3
import torch
def main():
    for epoch in range(5):
        train_iter = iter(train_loader)
        for _ in range(len(train_loader)):
            batch = next(train_iter)
            loss = net(batch).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running_loss += loss.item()  #~ PTM301
        print(running_loss)
        val_loss = 0
        for batch in val_loader:
            with torch.no_grad():
                val_loss += net(batch).mean().item()  #~ PTM301
        best = min(best, val_loss)
        scheduler.step(val_loss)
        print(loss.item())
    while step < max_steps:
        for batch in loader:
            loss = compute(batch)
            loss.backward()
            opt.step()
            step += 1
            logger.info("loss %s", loss.item())  #~ PTM301
            if step >= max_steps: break
# ====== 4
# only PTM413 PTM406 PTM416 PTM110 PTM417
import torch
import torchvision
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torchvision import models
from torchvision.models import resnet50
net = resnet50()
net = DDP(net)  #~ PTM413
n2 = DDP(models.resnet18(pretrained=True).cuda())  #~ PTM413
n3 = DDP(torchvision.models.vit_b_16())
n4 = DDP(torch.nn.Sequential(torch.nn.BatchNorm1d(3)))  #~ PTM413
w = dist.isend(t, 1)
w.wait()
works = []
for i in range(3):
    works += [dist.irecv(t, i)]
for w in works: w.wait()
dist.irecv(tensor=t, src=0)  #~ PTM416
handle = dist.reduce_scatter_tensor(o, i, async_op=True)  #~ PTM416
