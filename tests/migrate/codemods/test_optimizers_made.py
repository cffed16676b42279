"""T14: an optimizer of a kept loop is the runtime's, whatever makes it and whatever it is given: ranks stay alike."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text

from tests import forked

SCRIPT = """\
import os
from collections import namedtuple
import torch
from torch import nn

Spec = namedtuple("Spec", ["constructor", "kwargs"])
entropy = torch.Generator()
entropy.seed()  # what an environment draws by itself


def build(kind, params):
    return getattr(torch.optim, kind)(params, lr=0.1)


class Agent:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = SPEC.constructor(self.net.parameters(), **SPEC.kwargs)


SPEC = spec = Spec(torch.optim.SGD, dict(lr=0.1))
net = nn.Linear(3, 1)
params = [p for p in net.parameters() if p.requires_grad]
optimizer = MADE
t = 0
while t < 5:
    x = torch.randn(4, 3, generator=entropy)
    loss = (net(x) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    t += 1
with open(f"{os.environ.get('RANK')}.txt", "w") as file:
    file.write(str(net.weight.tolist()))
"""
LOOP = Options(plan="loop", ignore=("PTM410",))
MADE = [
    ("torch.optim.SGD(net.parameters(), lr=0.1)", ", net"),
    ("spec.constructor(net.parameters(), **spec.kwargs)", ", net"),
    ("build('SGD', net.parameters())", ", net"),
    ("torch.optim.SGD(params, lr=0.1)", ""),
    ("torch.optim.SGD([{'params': params}], lr=0.1)", ""),
    ("build('SGD', params)", ""),
    ("{'sgd': torch.optim.SGD}['sgd'](net.parameters(), lr=0.1)", ", net"),
]


@pytest.mark.parametrize(("made", "net"), MADE)
def test_it_is_the_runtimes(made, net):
    text = migrate_text(SCRIPT.replace("MADE", made), LOOP).text
    assert f"optimizer = runtime.setup_optimizer({made}{net})\n" in text
    assert migrate_text(text, LOOP).text == text


@pytest.mark.parametrize("made", [made for made, _ in MADE[1:4]])
def test_ranks_that_see_other_things_stay_alike(tmp_path, made):
    (tmp_path / "train.py").write_text(migrate_text(SCRIPT.replace("MADE", made), LOOP).text)
    two = forked.ptrun("--accelerator", "cpu", "--devices", "2", "--strategy", "ddp", "train.py", cwd=tmp_path)
    assert two.returncode == 0, two.stderr
    assert (tmp_path / "0.txt").read_text() == (tmp_path / "1.txt").read_text()


def test_one_that_an_object_keeps():
    text = SCRIPT.replace("optimizer = MADE", "agent = Agent()\nnet = agent.net").replace(
        "optimizer.", "agent.optimizer."
    )
    made = "SPEC.constructor(self.net.parameters(), **SPEC.kwargs)"
    assert f"= runtime.setup_optimizer({made}, self.net)\n" in migrate_text(text, LOOP).text


@pytest.mark.parametrize(
    "made",
    [
        "Trainer(net)",  # nothing shows that it is given parameters
        "Scheduled(torch.optim.SGD(net.parameters(), lr=0.1))",  # which has one that is
        "given(params)",
        "torch.optim.lr_scheduler.StepLR(other, 1)",
    ],
)
def test_others_stay(made):
    function = "def given(params):\n    return torch.optim.SGD(params, lr=0.1)\n\n\n"
    text = SCRIPT.replace("MADE", made).replace("SPEC = spec", f"{function}SPEC = spec")
    assert "optimizer = runtime.setup_optimizer(" not in migrate_text(text, LOOP).text


@pytest.mark.parametrize("gone", ["    optimizer.zero_grad()\n", "    optimizer.step()\n"])
def test_what_is_not_asked_as_one_stays(gone):
    text = SCRIPT.replace("MADE", "clipper(net.parameters())").replace(gone, "")
    assert "setup_optimizer(clipper" not in migrate_text(text, LOOP).text
