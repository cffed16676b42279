"""Every algorithm of BaguaStrategy on scikit-learn's digits: accuracy, whether ranks agree, what was sent."""

import json
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ptmigrate.runtime import BaguaStrategy, Module, Trainer
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

CASES = {
    "gradient_allreduce": {},
    "bytegrad": {},
    "decentralized": {},
    "shift_one": {"algorithm": "decentralized", "peer_selection_mode": "shift_one", "communication_interval": 2},
    "low_precision_decentralized": {},
    "qadam": {"warmup_steps": 20},
    "async": {"warmup_steps": 5, "sync_interval_ms": 0},
}


class Net(Module):
    def __init__(self, manual=False):
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
        self.automatic_optimization = not manual
        self.ranks = 0.0

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)

    def training_step(self, batch, batch_idx):
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        if self.automatic_optimization:
            return loss
        self.optimizers().zero_grad()
        self.manual_backward(loss)
        self.optimizers().step()
        return None

    def validation_step(self, batch, batch_idx):
        self.log("accuracy", (self.net(batch[0]).argmax(1) == batch[1]).float().mean(), sync_dist=True)

    def on_train_batch_start(self, batch, batch_idx):
        """However slow the machine is, ten steps are the most that go by without an average of the weights."""
        if batch_idx % 10 == 0:
            dist.barrier()  # no rank waits for the thread of one that waits elsewhere
            while getattr(getattr(self.trainer.strategy.algorithm, "thread", None), "busy", False):
                time.sleep(0.001)

    def on_train_epoch_end(self):
        self.ranks = max(self.ranks, spread(self))


def spread(module):
    """How far the ranks' weights are apart."""
    flat = torch.cat([p.detach().flatten() for p in module.parameters()])
    low, high = flat.clone(), flat.clone()
    dist.all_reduce(low, dist.ReduceOp.MIN)
    dist.all_reduce(high, dist.ReduceOp.MAX)
    return float((high - low).max())


def main():
    digits = load_digits()
    x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    train, test = TensorDataset(x[:1500], y[:1500]), TensorDataset(x[1500:], y[1500:])
    answers = {}
    for name, options in CASES.items():
        for manual in (False, True) if name in ("bytegrad", "qadam") else (False,):
            module = Net(manual)
            torch.manual_seed(1)
            strategy = BaguaStrategy(**{"algorithm": name, **options})
            trainer = Trainer(accelerator="cpu", devices=2, strategy=strategy, max_epochs=int(sys.argv[1]))
            trainer.fit(module, DataLoader(train, 16, shuffle=True), DataLoader(test, 64))
            answers[name + "-manual" * manual] = {
                "accuracy": float(trainer.callback_metrics["accuracy"]),
                "spread_while": module.ranks,
                "spread_after": spread(module),
                "sent": getattr(strategy.algorithm, "bytes_sent", None),
                "whole": getattr(strategy.algorithm, "bytes_whole", None),
                "rounds": getattr(strategy.algorithm, "rounds", None),
            }
    if trainer.is_global_zero:
        print(json.dumps(answers))


main()
