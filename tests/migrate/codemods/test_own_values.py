"""T5: means of what is each process's, or each batch's, own are told: they are not those of all."""

import pytest
from helpers import dedent, migrated

HEAD = """
import torch
import torch.nn.functional as F
import torchmetrics
import pytorch_lightning as pl

class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.acc = torch.nn.Linear(3, 4), torchmetrics.Accuracy()
        self.losses, self.hits, self.scale = [], 0, 2.0

    def validation_step(self, batch, batch_idx):
        x, y = batch
        out = self.net(x)
        loss = F.cross_entropy(out, y)
        self.acc(out, y)
        self.losses.append(loss)
        self.hits += (out.argmax(1) == y).sum()
        {step}
        return {{"loss": loss}}

    def {hook}(self{outputs}):
        {end}
"""


def told(step="pass", end="pass", hook="on_validation_epoch_end", outputs="", trainer='strategy="ddp"'):
    text = dedent(HEAD).format(step=step, end=end.replace("; ", "\n        "), hook=hook, outputs=outputs)
    text += f"\n\npl.Trainer({trainer})\n"
    return [n.message for n in migrated(text, "PTM402").attention if "mean" in n.message]


@pytest.mark.parametrize(
    "end",
    [
        'self.log("acc", self.hits / 100)',
        'self.log("loss", torch.stack(self.losses).mean(), sync_dist=True)',
        'loss = torch.stack(self.losses).mean(); self.log("ppl", loss.exp())',
        'me = self; me.log_dict({"a": 1.0, "b": sum(me.losses)})',
        'for l in self.losses:; ____worst = l; self.log(name="worst", value=worst)',
    ],
)
def test_values_of_a_process_at_the_end_of_an_epoch(end):
    (says,) = told(end=end.replace("____", "    "))
    assert "the mean of the processes' own values" in says


def test_what_the_steps_returned_is_the_process_s_own():
    end = 'loss = torch.stack([o["loss"] for o in outs]).mean(); self.log("loss", loss)'
    assert told(end=end, hook="validation_epoch_end", outputs=", outs")


@pytest.mark.parametrize(
    "end",
    [
        'self.log("acc", self.acc)',
        'self.log("acc", self.acc.compute())',
        'self.log("scale", self.scale)',
        'self.log("epoch", float(self.current_epoch))',
        'self.log("hits", self.hits, sync_dist=False)',
        'self.log("hits", self.hits, rank_zero_only=True)',
        'hits = self.all_gather(self.hits).sum(); self.log("hits", hits)',
        'hits = self.trainer.strategy.reduce(self.hits, reduce_op="sum"); self.log("hits", hits)',
        "self.losses.clear()",
    ],
)
def test_what_all_processes_have_is_not_told(end):
    assert not told(end=end)


def test_a_metric_that_the_steps_update_is_of_all_processes():
    end = 'acc = self.acc.compute() * 100; self.log("acc", acc, sync_dist=True)'
    assert not told("self.acc.update(out, y)", end)


def test_the_end_of_a_training_epoch_is_another_matter():
    assert not told(end='self.log("hits", self.hits)', hook="on_train_epoch_end")


@pytest.mark.parametrize(
    "step",
    ['self.log("ppl", torch.exp(loss), sync_dist=True)', 'self.log("ppl", loss.exp())', 'self.log("a", loss ** 0.5)'],
)
def test_what_is_made_of_a_batch_s_mean(step):
    (says,) = told(step)
    assert "not that of the mean" in says
    assert told(step, trainer='devices=2, accelerator="ddp"')


@pytest.mark.parametrize(
    "step",
    [
        'self.log("loss", loss)',
        'self.log("loss", 2 * loss + 1)',
        'self.log("p", torch.exp(-out).mean())',
        "print(loss.exp())",
    ],
)
def test_means_of_the_samples_are_not_told(step):
    assert not told(step)


@pytest.mark.parametrize("trainer", ['strategy="dp"', "", 'strategy="single_device"'])
def test_where_the_step_is_cut_or_one_process_evaluates(trainer):
    assert not told('self.log("ppl", torch.exp(loss))', trainer=trainer)
