"""Goes on after a failure where the last checkpoint stands: `elastic.py FOLDER HOW`, which fails once, in the last rank
and the third epoch: HOW is raise, kill, exit or never; `wait` waits in the second epoch for another node.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
from cells import Net, loader, weights
from ptmigrate.runtime import ModelCheckpoint, Trainer

FOLDER, HOW = Path(sys.argv[1]), sys.argv[2]


class Fails(Net):
    def training_step(self, batch, batch_idx):
        if HOW == "wait" and self.current_epoch == 1 and self.trainer.world_size == 1:
            time.sleep(150)  # the agent ends this when another node has come
        mark = FOLDER / "failed"
        last = self.trainer.global_rank == self.trainer.world_size - 1
        here = last and self.current_epoch == 2 and batch_idx == 1
        if here and HOW in ("raise", "kill", "exit") and not mark.exists():
            mark.touch()
            self.fail()
        with open(FOLDER / f"worlds.{os.getpid()}", "a") as file:
            print(self.trainer.world_size, self.current_epoch, batch_idx, file=file)
        return super().training_step(batch, batch_idx)

    def fail(self):
        if HOW == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if HOW == "exit":
            os._exit(7)
        raise ValueError("once")


torch.manual_seed(7)
module = Fails()
trainer = Trainer(max_epochs=4, callbacks=[ModelCheckpoint(dirpath=FOLDER, save_last=True)])
trainer.fit(module, loader(), ckpt_path="last")
if trainer.is_global_zero:
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
    print(json.dumps({"weights": weights(module), "steps": trainer.global_step, "restarts": restarts}))
