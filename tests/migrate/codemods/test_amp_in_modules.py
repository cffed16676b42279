import pytest
from helpers import check, check_unchanged

HEAD = "import torch\nimport pytorch_lightning as pl\n"
STEP = "class Lit(pl.LightningModule):\n    def training_step(self, batch, i):\n"
TRAINER = "trainer = pl.Trainer(devices=2{})\n"


@pytest.mark.parametrize(
    ("context", "precision"),
    [
        ("torch.cuda.amp.autocast()", "16-mixed"),
        ("torch.autocast('cuda', dtype=torch.bfloat16)", "bf16-mixed"),
        ("torch.amp.autocast('cuda')", "16-mixed"),
    ],
)
def test_the_trainer_is_told(context, precision):
    check(
        HEAD
        + STEP
        + f"        with {context}:\n            # half\n            loss = self(batch)\n        return loss\n"
        + TRAINER.format(""),
        HEAD
        + STEP
        + "        # half\n        loss = self(batch)\n        return loss\n"
        + TRAINER.format(f', precision="{precision}"'),
    )


def test_a_trainer_elsewhere_is_asked_for():
    check(
        HEAD + STEP + "        with torch.cuda.amp.autocast():\n            return self(batch)\n",
        HEAD + STEP + "        return self(batch)\n",
        ["PTM605 line 5"],
        ["PTM605 line 1: pass precision="],
    )


@pytest.mark.parametrize(
    "source",
    [
        STEP + "        with torch.no_grad():\n            return self(batch)\n",
        STEP + "        with autocast():\n            return self(batch)\n",
        TRAINER.format(", precision=16"),
    ],
)
def test_unchanged(source):
    check_unchanged(HEAD + source, [])


@pytest.mark.parametrize(
    "source",
    [
        "with torch.cuda.amp.autocast():\n    loss = f(x)\n",
        "scaler = torch.cuda.amp.GradScaler()\n",
        "from apex import amp\nmodel, opt = amp.initialize(model, opt)\n",
        STEP + "        with torch.cuda.amp.autocast(enabled=self.half):\n            return self(batch)\n",
    ],
)
def test_left_and_told(source):
    check_unchanged(HEAD + source, ["PTM605 line "])
