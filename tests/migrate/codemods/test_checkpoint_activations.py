# ruff: noqa: E501
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
ONCE = "from ptmigrate.runtime import batch_norm_once\n"
COUNTED = "use_reentrant=False, context_fn=batch_norm_once"


def once(source: str, called: str, after: str, name: str = "batch_norm_once") -> tuple[str, str]:
    """A source and its result: the import after the others, and the call."""
    first = source.index("\n\n\n") + 1
    result = source[:first] + f"from ptmigrate.runtime import {name}\n" + source[first:]
    return source, result.replace(called, after)


@pytest.mark.parametrize(
    ("called", "after"),
    [
        ("checkpoint(self.block, x)", f"checkpoint(self.block, x, {COUNTED})"),
        ("checkpoint(self.block, x, use_reentrant=False)", f"checkpoint(self.block, x, {COUNTED})"),
        ("checkpoint(self.block, x, use_reentrant=True)", f"checkpoint(self.block, x, {COUNTED})"),
        ("checkpoint(lambda t: self.block(t) + 1, x)", f"checkpoint(lambda t: self.block(t) + 1, x, {COUNTED})"),
        ("checkpoint(self.parts, x)", f"checkpoint(self.parts, x, {COUNTED})"),
        (
            "checkpoint(self.block, x) if self.training else self.block(x)",
            f"checkpoint(self.block, x, {COUNTED}) if self.training else self.block(x)",
        ),
    ],
)
def test_batch_norm_in_a_part_counts_once(called, after):
    source = (
        net(f"self.block = {BLOCK}", f"return {called}") + "\n    def parts(self, x):\n        return self.block(x)\n"
    )
    check(*once(source, called, after), ["PTM520 line 11: `checkpoint("], select="PTM520")


@pytest.mark.parametrize(
    "part",
    [
        "class Block(nn.Module):\n    def __init__(self):\n        self.n = nn.BatchNorm2d(3)\n",
        "class Block(nn.Module):\n    def __init__(self, norm=nn.BatchNorm2d):\n        self.n = norm(3)\n",
        "class Block(nn.Module):\n    def __init__(self):\n        self.add_module('n', nn.SyncBatchNorm(3))\n",
        "def Block():\n    return nn.Sequential(nn.BatchNorm1d(3))\n",
        "from blocks import Block\n",
        "from .blocks import Block\n",
        "from torchvision.models import resnet18 as Block\n",
    ],
)
def test_batch_norm_is_seen_where_a_part_is_made(part):
    source = net("self.block = Block()", "return checkpoint(self.block, x)") + "\n\n" + part
    assert f"checkpoint(self.block, x, {COUNTED})" in migrated(source, "PTM520").text


@pytest.mark.parametrize(
    "called",
    [
        "for layer in self.layers:\n            x = checkpoint(layer, x)",
        "def run(t):\n            return self.layers[0](t)\n\n        x = checkpoint(run, x)",
        "x = checkpoint(self.layers[0], x)",
        "x = checkpoint(make(self.layers[0]), x)",
    ],
)
def test_batch_norm_is_seen_through_variables_and_functions(called):
    assert COUNTED in migrated(net(f"self.layers = nn.ModuleList([{BLOCK}])", called), "PTM520").text
    without = migrated(net("self.layers = nn.ModuleList([nn.LayerNorm(4)])", called), "PTM520").text
    assert "use_reentrant=False)" in without and "batch_norm" not in without


def test_segments_and_partial():
    source = net(f"self.block = {BLOCK}", "return checkpoint_sequential(self.block, 2, x)")
    source = source.replace("import checkpoint", "import checkpoint_sequential")
    called = "return checkpoint_sequential("
    check(*once(source, called, "return checkpoint_segments(", "checkpoint_segments"), select="PTM520")
    source = net("self.block = nn.Linear(4, 4)", "return checkpoint_sequential(self.block, 2, x)")
    source = source.replace("import checkpoint", "import checkpoint_sequential")
    check(source, source.replace("2, x)", "2, x, use_reentrant=False)"), select="PTM520")
    source = net(f"self.block = {BLOCK}", "return again(self.block, x)")
    source = "import functools\n" + source.replace("\n\n\n", "\n\nagain = functools.partial(checkpoint)\n\n\n", 1)
    assert f"functools.partial(checkpoint, {COUNTED})" in migrated(source, "PTM520").text


def test_the_wrapper_of_torch():
    wrapper = "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper\n"
    source = "import torch.nn as nn\n" + wrapper + f"\n\nblock = checkpoint_wrapper({BLOCK})\n"
    check(*once(source, "Norm1d(4)))", "Norm1d(4)), context_fn=batch_norm_once)"), select="PTM520")
    reenters = source.replace("4)))", "4)), checkpoint_impl=CheckpointImpl.REENTRANT)")
    check_unchanged(reenters, ["PTM520 line 5"], select="PTM520")
    check_unchanged(source.replace(BLOCK, "nn.Linear(4, 4)"), [], select="PTM520")


def test_for_lightning_it_is_told():
    source = net(f"self.block = {BLOCK}", "return checkpoint(self.block, x)")
    result = migrate_text(source, Options(framework="lightning", ignore=("PTM690",)), is_script=False)
    assert "ptmigrate" not in result.text and "checkpoint(self.block, x, use_reentrant=False)" in result.text
    assert [n.message.split(": ")[1][:20] for n in sorted(result.attention)] == [
        "batch norm counts it",
        "where no input of it",
    ]


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
        (f"self.block = {BLOCK}", "return checkpoint(self.block, x, use_reentrant=False, context_fn=mine)"),
        (f"self.block = {BLOCK}", "return self.block(x)"),
        ("self.block = nn.Linear(4, 4)", "return self.checkpoint(x)"),
        (f"self.block = checkpoint_wrapper({BLOCK})", "return self.block(x)"),
    ],
)
def test_unchanged(made, called):
    check_unchanged(net(made, called), [], select="PTM520")


@pytest.mark.parametrize(
    "called",
    [
        "checkpoint = plain\n        return checkpoint(self.block, x)",
        "def go(checkpoint):\n            return checkpoint(self.block, x)\n        return go(plain)",
        "run = lambda checkpoint: checkpoint(self.block, x)\n        return run(plain)",
        "from mine import checkpoint\n        return checkpoint(self.block, x)",
        "import jax\n        return jax.checkpoint(self.block)(x)",
        "import torch\n        with torch.utils.checkpoint.set_checkpoint_early_stop(False):\n            return self.block(x)",
        "x.save('checkpoint')\n        return self.block(x)",
        "return self.block(x)  # checkpoint(self.block, x)",
        "print('checkpoint(self.block, x)')\n        return self.block(x)",
        "from deepspeed import checkpointing\n        return checkpointing.checkpoint(self.block, x)",
        "from fairscale.nn import checkpoint_wrapper\n        return checkpoint_wrapper(self.block)(x)",
        "for checkpoint in self.files:\n            checkpoint(self.block, x)\n        return x",
        "return [checkpoint(self.block) for checkpoint in x]",
        "import tensorflow as tf\n        return tf.train.Checkpoint(self.block)",
        "return x.checkpoint(self.block, x)",
        "return self.checkpoint.checkpoint(self.block, x)",
        "import functools\n        return functools.partial(checkpoint, use_reentrant=False, context_fn=mine)(self.block, x)",
        "with open('a') as checkpoint:\n            return checkpoint(self.block, x)",
        "if (checkpoint := self.saved):\n            x = checkpoint(self.block, x)\n        return x",
    ],
)
def test_what_is_not_torchs_checkpoint_is_left(called):
    check_unchanged(net(f"self.block = {BLOCK}", called), [], select="PTM520")


@pytest.mark.parametrize(
    ("made", "called"),
    [
        ("self.block = nn.Linear(4, 4)", "return checkpoint(self.block, x, use_reentrant=False)"),
        (
            "self.block = nn.GroupNorm(2, 4)",
            "return checkpoint(self.block, x, use_reentrant=False, preserve_rng_state=False)",
        ),
        ("self.block = nn.LayerNorm(4)", "return checkpoint(function=self.block, x=x, use_reentrant=False)"),
        (
            "self.blocks = nn.ModuleList([nn.LayerNorm(4)])",
            "for b in self.blocks:\n            x = checkpoint(b, x, use_reentrant=False)\n        return x",
        ),
        (
            "self.block = nn.Linear(4, 4)",
            "from torch.utils.checkpoint import checkpoint_sequential\n        return checkpoint_sequential(self.block, 2, x, use_reentrant=False)",
        ),
        (
            "self.block = nn.Linear(4, 4)",
            "import torch.utils.checkpoint as c\n        return c.checkpoint(self.block, x, use_reentrant=False)",
        ),
        ("self.block = nn.Linear(4, 4)", "return checkpoint(lambda t: self.block(t) + t, x, use_reentrant=False)"),
        (
            "self.block = nn.Linear(4, 4)",
            "return checkpoint(self.block, x, use_reentrant=True) if x.requires_grad else self.block(x)",
        ),
        ("self.block = nn.InstanceNorm1d(4)", "return checkpoint(self.block, x, use_reentrant=False)"),
        ("self.checkpoint = checkpoint_path", "return x + len(self.checkpoint)"),
        ("self.block = nn.utils.weight_norm(nn.Linear(4, 4))", "return checkpoint(self.block, x, use_reentrant=False)"),
        (
            "self.block = nn.Sequential(nn.Linear(4, 4), nn.Dropout())",
            "return checkpoint(self.block, x, use_reentrant=False)",
        ),
        (
            "self.block = nn.TransformerEncoderLayer(4, 2)",
            "return checkpoint(self.block, x, None, None, use_reentrant=False)",
        ),
    ],
)
def test_what_counts_nothing_and_does_not_reenter_is_left(made, called):
    check_unchanged(net(made, called), [], select="PTM520")


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        ("self.act, self.block = nn.ReLU(), nn.BatchNorm1d(4)", True),
        ("(self.block, self.act), self.k = (nn.BatchNorm1d(4), nn.ReLU()), 3", True),
        ("self.block, self.act = nn.Linear(4, 4), nn.BatchNorm1d(4)", False),
        ("self.block, *self.rest = parts()", True),
    ],
)
def test_a_part_of_several_that_are_assigned_at_once(made, counts):
    """DenseNet's layers are: their statistics were counted twice, without a word."""
    source = net(made, "return checkpoint(self.block, x)") + "\n\ndef parts():\n    return nn.BatchNorm1d(4), 3\n"
    assert ("batch_norm_once" in migrated(source, "PTM520").text) is counts


def test_a_flag_is_no_batch_norm():
    """Nothing of the runtime's own comes into a file of layer norms alone."""
    made = "self.use_checkpoint = use_checkpoint\n        self.layers = nn.ModuleList([nn.LayerNorm(4)])"
    called = "for layer in self.layers:\n            x = checkpoint(layer, x) if self.use_checkpoint else layer(x)"
    source = net(made, called)
    flagged = source.replace("def __init__(self)", "def __init__(self, use_checkpoint=False)")
    given = source.replace("def __init__(self)", "def __init__(self, use_checkpoint)")
    assert "batch_norm_once" not in migrated(flagged, "PTM520").text
    assert "batch_norm_once" in migrated(given, "PTM520").text


@pytest.mark.parametrize(
    ("asked", "counts"), [(", track_running_stats=True", True), ("", False), (", 1e-5, 0.1, True", False)]
)
def test_instance_norm_counts_where_it_is_asked_to(asked, counts):
    source = net(f"self.block = nn.InstanceNorm1d(4{asked})", "return checkpoint(self.block, x)")
    assert ("batch_norm_once" in migrated(source, "PTM520").text) is counts


@pytest.mark.parametrize("called", ["checkpoint(self.block, x, **how)", "checkpoint(*parts)"])
def test_arguments_that_are_not_seen_are_told(called):
    check_unchanged(net(f"self.block = {BLOCK}", f"return {called}"), ["PTM520 line 11"], select="PTM520")


def test_a_name_of_the_script_is_kept():
    source = net(f"self.block = {BLOCK}", "return checkpoint(self.block, x)") + "\n\nbatch_norm_once = 1\n"
    check_unchanged(source, ["PTM520 line 11"], select="PTM520")


def notes(called: str, made: str = "self.block = nn.Linear(4, 4)", more: str = "") -> list[str]:
    source = HEAD + more + net(made, called).removeprefix(HEAD)
    return [n.message for n in migrated(source, "PTM520").attention]


@pytest.mark.parametrize(
    "called",
    [
        "return checkpoint(self.block, x)",
        "return checkpoint(self.block, self.block(x).detach())",
        "x = x.float()\n        return checkpoint(self.block, x)",
        "y = torch.ones(4)\n        return checkpoint(self.block, x, y)",
        "for part in self.parts:\n            x = checkpoint(part, x)",
    ],
)
def test_parameters_that_had_no_gradient_so_far_are_told(called):
    (told,) = notes(called)
    assert told.endswith("where no input of it needs a gradient, its parameters had none so far; now they have")


@pytest.mark.parametrize(
    "called",
    [
        "return checkpoint(self.block, x, use_reentrant=False)",
        "return checkpoint(self.block, x, use_reentrant=True)",
        "return checkpoint(self.block, self.block(x))",
        "x = self.block(x).relu()\n        return checkpoint(self.block, x)",
        "x = self.block(x)\n        for part in self.parts:\n            x = checkpoint(part, x)",
        "x = checkpoint(self.block, x, use_reentrant=False)\n        return checkpoint(self.block, x + 1)",
        "x.requires_grad_()\n        return checkpoint(self.block, x)",
        "x.requires_grad = True\n        return checkpoint(self.block, x)",
        "dummy = torch.ones(1, requires_grad=True)\n        return checkpoint(self.run, x, dummy)",
    ],
)
def test_an_input_that_needs_a_gradient_is_no_news(called):
    assert notes(called) == []


def test_weights_that_are_frozen_show_no_gradient():
    frozen = "self.block = nn.Linear(4, 4)\n        self.block.requires_grad_(False)"
    assert notes("return checkpoint(self.block, self.block(x))", frozen)
    assert notes(
        "return checkpoint(self.body, self.stem(x))", "self.stem = Stem()", "class Stem(nn.Module):\n    pass\n\n\n"
    )


@pytest.mark.parametrize(
    ("kept", "count"),
    [
        ("torch.ones(1, requires_grad=True)", 0),
        ("torch.ones(1).requires_grad_()", 0),
        ("torch.ones(1)", 1),
        ("torch.ones(1, requires_grad=flag)", 1),
    ],
)
def test_a_dummy_that_the_module_keeps(kept, count):
    assert len(notes("return checkpoint(self.run, x, self.dummy)", f"self.dummy = {kept}")) == count


@pytest.mark.parametrize(
    "more", ["RUN = {'yes': checkpoint}\n", "use(checkpoint)\n", "class A:\n    run = [checkpoint]\n"]
)
def test_a_checkpoint_that_is_handed_on_is_told(more):
    (told,) = notes("return x", more=more)
    assert told.startswith("`checkpoint`: where it is called is not seen")
    assert notes("return x", more="again = checkpoint\n") == []


def test_arguments_that_are_not_seen_and_do_not_reenter():
    asked = "return checkpoint(self.block, x, use_reentrant=False, **how)"
    assert notes(asked) == []
    (told,) = notes(asked, f"self.block = {BLOCK}")
    assert "without context_fn batch norm counts twice" in told


MANY = "nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)) for _ in range(3)])"


@pytest.mark.parametrize(
    "called",
    [
        "checkpoint(self.block, x, use_reentrant=False)",
        "checkpoint(self.block, x, use_reentrant=True)",
        "checkpoint(lambda t: self.block(t), x, use_reentrant=False)",
        "checkpoint(self.block, checkpoint(self.block, x, use_reentrant=False), use_reentrant=False)",
        "checkpoint_sequential(self.block, 2, x, use_reentrant=False)",
        "checkpoint_sequential(list(self.block), 3, x, True)",
    ],
)
def test_statistics_are_counted_once_and_values_stay(called):
    import torch

    source = net(f"self.block = {MANY}", f"return {called}").replace("import ch", "import checkpoint_sequential, ch")
    after, without = migrated(source).text, net(f"self.block = {MANY}", "return self.block(self.block(x))")
    without = (
        without if called.count("checkpoint(") > 1 else without.replace("self.block(self.block(x))", "self.block(x)")
    )
    nets = []
    for text in (source, after, without):
        space: dict = {}
        exec(text, space)
        torch.manual_seed(0)
        nets.append(space["Net"]())
    x, seen = torch.randn(6, 4), []
    for n in nets:
        torch.manual_seed(1)
        out = n(x.clone().requires_grad_())
        out.pow(2).sum().backward()
        seen.append((out, *(p.grad for p in n.parameters())))
    for a, b in zip(seen[0], seen[1], strict=True):
        assert torch.equal(a, b)
    before, once, plain = (dict(n.named_buffers()) for n in nets)
    assert all(torch.equal(once[k], plain[k]) for k in plain)
    assert any(not torch.equal(before[k], plain[k]) for k in plain), "torch's checkpoint counts twice"


OF_TORCH = "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import {}\nimport torch.nn as nn\n"
APPLY = "apply_activation_checkpointing"
TWICE = "batch norm in what it wraps counts its statistics twice"


@pytest.mark.parametrize(
    ("applied", "told"),
    [
        (f"{APPLY}(model, checkpoint_wrapper_fn=checkpoint_wrapper)", ["checkpoint_wrapper"]),
        (f"{APPLY}(model)", [APPLY]),
        (f"{APPLY}(model, checkpoint_wrapper_fn=mine)", []),
        ("wrap = checkpoint_wrapper", []),
    ],
)
def test_torchs_wrapper_that_is_handed_on_is_told_where_there_may_be_batch_norm(applied, told):
    head = OF_TORCH.format(f"{APPLY}, checkpoint_wrapper")
    source = f"{head}def build(model):\n    {applied}\n    return model, nn.BatchNorm1d(4)\n"
    check_unchanged(source, [f"PTM520 line 4: `{name}`: {TWICE}" for name in told], select="PTM520")
    check_unchanged(source.replace("BatchNorm1d", "LayerNorm"), [], select="PTM520")


def test_a_wrapper_that_may_be_fairscales_gets_no_argument_that_it_does_not_know():
    both = "try:\n    from fairscale.nn import checkpoint_wrapper\nexcept ImportError:\n    {}"
    source = both.format(OF_TORCH.format("checkpoint_wrapper")) + "m = checkpoint_wrapper(nn.BatchNorm1d(4))\n"
    told = "`checkpoint_wrapper(nn.BatchNorm1d(4))`: batch norm counts its statistics twice where it is torch's"
    check_unchanged(source, [f"PTM520 line 6: {told}"], select="PTM520")
    check_unchanged(source.replace("nn.BatchNorm1d", "nn.LayerNorm"), [], select="PTM520")


def test_deepspeeds_checkpoint_is_told_by_its_own_name():
    source = net(
        f"self.block = {BLOCK}", "import deepspeed\n        return deepspeed.checkpointing.checkpoint(self.block, x)"
    )
    told = "PTM420 line 12: `deepspeed.checkpointing.checkpoint(self.block, x)`: needs DeepSpeed's engine set up for it"
    check_unchanged(source, [told])
