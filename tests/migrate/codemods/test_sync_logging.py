import pytest
from helpers import check, check_unchanged, migrated
from ptmigrate.migrate.migrate import Options
from ptmigrate.migrate.project import collect, migrate_all

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
            'self.log("a", a, False, True, False, True, "mean", False)',
            'self.log("a", a, False, True, False, True, "mean", False, sync_dist=True)',
        ),
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
        method("validation_step", 'self.log("a", a, False, True, False, True, "mean", False, True)'),
        method("validation_step", 'self.log_dict({"a": a}, False, True, False, True, "mean", False, True)'),
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
@pytest.mark.parametrize("call", ["net.log('a', b{})", "net.log_dict({{'a': b}}{})", "self.log('a', b{})"])
def test_callbacks_log_through_the_module(hook, call):
    before, after = (CALLBACK.format(hook=hook, call=call.format(s)) for s in ("", ", sync_dist=True"))
    check(before, after, ["PTM402 line 5"], [], select=CODE)


@pytest.mark.parametrize(
    ("hook", "call"),
    [
        ("on_train_epoch_end", "net.log('a', b)"),
        ("on_validation_epoch_end", "net.log('a', b, rank_zero_only=True)"),
        ("on_validation_epoch_end", "trainer.logger.log('a', b)"),
        ("on_train_epoch_end", "self.log('a', b)"),
    ],
)
def test_callbacks_that_stay(hook, call):
    check_unchanged(CALLBACK.format(hook=hook, call=call), [], select=CODE)


def test_a_log_of_the_callback_s_own_stays():
    own = CALLBACK.format(hook="on_validation_epoch_end", call="self.log('a', trainer)")
    check_unchanged(own + "    def log(self, name, value):\n        print(name, value)\n", [], select=CODE)


def several(*bodies: str) -> str:
    """Text before the class, and its methods."""
    before, *methods = bodies
    own = HEAD.replace("class Lit", before + "class Lit") if before else HEAD
    return own + "".join(f"    {line}\n" for m in methods for line in m.splitlines())


VALIDATES = "def validation_step(self, batch, batch_idx):\n    {}"
TRAINS = "def training_step(self, batch, batch_idx):\n    {}"
WRITTEN = "def write(module, loss):\n    module.log('loss', loss{})\n"


@pytest.mark.parametrize(
    ("calls", "when"),
    [
        (["write(self, 1)"], ", sync_dist=True"),
        (["write(loss=1, module=self)"], ", sync_dist=True"),
        (["write(self, 1)", "write(self, 2)"], ", sync_dist=not module.training"),
    ],
)
def test_a_function_that_is_handed_the_module(calls, when):
    methods = [form.format(call) for form, call in zip((VALIDATES, TRAINS), calls, strict=False)]
    check(several(WRITTEN.format(""), *methods), several(WRITTEN.format(when), *methods), select=CODE)


def test_a_helper_of_a_callback():
    text = (
        HEAD + "    pass\n\nclass Watch(pl.Callback):\n    def on_validation_epoch_end(self, trainer, pl_module):\n"
        "        self.show(pl_module)\n    def show(self, m):\n        m.log('a', 1.0)\n"
    )
    check(text, text.replace("1.0)", "1.0, sync_dist=True)"), select=CODE)


def test_a_function_that_only_training_hands_the_module_to():
    check_unchanged(several(WRITTEN.format(""), TRAINS.format("write(self, 1)"), VALIDATES.format("write(0, 1)")))


def test_log_by_a_partial():
    text = several("from functools import partial\n", VALIDATES.format("log = partial(self.log, on_epoch=True)"))
    check(text, text.replace("on_epoch=True", "on_epoch=True, sync_dist=True"), select=CODE)


def test_log_that_is_handed_on_is_told():
    told = ["PTM402 line 6: `self.log` in validation_step is handed on: whether it has sync_dist does not show"]
    check_unchanged(method("validation_step", "write(self.log, batch)"), told)
    assert not check_unchanged(method("training_step", "write(self.log, batch)")).attention


def test_what_rank_zero_alone_runs_is_not_made_to_wait_for_the_others():
    guarded = "@rank_zero_only\ndef show(self, value):\n    self.log('a', value)"
    source = several("from utils import rank_zero_only\n", guarded, VALIDATES.format("self.show(1)"))
    check_unchanged(source, select=CODE)


@pytest.mark.parametrize("call", ["self.validation_step(batch, 0)", "super().validation_step(batch, 0)"])
def test_a_step_that_training_calls(call):
    text = several("", VALIDATES.format("self.log('a', batch)"), TRAINS.format(f"return {call}"))
    check(text, text.replace("'a', batch)", "'a', batch, sync_dist=not self.training)"), select=CODE)


@pytest.mark.parametrize(
    "made",
    [
        "self.other, self.acc = 1, torchmetrics.Accuracy()",
        "self.acc: torchmetrics.Metric = torchmetrics.Accuracy()",
        "self.acc['a'] = torchmetrics.Accuracy()",
    ],
)
def test_metric_objects_however_they_are_kept(made):
    what = "self.acc['a']" if "[" in made else "self.acc"
    check_unchanged(several("", f"def __init__(self):\n    {made}", VALIDATES.format(f"self.log('x', {what})")))


def test_a_function_that_gives_the_module_another_name():
    said = "\n\ndef say(module, x):\n    m = module\n    m.log('x', x{given})\n"
    step = method("validation_step", "say(self, 1)")
    check(step + said.format(given=""), step + said.format(given=", sync_dist=True"), select=CODE)


@pytest.mark.parametrize("what", ["log", "log_dict"])
def test_log_by_its_text_is_told(what):
    check_unchanged(method("validation_step", f'getattr(self, "{what}")("a", b)'), [f"{CODE} line 6"], select=CODE)


@pytest.mark.parametrize(
    "got", ['getattr(other, "log")', 'getattr(self, "table")', "getattr(self, name)", "getattr(*a)"]
)
def test_what_else_is_got_by_its_text(got):
    check_unchanged(method("validation_step", f'{got}("a", b)'), [], select=CODE)


WATCH = HEAD + "    pass\n\nclass Watch(pl.Callback):\n    def on_validation_epoch_end(self, trainer, module):\n"


@pytest.mark.parametrize("lines", [["m = module", "m.log('a', 1.0{})"], ["trainer.lightning_module.log('a', 1.0{})"]])
def test_the_module_of_a_callback_by_other_names(lines):
    text = WATCH + "".join(f"        {line}\n" for line in lines)
    check(text.format(""), text.format(", sync_dist=True"), select=CODE)


@pytest.mark.parametrize("what", ["getattr(module, 'log')('a', 1)", "getattr(trainer.lightning_module, 'log')('a', 1)"])
def test_what_a_callback_logs_by_its_text_is_told(what):
    check_unchanged(WATCH + f"        {what}\n", [f"{CODE} line 9"], select=CODE)


@pytest.mark.parametrize(
    "what", ["trainer.log('a', 1)", "trainer.logger.log('a', 1)", "getattr(trainer, 'log')('a', 1)"]
)
def test_what_else_a_callback_calls(what):
    check_unchanged(WATCH + f"        {what}\n", [], select=CODE)


@pytest.mark.parametrize("call", ["self.say(self, 1)", "Lit.say(self, 1)", "self.say(module=self, x=1)"])
def test_a_static_helper(call):
    helper = "    @staticmethod\n    def say(module, x):\n        module.log('x', x{})\n"
    text = HEAD + helper.replace("{}", "%s") + f"    def validation_step(self, batch, batch_idx):\n        {call}\n"
    check(text % "", text % ", sync_dist=True", select=CODE)


def test_by_the_class():
    text = method("test_step", "pl.LightningModule.log(self, 'a', 1{})", "pl.LightningModule.log(other, 'a', 1)")
    check(text.format(""), text.format(", sync_dist=True"), select=CODE)


def test_arguments_that_do_not_show_are_told():
    told = [f"{CODE} line 6: `self.log(*pair)` in validation_step"]
    check_unchanged(method("validation_step", "for pair in pairs: self.log(*pair)"), told, select=CODE)


ANOTHER_NAME = (
    ("def __init__(self):\n        self.note = functools.partial(self.log, on_epoch=True)", True),
    ("note = functools.partialmethod(pl.LightningModule.log, on_epoch=True)", True),
    ("note = pl.LightningModule.log", True),
    ("def __init__(self):\n        self.note = functools.partial(self.log, sync_dist=True)", False),
    ("note = functools.partialmethod(print, on_epoch=True)", False),
)


@pytest.mark.parametrize(("made", "logs"), ANOTHER_NAME)
def test_another_name_of_log_in_the_class(made, logs):
    source = "import functools\n" + method("validation_step", 'self.note("loss", loss)') + f"    {made}\n"
    after = source.replace("loss)", "loss, sync_dist=True)") if logs else source
    if logs:
        check(source, after)
    else:
        check_unchanged(source, [])
    training = source.replace("validation_step", "training_step")
    check_unchanged(training, [])


def test_metrics_of_a_loop_over_several():
    metrics = "    def __init__(self):\n        self.accs = torch.nn.ModuleList([torchmetrics.Accuracy()])\n"
    for loop in ("m in self.accs", "n, m in enumerate(self.accs)", "n, m in zip('ab', self.accs)"):
        source = method("validation_step", f"for {loop}:", "    self.log('a', m)") + metrics
        check_unchanged(source, [])
    other = method("validation_step", "for n, m in zip(self.accs, batch):", "    self.log('a', m)") + metrics
    check(other, other.replace("'a', m)", "'a', m, sync_dist=True)"))


def test_a_module_by_another_name():
    text = method("validation_step", "{}").replace("(self,", "(this,")
    check(text.format('this.log("a", 1)'), text.format('this.log("a", 1, sync_dist=True)'), select=CODE)


@pytest.mark.parametrize("mark", ["staticmethod", "classmethod"])
def test_the_first_parameter_of_what_is_no_method(mark):
    text = method("validation_step", 'this.log("a", 1)').replace("(self,", "(this,")
    check_unchanged(text.replace("    def validation", f"    @{mark}\n    def validation"))


BASE = """\
import torch
from ptmigrate.runtime import Module


class Base(Module):
    def report(self, stage, loss):
        self.log(stage + "/loss", loss)

    def spread(self, loss):
        return torch.var(loss)
"""
DERIVED = """\
import torch
from base import Base


class Model(Base):
    def validation_step(self, batch, batch_idx):
        self.report("val", self(batch).mean())

    def on_validation_epoch_end(self):
        self.log("all", torch.ones(1))
"""


def test_a_base_class_of_another_file_logs_for_the_steps_of_this_one(tmp_path):
    (tmp_path / "base.py").write_text(BASE)
    (tmp_path / "model.py").write_text(DERIVED)
    done = {m.path.name: m for m in migrate_all(collect([tmp_path / "model.py"]), Options())}
    assert b'self.log(stage + "/loss", loss, sync_dist=not self.training)' in done["base.py"].data
    assert b'self.log("all", torch.ones(1), sync_dist=True)' in done["model.py"].data
    for m in done.values():
        m.path.write_bytes(m.data)
    again = {m.path.name: m.data for m in migrate_all(collect([tmp_path / "model.py"]), Options())}
    assert again == {name: m.data for name, m in done.items()}


def test_by_itself_it_shows_no_step_that_would(tmp_path):
    assert migrated(BASE, "PTM402").text == BASE
