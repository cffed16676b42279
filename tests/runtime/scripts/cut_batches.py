"""What each rank has of `Batches`, in training: of those in place, and of an order that the ranks have otherwise."""

import json

import torch
from ptmigrate.runtime import Batches, Runtime

runtime = Runtime()
runtime.connect()
torch.manual_seed(runtime.rank)  # so that each would have an order of its own
X = torch.arange(10)
answers = {}
for name, order in (("in place", None), ("ordered", torch.randperm(10))):
    loader = runtime.setup_dataloaders(Batches(X, X * 2, at=range(0, 10, 4), size=4, order=order))
    own = [(x.tolist(), (x * 2 - y).abs().max().item(), runtime.share) for x, y in loader]
    every = [None] * runtime.world_size
    torch.distributed.all_gather_object(every, (own, None if order is None else order.tolist()), group=runtime.group)
    answers[name] = every
runtime.print(json.dumps(answers))
