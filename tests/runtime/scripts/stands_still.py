"""A rank that stands still for a while in the midst of training, as a machine does that is moved: `stands_still.py S`
stops rank 1 for S seconds, and prints what was learned.
"""

import json
import os
import signal
import subprocess
import sys

import torch
from ptmigrate.runtime import Module, Trainer

SECONDS = float(sys.argv[1])


class Still(Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(2, 1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, batch, batch_idx):
        if SECONDS and self.global_rank == 1 and batch_idx == 1:
            wakes = f"sleep {SECONDS}; kill -CONT {os.getpid()}"
            subprocess.Popen(["sh", "-c", wakes], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            os.kill(os.getpid(), signal.SIGSTOP)
        return self.line(batch).pow(2).mean()


torch.manual_seed(0)
module = Still()
trainer = Trainer(max_epochs=1, num_sanity_val_steps=0)
trainer.fit(module, torch.utils.data.DataLoader(torch.randn(12, 2), batch_size=4))
trainer.print(json.dumps({name: value.flatten().tolist() for name, value in module.state_dict().items()}))
