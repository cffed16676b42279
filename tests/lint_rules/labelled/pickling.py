# ====== 1
# only PTM2
import torch
from torch.utils.data import DataLoader as DL, Dataset
import torchvision.transforms as T
import torchvision.transforms.v2 as v2
from torch.optim import lr_scheduler as sched
import functools
l1 = DL(ds, collate_fn=lambda b: b)  #~ PTM201
l2 = DL(ds, 32, True, None, None, 4, lambda b: b)  #~ PTM201
l3 = DL(ds, worker_init_fn=lambda i: seed(i), num_workers=2)  #~ PTM201
tf = T.Compose([T.ToTensor(), T.Lambda(lambda x: x * 2)])  #~ PTM201
data = MyData(root, transform=tf)
tf2 = v2.Lambda(lambda x: x)  #~ PTM201
d2 = MyData(root, transform=v2.Compose([v2.Lambda(lambda x: x)]))  #~ PTM201
d3 = MyDataset(root, transform=lambda img: img / 255)  #~ PTM201
s1 = sched.LambdaLR(opt, lr_lambda=lambda e: 0.9 ** e)  #~ PTM201
s2 = sched.LambdaLR(opt, [lambda e: 1, lambda e: 2])  #~ PTM201
s3 = torch.optim.lr_scheduler.MultiplicativeLR(opt, lambda e: 0.9)  #~ PTM201
ok = sorted(xs, key=lambda x: x[0])
ok2 = list(map(lambda x: x, xs))
ok3 = torch.load("x", map_location=lambda s, l: s)
l4 = DL(ds, collate_fn=functools.partial(collate, 3))
opts = dict(collate_fn=lambda b: b)  #~ PTM201
l5 = DL(ds, **opts)
class Data(Dataset):
    def __init__(self, path, transform=None):
        self.transform = transform or (lambda x: x)  #~ PTM201
        self.target = (lambda y: y) if transform else None  #~ PTM201
        self.table = {"a": lambda x: x}  #~ PTM201
        self.fs = [lambda x: x]  #~ PTM201
        self.sorted = sorted(path, key=lambda p: p.name)
        def pad(x):
            return x
        self.pad = pad  #~ PTM202
    def __getitem__(self, i):
        key = lambda z: z
        return self.transform(i)
class Net(torch.nn.Module):
    act = lambda self, x: x
    def __init__(self):
        super().__init__()
        self.act: object = lambda x: x  #~ PTM201
        self.register_forward_hook(lambda m, i, o: None)  #~ PTM201
def build(n):
    def init_fn(worker_id):
        pass
    f = lambda b: b  #~ PTM201
    a = DL(ds, worker_init_fn=init_fn)  #~ PTM202
    def warm(e):
        return e
    s = sched.LambdaLR(opt, warm)  #~ PTM202
    s = sched.LambdaLR(opt, lr_lambda=[warm])  #~ PTM202
    return DL(ds, collate_fn=f, num_workers=2)
class Lit(torch.nn.Module):
    def train_dataloader(self):
        def collate(b):
            return b
        return DL(self.ds, collate_fn=collate)  #~ PTM202
    def val_dataloader(self):
        return DL(self.ds, collate_fn=self.collate)
# ====== 2
# only PTM2
import torch, threading, sqlite3, logging, multiprocessing as mp, h5py, queue, zipfile
import numpy as np
from torch.utils.data import Dataset, IterableDataset
from threading import Lock
from pathlib import Path
class A(Dataset):
    def __init__(self, p):
        self.f = open(p)  #~ PTM204
        self.h = h5py.File(p, "r")  #~ PTM204
        self.z = zipfile.ZipFile(p)  #~ PTM204
        self.db = sqlite3.connect(p)  #~ PTM204
        self.l = Lock()  #~ PTM205
        self.q = queue.Queue()  #~ PTM205
        self.ml = mp.Lock()
        self.gen = (x for x in p)  #~ PTM206
        self.it = iter(loader)  #~ PTM206
        self.rows = open(p).readlines()
        self.count = sum(1 for _ in open(p))
        self.p = Path(p)
        self.file: object = open(p, "rb")  #~ PTM204
        self.mm = np.memmap(p)
        self.fp = Path(p).open()  #~ PTM204
        with open(p) as f:
            self.lines = f.readlines()
        self.cur = self.db.cursor()  #~ PTM204
        self._open()
        self.lines2 = map(int, p)
        self.read = self._reader()  #~ PTM206
        self.r2 = np.random.default_rng(0)
    def _open(self):
        self.x = open("a")  #~ PTM204
    def _reader(self):
        yield 1
    def __getitem__(self, i):
        self.late = open("b")
class B(A):
    def __init__(self):
        self.lock = threading.RLock()  #~ PTM205
class C(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log = open("x", "w")  #~ PTM204
        self.t = threading.Thread(target=f)  #~ PTM205
        self.e, self.g = threading.Event(), 1  #~ PTM205
class D:
    def __init__(self):
        self.f = open("x")
# ====== 3
# only PTM2
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader
def train():
    loader = DataLoader(ds, num_workers=4)  #~ PTM207
    for x in loader:
        pass
train()
# ====== 4
# only PTM2
import torch
from torch.utils.data import DataLoader
loader = DataLoader(ds, num_workers=4)  #~ PTM207
for epoch in range(3):
    for i, (x, y) in enumerate(loader):
        model(x)
# ====== 5
# only PTM2
# nothing to find
import torch
import torch.multiprocessing as mp
def main():
    mp.spawn(f, nprocs=2)
if "__main__" == __name__:
    main()
# ====== 6
# only PTM2
import torch
import torch.multiprocessing as mp
def main():
    mp.spawn(f, nprocs=2)  #~ PTM207
main()
# ====== 7
# only PTM2
import argparse
import torch
from torch.utils.data import DataLoader
parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=4)
args = parser.parse_args()
loader = DataLoader(ds, num_workers=args.workers)  #~ PTM207
for x in loader:
    model(x)
# ====== 8
# only PTM2
import torch
import pytorch_lightning as pl
trainer = pl.Trainer(strategy="ddp_spawn", devices=2)
trainer.fit(model)  #~ PTM207
# ====== 9
# only PTM2
import torch
class Foo(torch.nn.Module):
    def forward(self, x): return x
if __name__ == "__main__":
    def collate(b):
        return b
    class Ds(torch.utils.data.Dataset):  #~ PTM203
        pass
    class Net(torch.nn.Module):  #~ PTM203
        pass
    loader = torch.utils.data.DataLoader(Ds(), collate_fn=collate, num_workers=2)
# ====== 10
# only PTM2
import torch
from torch.utils.data import Dataset
def make():
    class Inner(Dataset):  #~ PTM208
        pass
    return Inner()
class Outer:
    class Nested(Dataset):
        pass
# ====== 11
# only PTM2
import torch
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
def f(): pass
with multiprocessing.Pool(4) as p:  #~ PTM207
    p.map(f, [1])
with ProcessPoolExecutor() as e:  #~ PTM207
    e.submit(f)
ctx = torch.multiprocessing.get_context("spawn")
p = ctx.Process(target=f)  #~ PTM207
p.start()
# ====== lambdas on their way
# only PTM2
import torch
from torch.utils.data import DataLoader, Dataset
from torch.optim.lr_scheduler import LambdaLR
class Data(Dataset):
    def __init__(self, root, steps):
        self.steps = steps
        self.n = root()
steps = []
steps.append(lambda x: x)  #~ PTM201
steps += [lambda x: x + 1]  #~ PTM201
l1 = DataLoader(Data(lambda: 3, steps))
by = {}
by["a"] = lambda b: b  #~ PTM201
l2 = DataLoader(d, collate_fn=by["a"])
s = LambdaLR(opt, [lambda e: 1] * 2)  #~ PTM201
keys = []
keys.append(lambda x: x)
