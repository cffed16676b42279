# ====== 1 suppress & odd syntax
# only PTM
# nothing to find
import torch
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from torch.utils.data import DataLoader
def cuda(x): return x
cuda(3)
class Robot:
    def to(self, where): pass
    def item(self): pass
    def cpu(self): return 1
robot = Robot()
for r in robots:
    r.item()
    r.cpu()
text = "x.cuda()"
print(f"{text!r}")
x: torch.Tensor
async def f():
    async with a as b:
        await b.step()
lst = [i for i in range(3) if i % 2]
def device(x): return x
device("cuda")
# ====== 2 inference / serving
# only PTM
# nothing to find
import torch
from flask import Flask
app = Flask(__name__)
model = torch.load("m.pt", map_location="cpu")
model.eval()
@app.route("/predict")
@torch.no_grad()
def predict():
    out = model(get_input())
    return {"p": out.argmax().item(), "s": out.max().item()}
@torch.inference_mode()
def generate(prompt, n=3):
    results = []
    for p in prompts:
        results.append(decode(p))
    return results
# ====== 3 optimizing an image (few steps), sklearn-like
# only PTM3
import torch
for step in range(200):
    optimizer.zero_grad()
    loss = content_loss(x) + style_loss(x)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
    losses.append(loss.item())  #~ PTM301
# ====== 4 numpy & pandas loops
# only PTM
# nothing to find
import torch
import pandas as pd
import numpy as np
for _, row in df.iterrows():
    v = row["x"].item()
    total += float(row["y"])
    names = row["n"].tolist()
arr = np.zeros(3)
for i in range(3):
    arr[i].item()
loader = pd.read_csv("x")
if __name__ == "__main__":
    import multiprocessing as mp
    with mp.Pool(2) as p:
        p.map(f, [1])
# ====== 5 tests and asserts
# only PTM3 PTM4
# nothing to find
import torch
import unittest
class T(unittest.TestCase):
    def test_it(self):
        model = torch.nn.Linear(2, 2)
        out = model(torch.zeros(1, 2))
        out.sum().backward()
        self.assertEqual(out.item(), 3)
        for a, b in zip(out, out):
            self.assertEqual(a.item(), b.item())
            torch.testing.assert_close(a.cpu(), b.cpu())
# ====== 6 dist helper library style
# only PTM4
# nothing to find
import torch
import torch.distributed as dist
def get_rank():
    if not dist.is_available() or not dist.is_initialized():
        return 0
    return dist.get_rank()
def is_main_process():
    return get_rank() == 0
def save_on_master(*args, **kwargs):
    if is_main_process():
        torch.save(*args, **kwargs)
def setup_for_distributed(is_master):
    import builtins as __builtin__
    builtin_print = __builtin__.print
    def print(*args, **kwargs):
        force = kwargs.pop("force", False)
        if is_master or force:
            builtin_print(*args, **kwargs)
    __builtin__.print = print
def synchronize():
    if get_world_size() < 2:
        return
    dist.barrier()
def reduce_dict(d):
    if get_world_size() < 2:
        return d
    with torch.no_grad():
        values = torch.stack(list(d.values()))
        dist.reduce(values, dst=0)
        if dist.get_rank() == 0:
            values /= get_world_size()
    return d
def all_gather(data):
    tensor = pickle_to(data)
    sizes = [torch.tensor([0], device=dev) for _ in range(get_world_size())]
    dist.all_gather(sizes, tensor)
def init(args):
    dist.init_process_group(backend="nccl", init_method=args.dist_url, world_size=args.world_size, rank=args.rank)
    dist.barrier()
    setup_for_distributed(args.rank == 0)
