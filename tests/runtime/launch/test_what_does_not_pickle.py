"""What does not pickle is named with its path before a process starts; what pickles is left alone."""

import functools
import subprocess
import sys
import threading

import pytest
import torch
from launching import environment, run
from ptmigrate.runtime import Module, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.launch import pickling
from torch.utils.data import DataLoader, TensorDataset


class Lambda:
    """As a transforms library has it."""

    def __init__(self, lambd):
        self.lambd = lambd


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner


class Net(Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        self.transforms = [len, str, Lambda(abs)]


def double(x):
    return 2 * x


def local():
    def inner(x):
        return x

    class Inner(torch.nn.Module): ...

    return inner, Inner()


def faults(**roots):
    with pytest.raises(ConfigurationError) as caught:
        pickling.check("ddp_spawn", roots)
    return str(caught.value)


def changed(path, value):
    model = Net()
    if path == "transforms":
        model.transforms[2].lambd = value
    elif path == "net":
        model.net[1].activation = value
    elif path == "table":
        model.table = {"a": (1, value)}
    elif path == "partial":
        model.partial = functools.partial(double, key=value)
    else:
        model.slotted = Slotted(value)
    return model


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("transforms", "model.transforms[2].lambd: a lambda"),
        ("net", "model.net[1].activation: a lambda"),
        ("table", "model.table['a'][1]: a lambda"),
        ("partial", "model.partial.keywords['key']: a lambda"),
        ("slots", "model.slotted.inner: a lambda"),
    ],
)
def test_paths(path, named):
    assert named in faults(model=changed(path, lambda x: x))


def test_what_kinds_of_things():
    inner, module = local()
    assert "model.transforms[2].lambd: function inner is defined inside local()" in faults(
        model=changed("transforms", inner)
    )
    model = Net()
    model.part = module
    assert "class Inner is defined inside local()" in faults(model=model) and "model.part" in faults(model=model)
    model = Net()
    model.lock = threading.Lock()
    assert "model.lock: a _thread.lock" in faults(model=model)
    model = Net()
    model.state = (torch.ones(2, requires_grad=True) * 2).sum()
    assert "model.state: a tensor with a history" in faults(model=model)


def test_every_one_is_named_once():
    model = changed("transforms", lambda x: x)
    model.other = lambda x: x
    model.same = model.other
    told = faults(model=model, loader=DataLoader([1, 2], collate_fn=lambda batch: batch))
    assert told.count("a lambda") == 3 and "loader.collate_fn" in told


@pytest.mark.parametrize(
    "value",
    [
        abs,
        double,
        Lambda(double),
        functools.partial(double, 1),
        {"a": [torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2))]},
        torch.nn.Linear(2, 2),
        torch.device("cpu"),
        torch.float32,
        Net,
        DataLoader(TensorDataset(torch.ones(4, 2)), 2, shuffle=True),
    ],
)
def test_what_pickles_is_no_fault(value):
    pickling.check("ddp_spawn", {"value": value})


def test_a_trainer_and_its_module_pickle():
    trainer = Trainer(accelerator="cpu", devices=2, strategy="ddp_spawn", enable_progress_bar=True, logger=True)
    model = Net()
    model.trainer = trainer
    trainer.module = model
    pickling.check("ddp_spawn", {"trainer": trainer, "model": model})


SCRIPT = """
import torch
from ptmigrate.runtime import Module, Trainer
from torch.utils.data import DataLoader

class Net(Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(2, 2)
{before}
if __name__ == "__main__":
    class Late(torch.nn.Module): ...
    model = Net()
    {change}
    Trainer(accelerator="cpu", devices=2, strategy="ddp_spawn").fit(model, DataLoader(torch.ones(4, 2)))
"""


@pytest.mark.parametrize(
    ("before", "change", "says"),
    [
        ("", "model.late = Late()", "class Late is defined under `if __name__ == '__main__'`; move it above"),
        ("", "model.f = lambda x: x", "model.f: a lambda"),
        (
            "Trainer(accelerator='cpu', devices=2, strategy='ddp_spawn').fit(Net(), DataLoader(torch.ones(4, 2)))",
            "",
            "put line 10, which starts them, under `if __name__ == '__main__':`",
        ),
    ],
)
def test_scripts(tmp_path, before, change, says):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(before=before, change=change or "pass"))
    done = run(str(script))
    assert done.returncode == 1 and says in done.stderr
    assert "rank" not in done.stderr, "no process was started"


SESSION = """
from ptmigrate.runtime import Module, Trainer

class Net(Module):
    def training_step(self, batch, batch_idx): ...

Trainer(accelerator="cpu", devices=2, strategy="{}").fit(Net(), [])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "why"),
    [("ddp_spawn", "Net is defined in an interactive session"), ("ddp", "starts the script again")],
)
def test_an_interactive_session_is_told_what_works_there(strategy, why):
    session = {"input": SESSION.format(strategy), "capture_output": True, "text": True, "timeout": 120}
    told = subprocess.run([sys.executable, "-i", "-q"], env=environment(), **session).stderr
    assert why in told and "strategy 'ddp_fork'" in told
