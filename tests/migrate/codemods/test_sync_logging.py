import pytest
from helpers import check, check_unchanged

HEAD = "import torch\nimport torchmetrics\nimport pytorch_lightning as pl\nclass Lit(pl.LightningModule):\n"


def method(name: str, *lines: str) -> str:
    return HEAD + f"    def {name}(self, batch, batch_idx):\n" + "".join(f"        {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('self.log("loss", loss)', 'self.log("loss", loss, sync_dist=True)'),
        ('self.log("loss", loss, on_step=True,)', 'self.log("loss", loss, on_step=True, sync_dist=True,)'),
        ('self.log_dict({"a": a, "b": b})', 'self.log_dict({"a": a, "b": b}, sync_dist=True)'),
        (
            'self.log(\n            "loss",\n            loss,  # mean\n        )',
            'self.log(\n            "loss",\n            loss,  # mean\n            sync_dist=True,\n        )',
        ),
    ],
)
@pytest.mark.parametrize("name", ["validation_step", "test_step", "validation_epoch_end"])
def test_evaluation_synchronizes(name, before, after):
    check(method(name, before), method(name, after), select="PTM402")


@pytest.mark.parametrize(
    "source",
    [
        method("training_step", 'self.log("loss", loss)'),
        method("validation_step", 'self.log("loss", loss, sync_dist=True)'),
        method("validation_step", 'self.log("loss", loss, sync_dist=False)'),
        method("validation_step", 'self.log("loss", loss, **options)'),
        method("validation_step", "self.log(*what)"),
        method("validation_step", 'logger.log("loss", loss)'),
        method("validation_step", 'self.logger.log("loss", loss)'),
        method("validation_step", "self.log(x, y)").replace("pl.LightningModule", "Base"),
        method("helper", 'self.log("loss", loss)'),
        method("validation_step", 'self.log("acc", self.acc)')
        + "    def __init__(self):\n        self.acc = torchmetrics.Accuracy()\n",
        method("test_step", "self.log_dict(self.scores)")
        + "    def __init__(self):\n        self.scores = torchmetrics.MetricCollection([])\n",
    ],
)
def test_unchanged(source):
    check_unchanged(source)


def test_helpers():
    helper = "    def report(self, loss):\n        self.log('loss', loss{})\n"
    steps = "    def {}(self, b, i):\n        self.report(f(b))\n"
    only = HEAD + steps.format("validation_step") + steps.format("test_step")
    check(only + helper.format(""), only + helper.format(", sync_dist=True"))
    shared = only + steps.format("training_step")
    check(shared + helper.format(""), shared + helper.format(", sync_dist=not self.training"))
