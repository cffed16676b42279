"""A kept loop on `Runtime.setup`: batches divided by the runtime, exact counts."""

import torch
import torch.nn.functional as F
from ptmigrate.runtime import Runtime
from torch.utils.data import DataLoader, TensorDataset

runtime = Runtime(global_batch=True)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
model, optimizer = runtime.setup(model, torch.optim.LBFGS(model.parameters(), max_iter=2))
generator = torch.Generator().manual_seed(1)
data = TensorDataset(torch.randn(20, 6, generator=generator), torch.randint(0, 3, (20,), generator=generator))
for x, y in runtime.setup_dataloaders(DataLoader(data, 8, shuffle=True)):

    def closure(x=x, y=y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        runtime.backward(loss)
        return runtime.all_reduce(loss.detach() * runtime.share)

    optimizer.step(closure)
held_out = runtime.setup_dataloaders(DataLoader(data, 8), train=False)
right = runtime.all_reduce(sum((model(x).argmax(1) == y).sum() for x, y in held_out))
gathered = runtime.all_gather(torch.ones(2, device=runtime.device) * runtime.rank)
runtime.print(runtime.device.type, [right.item(), *(p.sum().item() for p in model.parameters())], gathered.shape[-1])
