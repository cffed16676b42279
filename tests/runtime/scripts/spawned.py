"""fit in processes of its own, then everything that a script does after it: `spawned.py METHOD [raise]`."""

import json
import sys

import torch
from cells import Net, loader
from ptmigrate.runtime import Callback, ModelCheckpoint, Trainer


class Watching(Callback):
    watches_metrics = True  # called when the epoch's values are known

    def __init__(self):
        self.losses = []

    def on_train_epoch_end(self, trainer, module):
        self.losses.append(float(trainer.callback_metrics["train_loss"]))
        module.norm.bias.requires_grad = trainer.current_epoch == 0


class Counting(Net):
    def __init__(self, fails=False):
        super().__init__()
        self.fails, self.steps_seen = fails, 0
        self.norm = torch.nn.BatchNorm1d(6)

    def training_step(self, batch, batch_idx):
        self.steps_seen += 1
        if self.fails and self.trainer.global_rank == 1 and batch_idx == 3:
            raise ValueError("the first failure")
        return super().training_step((self.norm(batch[0]), batch[1]), batch_idx)


if __name__ == "__main__":
    torch.manual_seed(7)
    model = Counting(fails="raise" in sys.argv)
    watching, saving = Watching(), ModelCheckpoint(monitor="train_loss", dirpath=sys.argv[2])
    trainer = Trainer(
        accelerator="cpu", devices=2, strategy=f"ddp_{sys.argv[1]}", max_epochs=2, callbacks=[watching, saving]
    )
    before = model.norm.running_mean.clone()
    trainer.fit(model, loader())
    print(
        json.dumps(
            {
                "weights": [float(p.detach().double().sum()) for p in model.parameters()],
                "moved": bool((model.norm.running_mean != before).any()),
                "loss": float(trainer.callback_metrics["train_loss"]),
                "losses": watching.losses,
                "seen": model.steps_seen,
                "steps": trainer.global_step,
                "saved": {
                    k: float(v.double().sum()) for k, v in torch.load(saving.best_model_path)["state_dict"].items()
                },
                "frozen": [name for name, p in model.named_parameters() if not p.requires_grad],
                "drawn": float(torch.rand(1)),
                "ranks": [trainer.world_size, trainer.is_global_zero, model.all_reduce(3)],
            }
        )
    )
