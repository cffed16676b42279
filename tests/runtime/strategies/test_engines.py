"""Engines that are packages, and fully_shard, for real: two processes train as one, whatever comes together."""

import importlib.util
import json
import subprocess
import sys
from functools import cache

import launching
import pytest
import torch
from launching import SCRIPTS, environment
from ptmigrate.runtime import DeepSpeedPlugin, Module, PipelineStrategy, RPCSequentialPlugin, Trainer
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.strategies import choose_strategy, stages
from ptmigrate.runtime.strategies.stages import Stage, balanced, cut_evenly

from tests.forked import ptrun

SCRIPT = str(SCRIPTS / "engine_cases.py")
MORE = ("accumulate+resume", "groups+resume", "own-name", "hooked")
EVERY = ("plain", "clip", "accumulate", "branches", "zeroed", "evaluate", "validate", *MORE, "temperature+resume")
# What DeepSpeed leaves out: it steps unused parameters too.
SAME_PARAMETERS = ("clip", "accumulate", "evaluate", *MORE)
CUT = ("pairs", "in-place")  # a pipeline of two, with a balance
PIPELINE = (
    "sequential",
    "1f1b",
    "1f1b-of-one",
    "sequential+resume",
    "evaluate+sequential",
    "validate+sequential",
    "sequential-bf16",
)
# engine -> (the package it needs, its cases)
ENGINES = {
    "ddp_sharded": ("fairscale", (*EVERY, "clip-value", "own-step", "manual", "thaws", "bf16", "half")),
    "horovod": ("horovod", (*EVERY, "clip-value", "own-step", "manual", "thaws", "bf16", "half")),
    "fsdp": ("torch", (*EVERY, "clip-value", "own-step", "manual", "thaws", "blocks", "bf16", "half")),
    "deepspeed_stage_1": ("deepspeed", (*SAME_PARAMETERS, "temperature+resume")),
    "deepspeed": ("deepspeed", (*SAME_PARAMETERS, "temperature+resume")),
    "deepspeed_stage_3": ("deepspeed", SAME_PARAMETERS),
    "pipeline": ("torch", (*PIPELINE, *CUT)),
}
LOOSE = {
    "bf16": 5e-3,
    "half": 1e-3,
    "sequential-bf16": 1e-2,
}  # half precision rounds the halves of a batch otherwise than the whole


def run(processes, *cases, strategy=None):
    options = ["--accelerator", "cpu", "--devices", str(processes), "--global-batch"]
    done = ptrun(*options, *(["--strategy", strategy] if strategy else []), SCRIPT, *cases, limit=280)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@cache
def one_process():
    return run(1, *dict.fromkeys(case for _, cases in ENGINES.values() for case in cases))


@cache
def several(engine, processes=2):
    cases = ENGINES[engine][1] if processes == 2 else [case for case in ENGINES[engine][1] if case not in CUT]
    return run(processes, *cases, strategy=engine)


def needs(engine):
    package = ENGINES[engine][0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def check(found, expected, tolerance):
    assert found["losses"] == pytest.approx(expected["losses"], abs=tolerance)
    assert found["weights"] == pytest.approx(expected["weights"], abs=tolerance)
    for name in ("steps", "count", "class"):
        assert found.get(name) == expected.get(name), name
    assert found.get("same", True), "the ranks differ"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "case"), [(engine, case) for engine, (_, cases) in ENGINES.items() for case in cases]
)
def test_two_processes_train_as_one(engine, case):
    needs(engine)
    check(several(engine)[case], one_process()[case], LOOSE.get(case, 1e-6))


@pytest.mark.slow
@pytest.mark.parametrize("case", PIPELINE)
def test_a_pipeline_of_three(case):
    check(several("pipeline", 3)[case], one_process()[case], LOOSE.get(case, 1e-6))


@pytest.mark.slow
def test_horovodrun():
    """Started by Horovod's own launcher, which tells nothing of torch's process group."""
    needs("horovod")
    command = [sys.executable, "-m", "horovod.runner.launch", "-np", "2", sys.executable, SCRIPT, "clip"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=280, env={**environment(), "PTMIGRATE_GLOBAL_BATCH": "1"}
    )
    assert done.returncode == 0, done.stderr[-4000:]
    line = next(line for line in done.stdout.splitlines() if '{"clip"' in line)
    check(json.loads(line[line.index("{") :])["clip"], one_process()["clip"], 1e-6)


@pytest.mark.slow
def test_every_trainer_of_a_script_under_horovodrun_is_horovods(tmp_path):
    needs("horovod")
    script = tmp_path / "train.py"
    script.write_text(
        "from ptmigrate.runtime import Trainer\n"
        "for _ in range(2):\n"
        "    trainer = Trainer(accelerator='cpu')\n"
        "    print(trainer.strategy.name, trainer.runtime.all_reduce(1), flush=True)\n"
    )
    command = [sys.executable, "-m", "horovod.runner.launch", "-np", "2", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment())
    assert done.stdout.count("horovod 2") == 4, done.stdout + done.stderr


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A checkpoint of one process, and what it comes to without a stop."""
    here = tmp_path_factory.mktemp("straight") / "here.ckpt"
    return here, run(1, f"save={here}", "accumulate")["accumulate"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "pipeline"])
def test_a_checkpoint_goes_from_engine_to_one_process_and_back(engine, straight, tmp_path):
    needs(engine)
    there, (here, wanted) = tmp_path / "there.ckpt", straight
    back = run(2, f"continue={here}", f"save={there}", strategy=engine)[f"continue={here}"]
    alone = run(1, f"continue={there}")[f"continue={there}"]
    for found in (back, alone):
        assert found["weights"] == pytest.approx(wanted["weights"], abs=1e-6)
        assert found["losses"] == pytest.approx(wanted["losses"][13:], abs=1e-6)


@pytest.mark.slow
def test_a_rank_that_stands_still_is_waited_for():
    needs("horovod")
    options = ("--accelerator", "cpu", "--devices", "2", "--strategy", "horovod", str(SCRIPTS / "stands_still.py"))
    stood, went = (ptrun(*options, seconds) for seconds in ("33", "0"))
    assert stood.returncode == 0, stood.stdout + stood.stderr
    assert stood.stdout.splitlines()[-1] == went.stdout.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ddp_sharded", "fsdp", "horovod", "deepspeed"])
def test_a_failing_step_ends_the_job(engine):
    needs(engine)
    options = ["--accelerator", "cpu", "--devices", "2", "--strategy", engine]
    done = launching.ptrun(*options, str(SCRIPTS / "dies.py"), "raise")
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1 and "ValueError: the first failure" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ddp_sharded", "fsdp", "horovod", "deepspeed", "deepspeed_stage_3"])
def test_different_numbers_of_backward_passes_are_told(engine):
    """One rank waits in an optimizer's step, the other in a backward: nobody waits for ever."""
    needs(engine)
    options = ["--accelerator", "cpu", "--devices", "2", "--strategy", engine]
    done = ptrun(*options, str(SCRIPTS / "backwards.py"), "1", limit=120)
    assert done.returncode == 1
    assert "ranks make different numbers of backward passes" in done.stderr


@pytest.mark.parametrize(
    ("engine", "package"), [("ddp_sharded", "fairscale"), ("horovod", "horovod"), ("deepspeed", "deepspeed")]
)
def test_what_is_not_installed_says_what_to_install(engine, package, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ConfigurationError, match=f"needs {package}, which is not installed; .*(install|python -m)"):
        choose_strategy(engine, devices=2)


@pytest.mark.parametrize(
    ("engine", "feature"),
    [
        ("fsdp", "closure"),
        ("fsdp", "kept"),
        ("fsdp", "sparse"),
        ("ddp_sharded", "closure"),
        ("ddp_sharded", "overlap"),
        ("deepspeed", "sparse"),
        ("horovod", "overlap"),
        ("pipeline", "manual"),
    ],
)
def test_refused_with_the_reason(engine, feature):
    needs(engine)
    with pytest.raises(ConfigurationError, match="use 'ddp'"):
        choose_strategy(engine, devices=2).check({feature: True})


def test_the_guides_spelling():
    needs("ddp_sharded")
    for given in (
        {"strategy": "ddp_sharded"},
        {"plugins": "ddp_sharded"},
        {"plugins": ["ddp_sharded"], "strategy": "ddp"},
        {"plugins": "ddp_sharded", "accelerator": "ddp", "num_nodes": 2},
    ):
        given = {"devices": 2, "accelerator": "cpu"} | given
        if given["accelerator"] == "ddp":
            del given["devices"]
        assert Trainer(**given).strategy.name == "ddp_sharded", given


def test_where_deepspeeds_config_comes_from(tmp_path, monkeypatch):
    config = {"zero_optimization": {"stage": 1}}
    file = tmp_path / "deepspeed.json"
    file.write_text(json.dumps(config))
    assert DeepSpeedPlugin(config).config == DeepSpeedPlugin(str(file)).config == config
    sizes = DeepSpeedPlugin(allgather_bucket_size=5e8, reduce_bucket_size=5e8).config["zero_optimization"]
    assert (sizes["stage"], sizes["allgather_bucket_size"], sizes["reduce_bucket_size"]) == (2, 500000000, 500000000)
    monkeypatch.setenv("PL_DEEPSPEED_CONFIG_PATH", str(file))
    assert DeepSpeedPlugin().config == config


@pytest.mark.parametrize(("text", "says"), [(None, "was not found"), ("{", "is not JSON"), ("[]", "an object")])
def test_a_config_that_cannot_be_read(tmp_path, text, says):
    file = tmp_path / "deepspeed.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigurationError, match=f"deepspeed.json.*{says}"):
        DeepSpeedPlugin(file)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ([1], "a dict or the path of a JSON file"),
        (".", "is a folder"),
        ({"zero_optimization": 2}, "'zero_optimization' is an object"),
        ({"optimizer": "Adam"}, "'optimizer' is an object"),
        ({"zero_optimization": {"stage": "two"}}, "stage='two': ZeRO has stages 1, 2 and 3"),
    ],
)
def test_a_config_that_is_none(config, says):
    with pytest.raises(ConfigurationError, match=says):
        DeepSpeedPlugin(config)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"balance": 3}, "numbers of layers from 1 up"),
        ({"balance": [3, 0]}, "numbers of layers from 1 up"),
        ({"balance": "2,1"}, "numbers of layers from 1 up"),
        ({"microbatches": "4"}, "a whole number from 1 up"),
        ({"schedule": "1f2b"}, "did you mean '1f1b'"),
        ({"schedule": None}, "unknown schedule"),
    ],
)
def test_a_pipeline_that_is_none(options, says):
    with pytest.raises(ConfigurationError, match=says):
        PipelineStrategy(**options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"precision": 16}, "fp16"),
        ({"gradient_clip_val": 1.0, "gradient_clip_algorithm": "value"}, "clips by norm"),
        ({"strategy": DeepSpeedPlugin({"optimizer": {"type": "OneBitAdam"}})}, "'OneBitAdam' is not in DeepSpeed"),
        ({"strategy": DeepSpeedPlugin({"fp16": {"enabled": True}})}, "fp16"),
    ],
)
def test_what_deepspeed_cannot_do_is_said_before_anything_starts(options, says):
    needs("deepspeed")
    trainer = Trainer(**{"devices": 2, "accelerator": "cpu", "strategy": "deepspeed", **options})
    with pytest.raises(ConfigurationError, match=says):
        trainer.fit(Layers(4))


class Layers(Module):
    def __init__(self, count, head=False):
        super().__init__()
        self.sequential_module = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(count)))
        if head:
            self.head = torch.nn.Linear(2, 2)


def tied():
    module = Layers(4)
    module.sequential_module[3] = module.sequential_module[1]
    return module


@pytest.mark.parametrize(
    ("strategy", "module", "says"),
    [
        ("pipeline", Module(), "needs an nn.Sequential as self.sequential_module"),
        ("pipeline", Layers(1), "not enough for 2 stages"),
        ("pipeline", Layers(4, head=True), "move 'head.weight' into it"),
        ("pipeline", tied(), "layers 1 and 3 of sequential_module share parameters"),
        (PipelineStrategy(balance=[2, 2]), tied(), "layers 1 and 3 of sequential_module share parameters"),
        (PipelineStrategy(balance=[1, 2]), Layers(4), "add up to 4"),
        (RPCSequentialPlugin(balance=[1, 1, 2]), Layers(4), "2 processes need 2 numbers"),
    ],
)
def test_a_module_that_cannot_be_cut(strategy, module, says):
    trainer = Trainer(devices=2, accelerator="cpu", strategy=strategy)
    with pytest.raises(ConfigurationError, match=says):
        trainer.fit(module)


def test_layers_are_cut_where_the_slowest_stage_is_fastest():
    assert cut_evenly([1.0, 1.0, 1.0, 1.0], 2) == [2, 2]
    assert cut_evenly([5.0, 1.0, 1.0, 1.0], 2) == [1, 3]
    assert cut_evenly([1.0, 2.0, 9.0, 1.0, 1.0], 3) == [2, 1, 2]


def test_a_step_that_only_some_ranks_run_logs_nowhere():
    module = Module()
    module.trainer = trainer = Trainer(accelerator="cpu")
    with stages.quiet(module):
        module.log("loss", 1.0)
        module.log("loss", 1.0, on_step=False, on_epoch=True)
    assert not trainer.logs.names and module.trainer is trainer


def test_learning_shapes_leaves_no_trace():
    """torch calls a stage once with numbers that mean nothing: running statistics and random streams stay."""
    norm = torch.nn.BatchNorm1d(3)
    stage = Stage([norm, torch.nn.Dropout(0.5)], recompute=False, first=False)
    stage.tracing = True
    before = torch.get_rng_state()
    stage(torch.full((4, 3), float("nan")))
    assert torch.equal(torch.get_rng_state(), before) and not norm.running_mean.any() and not norm.num_batches_tracked
    stage(torch.ones(4, 3))
    assert norm.num_batches_tracked == 1 and not torch.equal(torch.get_rng_state(), before)


def test_layers_of_any_kind_are_measured():
    """Several outputs, and layers that overwrite their input, which is left as it is."""

    class Pair(torch.nn.Module):
        def forward(self, x):
            return x, x + 1

    class Sum(torch.nn.Module):
        def forward(self, pair):
            return pair[0] + pair[1]

    x = torch.linspace(-1, 1, 8).view(4, 2)
    sizes = balanced(torch.nn.Sequential(torch.nn.ReLU(inplace=True), Pair(), Sum(), torch.nn.Linear(2, 2)), x, 2)
    assert sum(sizes) == 4 and len(sizes) == 2 and x.min() == -1
