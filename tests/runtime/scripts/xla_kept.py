"""A kept loop that moves its model and batches itself, its optimizer made before the model is moved, tied weights."""

import sys

import torch
import torch.nn.functional as F
from ptmigrate.runtime import Runtime

runtime = Runtime.shared()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Linear(6, 6), torch.nn.Linear(6, 3))
model[2].weight = model[0].weight
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
device = runtime.own_device("cuda")
model.to(device)
optimizer = runtime.setup_optimizer(optimizer, model)
assert model[2].weight is model[0].weight
generator = torch.Generator().manual_seed(1)
losses = []
for _ in range(6):
    x, y = torch.randn(8, 6, generator=generator), torch.randint(0, 3, (8,), generator=generator)
    loss = F.cross_entropy(model(x.to(device)), y.to(device))
    optimizer.zero_grad()
    runtime.backward(loss)
    optimizer.step()
    losses.append(loss.item())
runtime.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, sys.argv[1])
runtime.print(device.type, losses)
