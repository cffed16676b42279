"""What DeepSpeedStrategy takes, on this job's processes: each case's weights after a fit, or the error."""

import json
import os
import tempfile

from cells import Cells, Manual, Net, weights
from ptmigrate.runtime import Callback, DeepSpeedPlugin, DeepSpeedStrategy, Trainer

ADAM = {"type": "Adam", "params": {"lr": 0.01}}


class OwnCheckpoint(Callback):
    """DeepSpeed's, written as the training ends."""

    def on_train_end(self, trainer, module):
        trainer.strategy.save_engine_checkpoint(self.folder, tag="end")


def consolidated(stage):
    """What comes back from the files of all processes."""
    shared = Trainer().runtime
    folder = shared.broadcast(tempfile.mkdtemp())
    callback = OwnCheckpoint()
    callback.folder = folder
    Cells(DeepSpeedStrategy(stage=stage), callbacks=[callback]).trained(Net())
    whole = os.path.join(folder, "whole.ckpt")
    if shared.is_global_zero:
        DeepSpeedStrategy.consolidate(folder, whole)
    shared.barrier()
    return {"weights": weights(Net.load_from_checkpoint(whole)), "files": len(os.listdir(os.path.join(folder, "end")))}


def trained(kind=Net, **options):
    return Cells(DeepSpeedPlugin(**options)).trained(kind())


CASES = {
    "offload_2": lambda: trained(stage=2, offload_optimizer=True),
    "offload_3": lambda: trained(stage=3, offload_optimizer=True, offload_parameters=True),
    "cpu_offload": lambda: trained(cpu_offload=True, allgather_bucket_size=5e8, reduce_bucket_size=5e8),
    "config_adam": lambda: trained(config={"zero_optimization": {"stage": 1}, "optimizer": ADAM}),
    "config_offload": lambda: trained(
        config={"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "optimizer": ADAM}
    ),
    "manual_offload": lambda: trained(Manual, stage=2, offload_optimizer=True),
    "whole_2": lambda: consolidated(2),
    "whole_3": lambda: consolidated(3),
}

if __name__ == "__main__":
    answers = {name: case() for name, case in CASES.items()}
    Trainer().print(json.dumps(answers))
