import pytest
from helpers import dedent
from ptmigrate.migrate.codemods.base import apply
from ptmigrate.migrate.codemods.once import Once
from ptmigrate.migrate.facts.script import Facts


def once(source: str) -> str:
    facts = Facts(dedent(source))
    return apply(facts, list(Once().plan(facts)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("print('a', 1)", "rank_zero_print('a', 1)"),
        ("import sys\nprint(1, file=sys.stderr)", "import sys\nrank_zero_print(1, file=sys.stderr)"),
        ("import torch\ntorch.save(a, b)", "import torch\nrank_zero_save(a, b)"),
        ("from torch import save\nsave(a, b)", "from torch import save\nrank_zero_save(a, b)"),
        (
            "from torch.utils.tensorboard import SummaryWriter as W\nwith W('runs') as w:\n    pass",
            "from torch.utils.tensorboard import SummaryWriter as W\nwith on_rank_zero(W)('runs') as w:\n    pass",
        ),
        ("import wandb\nrun = wandb.init()", "import wandb\nrun = on_rank_zero(wandb.init)()"),
        ("import wandb\nwandb.log({'a': f(1)})", "import wandb\non_rank_zero(wandb.log)({'a': f(1)})"),
        (
            "import torchvision.utils as v\nv.save_image(x, 'a.png')",
            "import torchvision.utils as v\non_rank_zero(v.save_image)(x, 'a.png')",
        ),
        ("import torch as t\nif x:\n    t.save(a, b)", "import torch as t\nif x:\n    rank_zero_save(a, b)"),
    ],
)
def test_rank_0_does_it(before, after):
    assert once(before) == after
    assert once(after) == after


@pytest.mark.parametrize(
    "source",
    [
        "print(1, file=log)",
        "def print(x):\n    pass\nprint(1)",
        "def f(print):\n    print(1)",
        "from rich import print\nprint(1)",
        "logger.print(1)",
        "map(print, xs)",
        "import torch\nf(torch.save(a, b))",
        "import torch\nif trainer.is_global_zero:\n    torch.save(a, b)",
        "import numpy\nnumpy.save(a, b)",
        "model.save(a)",
        "import wandb\nx = wandb.Image(y)",
        "from torchvision.utils import save_image\nx = save_image(y)",
        "import wandb\nif rank == 0:\n    wandb.init()",
        "class SummaryWriter:\n    pass\nw = SummaryWriter()",
        "writer.log(1)",
        "save(a, b)",
    ],
)
def test_unchanged(source):
    assert once(source) == source
