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
        "save(a, b)",
    ],
)
def test_unchanged(source):
    assert once(source) == source
