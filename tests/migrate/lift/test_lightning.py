"""`--framework lightning`: the result imports from lightning, and one process of it trains to the original's losses."""

import importlib.util
import logging
import warnings
from pathlib import Path

import pytest
import torch
from ptmigrate.migrate.lift.lightning import to_lightning
from ptmigrate.migrate.migrate import Options, migrate_text

from tests.migrate.lift.test_same_run import FUNCTIONS, INLINE_EVALUATION, KEPT, MAIN, MANUAL, NESTED
from tests.migrate.running import run

FIXTURES = Path(__file__).parents[3] / "fixtures" / "plain"
LIGHTNING = Options(framework="lightning")
needs_lightning = pytest.mark.skipif(importlib.util.find_spec("lightning") is None, reason="lightning is not installed")
SHAPES = {
    "nested": NESTED,
    "functions": FUNCTIONS,
    "main": MAIN,
    "inline": INLINE_EVALUATION,
    "a sum": NESTED.replace("nn.CrossEntropyLoss()", "nn.CrossEntropyLoss(reduction='sum')"),
    "torch by another name": NESTED.replace("import torch\n", "import torch as t\nimport torch\n").replace(
        "print('done'", "t.save(model.state_dict(), '/dev/null')\nprint('done'"
    ),
    "a closure": MANUAL["a closure"],
    "two backwards": MANUAL["two backwards"],
    "two optimizers": MANUAL["two optimizers"],
    "accumulation": MANUAL["accumulation"],
}


@needs_lightning
@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
def test_it_trains_to_the_same_losses_on_lightning(text):
    result = migrate_text(text, LIGHTNING)
    assert result.plan in ("module", "manual")
    assert "ptmigrate" not in result.text and "from lightning import LightningModule, Trainer\n" in result.text
    assert migrate_text(result.text, LIGHTNING).text == result.text
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, after = run(text), run(result.text)
    assert before.losses and after.losses == before.losses
    assert after.output == before.output
    for a, b in zip(before.parameters, after.parameters, strict=True):
        assert torch.equal(a, b)


def test_a_second_run_leaves_what_stands_beside_the_class():
    """Functions that the lift left alone, and moves within the class, are the first run's."""
    other = "def total(net, loader):\n    n = 0.0\n    for x, y in loader:\n        loss = F.mse_loss(net(x), y)\n"
    other += "        n += loss.item()\n    return n\n\n\n"
    first = migrate_text(FUNCTIONS.replace("def train", other + "def train", 1), LIGHTNING)
    assert first.plan == "module" and other in first.text
    for options in (LIGHTNING, Options()):
        again = migrate_text(first.text, options)
        assert again.text == first.text and again.plan == "none"
    by_hand = first.text.replace('"""Lifted from', '"""Written by hand from')
    assert "loss.detach()" in migrate_text(by_hand, LIGHTNING).text


def test_what_its_modules_lack_is_written_into_the_class():
    text = migrate_text(FUNCTIONS, LIGHTNING).text
    assert "def share(self):" in text and "def all_reduce(self, value):" in text
    assert "num_sanity_val_steps=0" in text and "logger=False" in text
    plain = migrate_text(NESTED.replace("        if (i + 1)", "        continue\n        if (i + 1)"), LIGHTNING)
    assert plain.text.count("class ") == 1


def test_a_sum_over_the_batch_is_told_of():
    result = migrate_text(SHAPES["a sum"], LIGHTNING)
    assert "loss_reduction" not in result.text
    (note,) = [n for n in result.attention if n.code == "PTM705"]
    assert "sum over the batch" in note.message


def test_settings_that_lightning_has_not_go_together():
    text = 'class M(Module):\n    """Lifted."""\n\n    loss_reduction = "sum"\n    divide_validation = False\n\n'
    step = "    def training_step(self, b):\n        x, y = b\n        return self.m(x, y)\n"
    new, notes = to_lightning(text + step, ["Module"])
    assert new.endswith(f'(LightningModule):\n    """Lifted."""\n\n{step}')
    assert [n.line for n in notes] == [9, 1]


def test_an_epoch_left_before_its_validation_keeps_the_loop():
    text = INLINE_EVALUATION.replace("        running +=", "        if running > 5: break\n        running +=")
    assert migrate_text(text).plan == "module"
    result = migrate_text(text, LIGHTNING)
    assert result.plan == "loop"
    assert any(n.code == "PTM701" and "left in the middle" in n.message for n in result.attention)


def test_an_epoch_that_is_skipped_keeps_the_loop():
    text = FUNCTIONS.replace("args.epochs + 1):\n", "args.epochs + 1):\n    if epoch < 2: continue\n")
    assert "self.trainer.skip_epoch(); return" in migrate_text(text).text
    result = migrate_text(text, LIGHTNING)
    assert result.plan == "loop"
    assert any(n.code == "PTM701" and "skips no epoch" in n.message for n in result.attention)


def test_a_kept_loop_stays_on_runtime_and_says_so():
    result = migrate_text(KEPT["the epochs are no numbers that count up"], LIGHTNING)
    assert result.plan == "loop" and "from ptmigrate.runtime import Runtime" in result.text
    assert any(n.code == "PTM705" and "Lightning's Trainer cannot run it" in n.message for n in result.attention)


OLD = """
import torch
import pytorch_lightning as pl

class Net(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        return self.layer(batch).mean()
    def training_step_end(self, outputs):
        return outputs.mean()
    def validation_epoch_end(self, outputs):
        self.log("x", 1.0, sync_dist=True)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

trainer = pl.Trainer(gpus=2, accelerator="dp", max_epochs=3)
"""


def test_hooks_arguments_and_strategies_that_lightning_lost_are_named():
    said = [n.message for n in migrate_text(OLD, LIGHTNING).attention if n.code == "PTM705"]
    assert [m.split(":")[0] for m in said] == [
        "training_step_end()", "validation_epoch_end()", "Trainer(gpus=...)", "accelerator='dp'",
    ]  # fmt: skip
    assert not [n for n in migrate_text(OLD).attention if n.code == "PTM705"]


def test_what_lightning_still_has_is_not_named():
    text = OLD.replace("training_step_end", "on_train_batch_end").replace("validation_epoch_end", "helper")
    text = text.replace('gpus=2, accelerator="dp"', 'devices=2, accelerator="cpu"')
    assert not [n for n in migrate_text(text, LIGHTNING).attention if n.code == "PTM705"]


def test_batches_that_are_a_list_keep_the_loop():
    """Lightning takes a list for several loaders."""
    text = (FIXTURES / "karate_gcn.py").read_text(encoding="utf-8")
    assert migrate_text(text).plan == "module"
    result = migrate_text(text, LIGHTNING)
    assert result.plan == "loop" and any("several loaders" in n.message for n in result.attention)
