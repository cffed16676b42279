"""T5 where a helper logs what it is given, and in classes whose base another file has."""

import pytest
from helpers import check, check_unchanged

SHARED = """\
import torch
import torchmetrics
import pytorch_lightning as pl
class Score(torchmetrics.Metric):
    pass
class Far(Score):
    pass
class Lit(pl.LightningModule):
    def __init__(self):
        self.train_acc = torchmetrics.Accuracy()
        self.val_acc = Far().to('cpu')
        self.made = self.make()
        self.scores = torch.nn.ModuleDict(dict(a=torchmetrics.Accuracy()))
        self.loss_sum = 0
    def make(self):
        return torchmetrics.Accuracy()
    def shared(self, batch, stage, metric):
        {line}
    def training_step(self, batch, batch_idx):
        self.shared(batch, 'train', self.train_acc)
    def validation_step(self, batch, batch_idx):
        self.shared(batch, 'val', {given})
"""


@pytest.mark.parametrize(
    "line",
    [
        "self.log(stage, metric)",
        "self.log(stage, getattr(self, f'{stage}_acc'))",
        "self.log(stage, self.made)",
        "self.log(stage, self.scores[stage].compute())",
        "m = getattr(self, 'val_acc'); self.log(stage, m)",
        "self.log_dict({k: m for k, m in self.scores.items()})",
        "for k, v in self.scores.compute().items(): self.log(k, v)",
        "self.log(stage, self.made.compute().item())",
        "if stage == 'train': self.log(stage, batch.mean())",
    ],
)
def test_metric_objects_that_a_helper_is_given(line):
    check_unchanged(SHARED.format(line=line, given="self.val_acc"), [], select="PTM402")


def test_a_helper_that_is_handed_on_or_a_property_is_reached_from_the_step():
    prop = "    @property\n    def seen(self):\n        self.log('a', 1{})\n"
    last = "    def validation_step(self, batch, batch_idx):\n        return self.seen\n"
    head = SHARED.partition("    def make")[0]
    check(head + prop.format("") + last, head + prop.format(", sync_dist=True") + last, select="PTM402")


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("self.log(stage, metric)", "batch.mean()"),
        ("self.log(stage, getattr(self, f'{stage}_sum'))", "self.val_acc"),
        ("self.log(stage, metric(batch))", "self.val_acc"),
    ],
)
def test_numbers_that_a_helper_is_given(line, given):
    before = SHARED.format(line=line, given=given)
    after = SHARED.format(line=f"{line[:-1]}, sync_dist=not self.training)", given=given)
    check(before, after, select="PTM402")


ELSEWHERE = (
    "import torch\nfrom lab import Base{}\nclass Lit(Base{}):\n    {}\n    def validation_step(self, {}):\n        {}\n"
)


def test_a_class_whose_base_another_file_has_is_told_by_its_steps_and_logs():
    check(
        ELSEWHERE.format("", "", "pass", "batch, i", "self.log('a', batch.mean())"),
        ELSEWHERE.format("", "", "pass", "batch, i", "self.log('a', batch.mean(), sync_dist=True)"),
    )


@pytest.mark.parametrize(
    "parts",
    [
        ("Trainer", "Trainer", "pass", "batch, i", "self.log('a', batch.mean())"),
        ("", "", "pass", "model, inputs", "self.log('a', inputs.mean())"),
        ("", "", "pass", "batch, i", "self.log({'a': batch.mean()})"),
        ("", "", "def log(self, *a): print(a)", "batch, i", "self.log('a', batch.mean())"),
    ],
)
def test_another_librarys_trainer_logs_as_it_does(parts):
    check_unchanged(ELSEWHERE.format(*parts), select="PTM402")
