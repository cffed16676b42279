# ====== 1
# only PTM3
import torch
import torch.nn as nn
import torch.nn.functional as F
from tqdm import tqdm
def train(model, loader, opt, crit):
    total = 0.0
    accs = []
    bar = tqdm(loader)
    for step, (x, y) in enumerate(bar):
        out = model(x)
        loss = crit(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()  #~ PTM301
        total = total + loss.item() * x.size(0)  #~ PTM301
        accs.append((out.argmax(1) == y).float().mean().item())  #~ PTM301
        accs.append(out.detach().cpu().numpy())  #~ PTM304
        preds = out.argmax(dim=1).tolist()  #~ PTM305
        p = out.cpu()  #~ PTM303
        pp = out.to("cpu")  #~ PTM303
        v = float(loss)  #~ PTM306
        w = int(out.argmax())  #~ PTM306
        b = bool((out > 0).all())  #~ PTM306
        if loss > 10:  #~ PTM307
            pass
        if torch.isnan(loss):  #~ PTM307
            pass
        if torch.isnan(loss).any():  #~ PTM307
            break
        while loss > 3:  #~ PTM307
            pass
        z = 1 if loss > 2 else 0  #~ PTM307
        assert loss > 0  #~ PTM307
        print(loss)  #~ PTM308
        print(f"{step} {loss}")  #~ PTM308
        print("loss %f" % loss)  #~ PTM308
        print("loss {}".format(loss))  #~ PTM308
        print("loss", loss.item())  #~ PTM301
        bar.set_postfix(loss=loss.item())  #~ PTM301
        bar.set_postfix(loss=loss)  #~ PTM308
        bar.set_postfix({"loss": loss.item()})  #~ PTM301
        torch.cuda.empty_cache()  #~ PTM309
        torch.cuda.synchronize()  #~ PTM310
        writer.add_scalar("loss", loss, step)  #~ PTM308
        writer.add_scalar("loss", loss.item(), step)  #~ PTM301
        if step % 100 == 0:
            print(loss.item())
        if not step % 100:
            print(loss.item())
        if (step + 1) % args.log == 0 and rank == 0:
            print(loss.item())
        if rank == 0:
            print(loss.item())  #~ PTM301
        if step > 0 and step % 10 == 0:
            print(loss.item())
        n = x.shape[0]
        k = int(x.size(0))
        m = float(step)
    print(total)
# ====== 2
# only PTM3
import torch as t
from torch.utils.data import DataLoader
def accuracy(out, y):
    return (out.argmax(1) == y).sum().item()  #~ PTM301
def helper(out):
    return out.norm().item()
class Meter:
    def update(self, v):
        self.s += v
class Trainer:
    def __init__(self):
        self.train_loader = DataLoader(ds)
        self.model = Net()
    def train(self):
        for epoch in range(10):
            for batch in self.train_loader:
                self.step(batch)
            print(self.model.weight.norm().item())
            self.report()
    def step(self, batch):
        x, y = batch
        out = self.model(x)
        loss = self.loss_fn(out, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.meter.update(loss.item())  #~ PTM301
        acc = accuracy(out, y)
    def report(self):
        print(self.total.item())
    def evaluate(self):
        self.model.eval()
        with t.no_grad():
            for x, y in self.val_loader:
                out = self.model(x)
                self.correct += accuracy(out, y)
                self.losses += [self.loss_fn(out, y).item()]  #~ PTM301
print(helper(t.zeros(3)))
# ====== 3
# only PTM3
import torch
@torch.no_grad()
def evaluate(net, dl):
    tot = 0
    for x, y in dl:
        out = net(x)
        _, pred = torch.max(out, 1)
        tot += (pred == y).sum().item()  #~ PTM301
        tot += (pred == y).sum().cpu().numpy()  #~ PTM304
        ys.extend(pred.cpu().tolist())  #~ PTM305
        ys.append(pred.cpu())  #~ PTM303
    return tot
@torch.inference_mode()
def ev2(net, dl):
    ys = [net(x).cpu() for x in dl]  #~ PTM303
    zs = [net(x).argmax().item() for x, _ in dl]  #~ PTM301
    tot = sum(net(x).sum().item() for x in dl)  #~ PTM301
    ok = [a.item() for a in ys]
    return ys
# ====== 4
# only PTM3
import pytorch_lightning as pl
import torch
class M(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self(x), y)
        self.log("loss", loss.item())  #~ PTM301
        if batch_idx % 50 == 0:
            print(loss.item())
        if self.global_step % 50 == 0:
            print(loss.item())
        print(loss)  #~ PTM308
        torch.cuda.empty_cache()  #~ PTM309
        self.h(loss)
        self.losses.append(loss)  #~ PTM311
        return loss
    def h(self, loss):
        return loss.cpu()  #~ PTM303
    def validation_step(self, batch, batch_idx):
        x, y = batch
        out = self(x)
        acc = (out.argmax(1) == y).float().mean().item()  #~ PTM301
        self.outs.append(out.cpu())  #~ PTM303
        if acc > 3:
            pass
    def validation_epoch_end(self, outs):
        print(torch.stack(outs).mean().item())
    def on_train_epoch_end(self):
        print(self.total.item())
# ====== 5
# only PTM3
import torch
losses = []
for epoch in range(10):
    running = 0
    for x, y in train_loader:
        loss = criterion(model(x), y)
        loss.backward()
        running += loss  #~ PTM311
        running = running + loss  #~ PTM311
        losses.append(loss)  #~ PTM311
        losses += [loss]  #~ PTM311
        hist["loss"].append(loss)  #~ PTM311
        running += loss.data
        running += loss.detach()
        running += float(loss)  #~ PTM306
        losses.append(loss.item())  #~ PTM301
        loss_meter.update(loss.data[0])
        optimizer.step()
    print(running.item())
# ====== 6 accumulating loss is backwarded
# only PTM3
# nothing to find
import torch
for x, y in loader:
    total = 0
    for t in range(5):
        loss = criterion(model(x[t]), y[t])
        total += loss
        total = total + loss
    total.backward()
    opt.step()
# ====== 7 sampled, not training
# only PTM3
# nothing to find
import torch
model = torch.load("m.pt", map_location="cpu")
for path in paths:
    x = read(path)
    print(x.item())
for p in model.parameters():
    print(p.norm().item())
params = [p.numel() for p in model.parameters()]
# ====== 8 manual batches
# only PTM3
import torch
for it in range(max_iters):
    xb, yb = get_batch("train")
    logits, loss = model(xb, yb)
    loss.backward()
    optimizer.step()
    lossf = loss.item()  #~ PTM301
    if it % 100 == 0:
        lossf = loss.item()
    if it % 100 != 0:
        continue
    print(loss.item())
while True:
    loss = model(get())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    x = loss.item()  #~ PTM301
    if step == 10:
        break
# ====== 9 accelerate / fabric
# only PTM3
import torch
from accelerate import Accelerator
accelerator = Accelerator()
for batch in train_dataloader:
    loss = model(**batch).loss
    accelerator.backward(loss)
    optimizer.step()
    total += loss.item()  #~ PTM301
    total2 += loss.detach().float()
    print(loss.cpu().item())  #~ PTM301
# ====== 10 closures, lambdas
# only PTM3
import torch
for x, y in loader:
    def closure():
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        return loss
    loss = optimizer.step(closure)
    print(loss.item())  #~ PTM301
# ====== 11 host values
# only PTM3
import torch
import numpy as np
for x, y in loader:
    lab = y.numpy()
    n = np.mean(lab).item()
    ids = x.tolist()
    x = x.cuda()
    out = model(x)
    loss = criterion(out, y)
    loss.backward()
    a = np.asarray(z).mean().item()
    b = x.cpu()  #~ PTM303
    lr = scheduler.get_last_lr()[0]

    for k in d.items():
        pass
# ====== 12 first batch only / debugging
# only PTM3
import torch
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    loss.backward()
    if i == 0:
        print(loss.item())
    if not math.isfinite(loss.item()):  #~ PTM301
        print("Loss is", loss.item())
        sys.exit(1)
    try:
        pass
    except RuntimeError:
        print(loss.item())
