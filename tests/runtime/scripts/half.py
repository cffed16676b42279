"""Precision 16 on batches that are cut: prints, as JSON, the weights, which steps were left out, the next scale, and
what a checkpoint says of it, at the path that is given.
"""

import json
import sys

import torch
from ptmigrate.runtime import Module, Trainer


class Net(Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net, self.steps = torch.nn.Linear(4, 1), []

    def training_step(self, batch, batch_idx):
        return (self.net(batch) * 3).pow(2).mean()

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.steps.append(self.net.weight.tolist())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


module = Net()
trainer = Trainer(max_epochs=1, precision=16, logger=False, enable_checkpointing=False, enable_progress_bar=False)
data = torch.randn(96, 4, generator=torch.Generator().manual_seed(1))
trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=12))
trainer.save_checkpoint(sys.argv[1])
if trainer.is_global_zero:
    saved = torch.load(sys.argv[1], weights_only=False)["scaler"]["scale"]
    print(json.dumps({"weights": module.steps, "scale": trainer.scaler.get_scale(), "saved": saved}))
