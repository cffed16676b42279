import pytest
from helpers import check, check_unchanged

CODE = "PTM402"

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
        method("validation_step", 'self.log("loss", loss, rank_zero_only=True)'),
        method("validation_step", "self.log(*what)"),
        method("validation_step", 'self.table.log("a", b)'),
        method("validation_step", 'log("a", b)'),
        method("validation_step", "torch.log(b)"),
        method("validation_step", 'print("self.log(a, b)")'),
        method("validation_step", 'self.logs["a"] = b'),
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


METRICS = (
    "    def __init__(self):\n        self.accs = torch.nn.ModuleList([torchmetrics.Accuracy()])\n"
    "        self.by_name = torch.nn.ModuleDict({'f': torchmetrics.F1Score()})\n"
    "        self.acc = torchmetrics.Accuracy()\n        self.plain = {'a': torchmetrics.Accuracy()}\n"
)


@pytest.mark.parametrize(
    "lines",
    [
        ('self.log("a", self.accs[0])',),
        ('self.log("f", self.by_name["f"])',),
        ("acc = self.acc", 'self.log("a", acc)'),
        ("for name, m in self.by_name.items():", "    self.log(name, m)"),
        ('self.log("a", self.acc.compute())',),
        ("a = self.acc.compute()", 'self.log("a", a)'),
        ("for i, m in enumerate(self.accs):", '    self.log(f"a{i}", m)'),
        ('self.log("a", self.plain["a"])',),
        ('self.log_dict({"a": self.acc, "b": self.accs[0]})',),
    ],
)
def test_metric_objects_and_what_they_computed_are_reduced_already(lines):
    check_unchanged(method("validation_step", *lines) + METRICS, select="PTM402")


def test_a_helper_of_the_class_below():
    helpers = (
        HEAD.replace("class Lit", "class Base")
        + '    def shared(self, loss):\n        self.log("loss", loss{})\n'
        + '    def evaluated(self, loss):\n        self.log("loss", loss{})\n'
        + '    def alone(self, loss):\n        self.log("loss", loss)\n'
    )
    steps = "class Lit(Base):\n    def training_step(self, b, i):\n        self.shared(b)\n"
    steps += "    def test_step(self, b, i):\n        self.shared(b)\n        self.evaluated(b)\n"
    after = helpers.format(", sync_dist=not self.training", ", sync_dist=True") + steps
    check(helpers.format("", "") + steps, after, select="PTM402")


@pytest.mark.parametrize("options", ["{'on_epoch': True}", "dict(on_epoch=True)"])
def test_options_that_are_written_down(options):
    before = method("test_step", f"options = {options}", 'self.log("a", b, **options)')
    check(before, before.replace("b, **", "b, sync_dist=True, **"), attention=[], select="PTM402")
    check_unchanged(before.replace("on_epoch", "sync_dist"), [], select="PTM402")
    check_unchanged(before.replace(options, "self.options"), ["PTM402 line 7"], select="PTM402")


@pytest.mark.parametrize("guard", ["if self.trainer.is_global_zero:", "if self.global_rank == 0:"])
def test_where_rank_0_is_alone_it_waits_for_nobody(guard):
    result = check_unchanged(method("test_step", guard, '    self.log("a", 1.0)'), select="PTM402,PTM408")
    assert [n.line for n in result.attention] in ([7], [])


def test_the_method_by_a_name_of_its_own():
    before = method("test_step", "log = self.log", 'log("a", b)')
    check(before, before.replace('"a", b', '"a", b, sync_dist=True'), select="PTM402")


def test_options_that_do_not_show_are_told():
    source = method("validation_step", 'self.log("loss", loss, **options)')
    check_unchanged(source, ["PTM402 line 6: `self.log"], select="PTM402")


def test_helpers():
    helper = "    def report(self, loss):\n        self.log('loss', loss{})\n"
    steps = "    def {}(self, b, i):\n        self.report(f(b))\n"
    only = HEAD + steps.format("validation_step") + steps.format("test_step")
    check(only + helper.format(""), only + helper.format(", sync_dist=True"))
    shared = only + steps.format("training_step")
    check(shared + helper.format(""), shared + helper.format(", sync_dist=not self.training"))


@pytest.mark.parametrize(
    ("first", "call"),
    [("pass", "super().log('a', b{})"), ("pass", "super(Lit, self).log('a', b{})"), ("m = self", "m.log('a', b{})")],
)
def test_self_by_other_names(first, call):
    before = method("validation_step", first, call)
    check(before.replace("{}", ""), before.replace("{}", ", sync_dist=True"), [f"{CODE} line 7"], [], select=CODE)
    check_unchanged(method("training_step", first, call.replace("{}", "")), [], select=CODE)


def test_a_method_of_that_name_is_no_log_but_what_it_hands_on_to_is():
    own = "    def log(self, name, value):\n        super().log('val/' + name, value{})\n"
    step = method("validation_step", 'self.log("a", b)')
    check(step + own.format(""), step + own.format(", sync_dist=True"), ["PTM402 line 8"], [], select=CODE)
    check_unchanged(method("validation_step", "m = other", 'm.log("a", b)'), [], select=CODE)


def test_helpers_of_a_class_that_is_no_module_by_itself():
    mixin = "class Reports:\n    def report(self, loss):\n        self.log('a', loss{})\n"
    net = "class Lit(Reports, pl.LightningModule):\n    def test_step(self, b, i):\n        self.report(b)\n"
    imports = "import torch\nimport pytorch_lightning as pl\n"
    before, after = (imports + mixin.format(s) + net for s in ("", ", sync_dist=True"))
    check(before, after, ["PTM402 line 5"], [], select=CODE)
    check_unchanged(before.replace("(Reports, ", "("), [], select=CODE)


CALLBACK = (
    "import torch\nfrom pytorch_lightning.callbacks import Callback\nclass Extra(Callback):\n"
    "    def {hook}(self, trainer, net):\n        {call}\n"
)


@pytest.mark.parametrize("hook", ["on_validation_epoch_end", "on_test_epoch_end", "on_test_batch_end"])
@pytest.mark.parametrize("call", ["net.log('a', b{})", "net.log_dict({{'a': b}}{})"])
def test_callbacks_log_through_the_module(hook, call):
    before, after = (CALLBACK.format(hook=hook, call=call.format(s)) for s in ("", ", sync_dist=True"))
    check(before, after, ["PTM402 line 5"], [], select=CODE)


@pytest.mark.parametrize(
    ("hook", "call"),
    [
        ("on_train_epoch_end", "net.log('a', b)"),
        ("on_validation_epoch_end", "net.log('a', b, rank_zero_only=True)"),
        ("on_validation_epoch_end", "trainer.logger.log('a', b)"),
        ("on_validation_epoch_end", "self.log('a', b)"),
    ],
)
def test_callbacks_that_stay(hook, call):
    check_unchanged(CALLBACK.format(hook=hook, call=call), [], select=CODE)
