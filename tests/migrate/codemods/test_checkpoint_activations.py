"""T12: what is asked for is wrapped, and batch norm counts once where it counted twice."""

import pytest
from helpers import check, check_unchanged, migrated
from ptmigrate.migrate.migrate import Options, migrate_text

HEAD = "import torch.nn as nn\nfrom torch.utils.checkpoint import checkpoint\n\n\n"
WITH = "from fairscale.nn import checkpoint_wrapper\n"


def net(made: str, called: str) -> str:
    return HEAD + (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        {made}\n\n    def forward(self, x):\n        {called}\n"
    )


BLOCK = "nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))"


@pytest.mark.parametrize(
    ("called", "after"),
    [
        ("return checkpoint(self.block, x)", "return self.block(x)"),
        ("return checkpoint(self.block, x, use_reentrant=False).relu()", "return self.block(x).relu()"),
        ("return checkpoint(self.block, x, preserve_rng_state=False)", "return self.block(x)"),
    ],
)
def test_a_part_with_batch_norm_is_wrapped(called, after):
    check(
        net(f"self.block = {BLOCK}", called),
        WITH + net(f"self.block = checkpoint_wrapper({BLOCK})", after),
        ["PTM520 line 8: `self.block` is wrapped", "PTM520 line 11: `checkpoint(self.block, x"],
        select="PTM520",
    )


def test_batch_norm_in_a_class_of_the_file_is_seen():
    part = "class Block(nn.Module):\n    def __init__(self):\n        self.n = nn.BatchNorm2d(3)\n"
    source = net("self.block = Block()", "return checkpoint(self.block, x)") + "\n\n" + part
    assert "self.block = checkpoint_wrapper(Block())" in migrated(source, "PTM520").text


def test_without_batch_norm_checkpoint_stays_and_does_not_reenter():
    check(
        net("self.block = nn.Linear(4, 4)", "return checkpoint(self.block, x)"),
        net("self.block = nn.Linear(4, 4)", "return checkpoint(self.block, x, use_reentrant=False)"),
        select="PTM520",
    )


@pytest.mark.parametrize(
    ("made", "after"),
    [
        (f"self.block = {BLOCK}", f"self.block = checkpoint_wrapper({BLOCK})"),
        (
            "self.block = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])",
            "self.block = nn.ModuleList([checkpoint_wrapper(nn.Linear(4, 4)) for _ in range(3)])",
        ),
        (
            "self.block = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 2)])",
            "self.block = nn.ModuleList([checkpoint_wrapper(nn.Linear(4, 4)), checkpoint_wrapper(nn.Linear(4, 2))])",
        ),
    ],
)
def test_what_is_asked_for_by_name_is_wrapped(made, after):
    source = net(made, "return x")
    result = migrate_text(source, Options(checkpoint=("block",)), is_script=False)
    assert result.text == WITH + net(after, "return x")
    assert migrate_text(result.text, Options(checkpoint=("block",)), is_script=False).text == result.text
    assert migrate_text(source, Options(), is_script=False).text == source


@pytest.mark.parametrize(
    ("made", "called"),
    [
        ("self.block = nn.Linear(4, 4)", "return checkpoint(self.block, x, use_reentrant=True)"),
        ("self.block = nn.Linear(4, 4)", "return checkpoint(self.block, x, **how)"),
        (f"self.block = {BLOCK}", "return self.block(x)"),
        ("self.block = nn.Linear(4, 4)", "return self.checkpoint(x)"),
        (f"self.block = checkpoint_wrapper({BLOCK})", "return self.block(x)"),
    ],
)
def test_unchanged(made, called):
    check_unchanged(net(made, called), [], select="PTM520")


def test_a_part_that_is_also_called_without_is_told():
    source = net(
        f"self.block = {BLOCK}",
        "return checkpoint(self.block, x, use_reentrant=False) if self.training else self.block(x)",
    )
    check_unchanged(source, ["PTM520 line 11"], select="PTM520")


def test_statistics_are_counted_once_and_values_stay():
    pytest.importorskip("fairscale")
    import torch

    source = net(f"self.block = {BLOCK}", "return checkpoint(self.block, x, use_reentrant=False)")
    nets = []
    for text in (source, migrated(source).text):
        space: dict = {}
        exec(text, space)
        torch.manual_seed(0)
        nets.append(space["Net"]())
    x = torch.randn(6, 4)
    before, after = (n(x.clone().requires_grad_()) for n in nets)
    assert torch.equal(before, after) and list(nets[0].state_dict()) == list(nets[1].state_dict())
    before.pow(2).sum().backward()
    after.pow(2).sum().backward()
    for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)
    counted = [n.block[1].num_batches_tracked.item() for n in nets]
    assert counted == [2, 1], "torch's checkpoint counts twice, the wrapper once"
