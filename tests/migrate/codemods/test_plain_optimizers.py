# ruff: noqa: E501
import pytest
from helpers import check, check_unchanged, migrated

HEAD = """\
import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
"""
INIT = 'dist.init_process_group("nccl")\n'
ZERO = "o = ZeroRedundancyOptimizer(ps, torch.optim.Adam)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("o = ZeroRedundancyOptimizer(ps, optimizer_class=torch.optim.Adam, lr=0.1)", "o = torch.optim.Adam(ps, lr=0.1)"),
        ("o = ZeroRedundancyOptimizer(ps, torch.optim.SGD, None, lr=lr, **kw)  # parts", "o = torch.optim.SGD(ps, lr=lr, **kw)  # parts"),
        ("o = ZeroRedundancyOptimizer(\n    params=ps,\n    optimizer_class=A if a else B,\n    overlap_with_ddp=False,\n    lr=1,\n)", "o = (A if a else B)(\n    params=ps,\n    lr=1,\n)"),
        ("if z:\n    o = ZeroRedundancyOptimizer(m(), optimizer_class=Adam, lr=0.1)\nelse:\n    o = Adam(m(), lr=0.1)\ngo(o)", "o = Adam(m(), lr=0.1)\ngo(o)"),
        ("if z:\n    o = ZeroRedundancyOptimizer(m(), optimizer_class=Adam, lr=0.1)\nelse:\n    o = Adam(m(), lr=0.2)", "if z:\n    o = Adam(m(), lr=0.1)\nelse:\n    o = Adam(m(), lr=0.2)"),
        ("if z():\n    o = ZeroRedundancyOptimizer(m, Adam)\nelse:\n    o = Adam(m)", "if z():\n    o = Adam(m)\nelse:\n    o = Adam(m)"),
        (ZERO + "o.consolidate_state_dict(to=0)\ngo(o)", "o = torch.optim.Adam(ps)\ngo(o)"),
        (ZERO + "if isinstance(o, ZeroRedundancyOptimizer):\n    o.consolidate_state_dict()\ngo(o)", "o = torch.optim.Adam(ps)\ngo(o)"),
        (ZERO + "if late:\n    o.consolidate_state_dict()\n    go(o)", "o = torch.optim.Adam(ps)\nif late:\n    go(o)"),
    ],
)  # fmt: skip
def test_the_optimizer_that_it_divides(before: str, after: str) -> None:
    """It asks for a process group, which a plain script has not: the result ended there, and nothing was told."""
    check(HEAD + INIT + before + "\n", HEAD + after + "\n")


@pytest.mark.parametrize(
    "source",
    [
        "o = torch.optim.Adam(ps, lr=0.1)",
        "class ZeroRedundancyOptimizer:\n    pass\no = ZeroRedundancyOptimizer(ps, torch.optim.Adam)",
        "def consolidate(o):\n    o.consolidate_state_dict(to=0)",
        "print('ZeroRedundancyOptimizer')",
        "k = isinstance(o, ZeroRedundancyOptimizer)",
    ],
)
def test_others_stay(source: str) -> None:
    check_unchanged(HEAD + source + "\n", attention=[])


@pytest.mark.parametrize(
    ("head", "source"),
    [
        (INIT, "o = ZeroRedundancyOptimizer(ps, Adam, overlap_with_ddp=True)"),
        (INIT, "o = ZeroRedundancyOptimizer(ps, **kw)"),
        (INIT, "o = ZeroRedundancyOptimizer(*given)"),
        ("", "o = ZeroRedundancyOptimizer(ps, Adam)"),
    ],
)
def test_what_stays_is_told_of(head: str, source: str) -> None:
    result = migrated(HEAD + head + source + "\n")
    assert source in result.text
    assert [n.line for n in result.attention] == [HEAD.count("\n") + head.count("\n") + 1]
