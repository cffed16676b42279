"""A strategy that refuses the job when its ranks have met, as an engine does that first hears of all machines then.

With `caught` the script goes on to its end.
"""

import atexit
import contextlib
import sys

import torch
import torch.distributed as dist
from ptmigrate.runtime import Module, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.launch.watch import ARRIVED
from ptmigrate.runtime.strategies.ddp import DDPStrategy
from torch.utils.data import DataLoader


class Refusing(DDPStrategy):
    def init_group(self, settings):
        super().init_group(settings)
        raise ConfigurationError("the ranks have met, and cannot go on")


class Net(Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


@atexit.register
def show_who_left():
    left = dist.distributed_c10d._get_default_store().check([f"{ARRIVED}/{dist.get_rank()}"])
    print(f"rank {dist.get_rank()} left in order: {left}")


trainer = Trainer(strategy=Refusing(), max_epochs=1)
with contextlib.suppress(ConfigurationError) if sys.argv[1:] == ["caught"] else contextlib.nullcontext():
    trainer.fit(Net(), DataLoader(torch.zeros(2, 2)))
