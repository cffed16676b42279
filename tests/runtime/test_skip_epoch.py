"""`trainer.skip_epoch()`: an epoch of which nothing is run but the hook that says so."""

import torch
from ptmigrate.runtime import Callback, ModelCheckpoint, Module, Trainer


class Skipping(Module):
    def __init__(self, skipped):
        super().__init__()
        self.layer, self.told, self.skipped = torch.nn.Linear(2, 1), [], skipped

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

    def on_train_epoch_start(self):
        if self.current_epoch in self.skipped:
            self.trainer.skip_epoch()

    def training_step(self, batch, batch_idx):
        self.told.append(self.current_epoch)
        loss = self.layer(batch).sum()
        self.log("loss", loss, on_epoch=True)
        return loss

    def on_train_batches_end(self):
        self.told.append("over")

    def validation_step(self, batch, batch_idx):
        self.told.append("val")

    def on_train_epoch_end(self):
        self.told.append("end")


BATCHES = [torch.ones(3, 2)] * 2
AROUND = ["over", "val", "end"]


def fit(skipped, **options):
    module = Skipping(skipped)
    trainer = Trainer(
        accelerator="cpu", max_epochs=4, enable_progress_bar=False, num_sanity_val_steps=0, logger=False, **options
    )
    trainer.fit(module, torch.utils.data.DataLoader(torch.ones(6, 2), 3), BATCHES[:1])
    return module.told, trainer


def test_nothing_of_the_epoch_is_run():
    told, trainer = fit({0, 2})
    assert told == [1, 1, *AROUND, 3, 3, *AROUND]
    assert trainer.global_step == 4 and trainer.current_epoch == 4
    assert trainer.lr_scheduler_configs[0].scheduler.last_epoch == 2


def test_the_last_epochs_may_be_skipped_and_all():
    assert fit({2, 3})[0] == [0, 0, *AROUND, 1, 1, *AROUND]
    assert fit({0, 1, 2, 3})[0] == []


class Counting(Callback):
    complete = 0

    def on_epoch_complete(self, trainer, module):
        self.complete += 1


def test_it_is_no_complete_epoch():
    counting = Counting()
    fit({0, 2}, callbacks=[counting])
    assert counting.complete == 2


def test_no_checkpoint_is_written_of_it(tmp_path):
    fit({1, 3}, callbacks=[ModelCheckpoint(tmp_path, filename="{epoch}", save_top_k=-1)])
    assert sorted(p.stem for p in tmp_path.glob("*.ckpt")) == ["epoch=0", "epoch=2"]
