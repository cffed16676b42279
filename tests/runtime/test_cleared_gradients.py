"""A backward of the script's own that searches for something, a perturbation of the inputs, whose gradients of the
weights are cleared before the one that counts: by the step itself, or by the Trainer.
"""

import importlib.util
import re

import pytest

from tests.forked import ptrun

SCRIPT = """
import torch
from ptmigrate.runtime import Module, Trainer


class M(Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.automatic_optimization = False
        self.net, self.other = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9, weight_decay=0.5)

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        SEARCH
        self.manual_backward(self.net(batch + perturbed).square().mean())
        optimizer.step()


def search(m, batch):
    d = torch.zeros_like(batch).requires_grad_()
    (m.net(batch + d).square() + m.other(batch + d)).mean().backward()
    return 0.1 * d.grad.sign()


torch.manual_seed(1)
module = M()
Trainer(max_epochs=2, enable_progress_bar=False, logger=False).fit(
    module, torch.utils.data.DataLoader(torch.randn(14, 3), 4)
)
module.print(*(f"{p.sum():.6f}" for p in module.parameters()))
"""
CLEARED = "perturbed = search(self, batch); optimizer.zero_grad(set_to_none=NONE)"
TWO = ("--devices", "2", "--strategy", "ddp", "--global-batch")


def trained(folder, search, *options, limit=120):
    script = folder / "train.py"
    script.write_text(SCRIPT.replace("SEARCH", search))
    return ptrun("--accelerator", "cpu", *options, str(script), limit=limit)


def numbers(done):
    assert done.returncode == 0, done.stderr
    return [float(n) for n in re.findall(r"-?\d+\.\d+", done.stdout.splitlines()[-1])]


@pytest.mark.parametrize("none", ["True", "False"])
def test_gradients_that_are_cleared_again_are_of_no_step(tmp_path, none):
    search = CLEARED.replace("NONE", none)
    one, two = (numbers(trained(tmp_path, search, *options)) for options in ((), TWO))
    assert len(one) == 4 and two == pytest.approx(one, abs=1e-5)


AUTOMATIC = """        perturbed = search(self, batch)
        return self.net(batch + perturbed).square().mean()
"""


@pytest.fixture
def automatic(tmp_path):
    body = SCRIPT.index("        optimizer = self.optimizers()"), SCRIPT.index("\n\ndef search")
    script = tmp_path / "train.py"
    text = SCRIPT[: body[0]] + AUTOMATIC + SCRIPT[body[1] :]
    script.write_text(text.replace("        self.automatic_optimization = False\n", ""))
    return lambda *options: ptrun("--accelerator", "cpu", *options, str(script), limit=240)


PACKAGES = {"ddp_sharded": "fairscale", "horovod": "horovod"}


def needs(package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


@pytest.mark.parametrize(
    "strategy", ["ddp", "dp", "fsdp", "bagua", *(pytest.param(p, marks=pytest.mark.slow) for p in PACKAGES)]
)
def test_a_trainer_clears_them(automatic, strategy):
    needs(PACKAGES.get(strategy, "torch"))
    one, two = (
        numbers(automatic(*more)) for more in ((), ("--devices", "2", "--strategy", strategy, "--global-batch"))
    )
    assert len(one) == 4 and two == pytest.approx(one, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["", "_stage_3"])
def test_an_engine_that_would_take_them_refuses(automatic, stage):
    needs("deepspeed")
    done = automatic("--devices", "2", "--strategy", "deepspeed" + stage, "--global-batch")
    assert done.returncode != 0 and "a step calls backward() itself" in done.stderr


@pytest.mark.parametrize(
    "search",
    [
        "optimizer.zero_grad(); perturbed = search(self, batch)",
        CLEARED.replace("NONE", "True") + "; search(self, batch)",
    ],
)
def test_what_would_reach_the_step_is_refused(tmp_path, search):
    done = trained(tmp_path, search, *TWO)
    assert done.returncode != 0
    assert "call self.manual_backward(loss) in place of loss.backward()" in done.stderr
