"""DDPStrategy's options: they reach torch, what is exact stays exact, and what is left out is named."""

import pytest
import torch
from launching import run
from ptmigrate.runtime import DDPStrategy, Module, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.strategies import comm_hooks

from tests.forked import answers

EXACT = ["static", "small_buckets", "all_used", "unused_found", "unused_static", "allreduce"]
CLOSE = {"fp16": 1e-3, "post_localSGD": 0.1}


@pytest.fixture(scope="module")
def one():
    return answers("cells.py", 1, "single", "fit")["fit"]


@pytest.fixture(scope="module")
def two():
    return answers("ddp_options.py", 2)


def distance(found, expected):
    """The largest difference of weights; those of a layer that the reference does not have are left out."""
    pairs = zip(found["weights"], expected["weights"], strict=False)
    return max(abs(a - b) for f, e in pairs for a, b in zip(f, e, strict=True))


@pytest.mark.parametrize("case", EXACT)
def test_exact(one, two, case):
    assert distance(two[case], one) < 1e-6


@pytest.mark.parametrize("case", ["ByRank_1", "ByRank_3", "Half_1", "Half_3"])
def test_left_out_parameters_are_as_with_torchs_search(two, case):
    assert distance(two[case], two[f"{case}_searched"]) < 1e-7
    assert two[case]["ranks"][0] == two[case]["ranks"][1]


@pytest.mark.parametrize("case", CLOSE)
def test_compressed_hooks_are_close_and_do_something(one, two, case):
    assert 1e-8 < distance(two[case], one) < CLOSE[case]
    assert two[case]["ranks"][0] == two[case]["ranks"][1]


@pytest.mark.parametrize(
    ("case", "names"), [("unused_named", "extra.weight, extra.bias"), ("later_named", "extra.weight")]
)
def test_unused_parameters_are_named(two, case, names):
    assert f"did not use these parameters: {names}. " in two[case]["error"]
    assert "find_unused_parameters=True" in two[case]["error"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"ddp_comm_hook": "fp16_compres"}, "unknown communication hook 'fp16_compres'; did you mean 'fp16_compress'"),
        ({"ddp_comm_hook": "bf16"}, "needs NCCL; use 'fp16_compress'"),
        ({"ddp_comm_hook": "quantization_pertensor"}, "bytegrad"),
        ({"ddp_comm_hook": "powerSGD"}, "gloo can stop for good"),
        ({"ddp_comm_hook": "fp16", "ddp_comm_wrapper": "fp8"}, "unknown wrapper"),
        ({"bucket_cap_mb": -1}, "bucket_cap_mb=-1: MiB of gradients a message"),
        ({"find_unused_parameter": True}, "did you mean 'find_unused_parameters'"),
    ],
)
def test_refused(options, says):
    with pytest.raises(ConfigurationError, match=says):
        Trainer(accelerator="cpu", devices=2, strategy=DDPStrategy(**options))


def test_a_hook_that_would_do_nothing_is_refused():
    module = Module()
    module.automatic_optimization = False
    trainer = Trainer(accelerator="cpu", devices=2, strategy=DDPStrategy(ddp_comm_hook="fp16"))
    with pytest.raises(ConfigurationError, match="leave the hook out"):
        trainer.fit(module, [])


@pytest.mark.parametrize(("name", "found"), [("ddp_find_unused_parameters_false", False), ("ddp", True)])
def test_names_with_options(name, found):
    strategy = Trainer(accelerator="cpu", devices=2, strategy=name).strategy
    assert strategy.find_unused is found and strategy.name == "ddp"


def test_an_object_stays_the_user_s():
    mine = DDPStrategy(bucket_cap_mb=1)
    assert Trainer(accelerator="cpu", devices=2, strategy=mine).strategy is mine
    assert Trainer(accelerator="cpu", devices=1, strategy=mine).strategy.name == "single"
    assert Trainer(accelerator="cpu", devices=2, strategy=DDPStrategy).strategy.name == "ddp"
    assert Trainer(accelerator="cpu", devices=2, plugins=[mine]).strategy is mine


def test_ptrun_wins_over_the_name_and_keeps_the_options():
    code = (
        "from ptmigrate.runtime import DDPStrategy, Trainer\n"
        "s = Trainer(accelerator='cpu', devices=2, strategy=DDPStrategy(static_graph=True)).strategy\n"
        "print(s.name, getattr(s, 'static_graph', None))"
    )
    assert run("-c", code, PTMIGRATE_STRATEGY="ddp").stdout.strip() == "ddp True"
    assert run("-c", code, PTMIGRATE_STRATEGY="dp").stdout.strip() == "dp None"


def test_every_hook_is_there():
    for name, entry in comm_hooks.HOOKS.items():
        assert callable(getattr(comm_hooks._torch_module(entry.module), entry.function)), name
    assert isinstance(comm_hooks.resolve(torch.relu, "state", None, {}), tuple)
