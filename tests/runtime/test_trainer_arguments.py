"""Table D, and every `Trainer(...)` line of the guide: what it means here, or why it is refused."""

import inspect
from types import SimpleNamespace

import pytest
import torch
from ptmigrate.runtime import BaguaStrategy, DeepSpeedPlugin, Module, RPCSequentialPlugin, Trainer, accelerators
from ptmigrate.runtime.accelerators import choose, parse_gpus
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.precision import choose_precision


@pytest.fixture
def eight(monkeypatch):
    """A machine that says it has eight GPUs. Nothing is run on them."""
    count = {"cpu": None, "cuda": 8, "mps": 0, "tpu": 0}.get
    monkeypatch.setattr(accelerators.machine, "count", count)
    monkeypatch.setattr(accelerators.machine, "present", lambda: "cuda")
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)


@pytest.mark.parametrize(
    ("gpus", "numbers"),
    [
        (None, None),
        (0, None),
        (3, [0, 1, 2]),
        (-1, list(range(8))),
        ("-1", list(range(8))),
        ([0], [0]),
        ([1, 3], [1, 3]),
        ((1, 3), [1, 3]),
        ("0", [0]),
        ("3", [3]),
        ("1, 3", [1, 3]),
        ("0, 1", [0, 1]),
        ("2,", [2]),
    ],
)
def test_gpus(eight, gpus, numbers):
    assert parse_gpus(gpus) == numbers


@pytest.mark.parametrize("gpus", [0.1, -2, False, True, [], [-1], [None], ["0"], [0, 0], 9, [8], "8", "x", {}])
def test_gpus_refused(eight, gpus):
    with pytest.raises(ConfigurationError, match="gpus="):
        parse_gpus(gpus)


@pytest.mark.parametrize(
    ("accelerator", "devices", "numbers"),
    [
        ("gpu", "3", (0, 1, 2)),
        ("gpu", 2, (0, 1)),
        ("gpu", [1, 3], (1, 3)),
        ("gpu", "1,3", (1, 3)),
        ("gpu", -1, tuple(range(8))),
        ("gpu", "auto", tuple(range(8))),
        ("auto", None, (0,)),
        ("cpu", 3, (0, 1, 2)),
    ],
)
def test_devices(eight, accelerator, devices, numbers):
    assert choose(accelerator, devices).numbers == numbers


@pytest.mark.parametrize("devices", [0, -2, 9, [8], [0, 0], 1.5, True, "many", []])
def test_devices_refused(eight, devices):
    with pytest.raises(ConfigurationError, match="devices="):
        choose("gpu", devices)


RUN = [  # (the guide's arguments, strategy, processes, nodes)
    ({"gpus": 8, "accelerator": "ddp"}, "ddp", 8, 1),
    ({"gpus": 8, "accelerator": "ddp", "num_nodes": 4}, "ddp", 32, 4),
    ({"gpus": [0, 1]}, "ddp", 2, 1),
    ({"gpus": "0, 1"}, "ddp", 2, 1),
    ({"gpus": 1, "precision": 16}, "single", 1, 1),
    ({"gpus": 2, "accelerator": "ddp", "precision": 16}, "ddp", 2, 1),
    ({"devices": 8, "accelerator": "gpu", "strategy": "ddp"}, "ddp", 8, 1),
    ({"devices": 8, "accelerator": "gpu", "strategy": "ddp", "num_nodes": 4}, "ddp", 32, 4),
    ({"gpus": 8, "accelerator": "ddp", "num_nodes": 10}, "ddp", 80, 10),
    ({"gpus": 2, "accelerator": "dp"}, "dp", 1, 1),
    ({"devices": 2, "accelerator": "gpu", "strategy": "dp"}, "dp", 1, 1),
    ({"gpus": 8, "accelerator": "ddp2", "num_nodes": 4}, "ddp2", 4, 4),
    ({"devices": 8, "accelerator": "gpu", "strategy": "ddp2"}, "dp", 1, 1),
    ({"devices": 8, "accelerator": "gpu", "strategy": "ddp2", "num_nodes": 4}, "ddp2", 4, 4),
    ({"devices": 4, "accelerator": "gpu", "strategy": "dp"}, "dp", 1, 1),
    ({"gpus": 8, "accelerator": "ddp2"}, "dp", 1, 1),
    ({"gpus": 8, "accelerator": "ddp2", "num_nodes": 10}, "ddp2", 10, 10),
    ({"gpus": 8, "accelerator": "ddp_spawn"}, "ddp_spawn", 8, 1),
    ({"devices": 8, "accelerator": "gpu", "strategy": "ddp_spawn"}, "ddp_spawn", 8, 1),
    ({"devices": 2, "accelerator": "gpu", "strategy": BaguaStrategy(algorithm="gradient_allreduce")}, "bagua", 2, 1),
    ({"precision": 16, "amp_backend": "native"}, "single", 1, 1),
    ({"replace_sampler_ddp": False}, "single", 1, 1),
    ({"accelerator": "ddp", "gpus": 4, "plugins": [RPCSequentialPlugin(balance=[1, 1, 1, 1])]}, "rpc_sequential", 4, 1),
    ({"max_epochs": 50}, "single", 1, 1),
    ({"max_epochs": 10, "logger": SimpleNamespace(log_metrics=print)}, "single", 1, 1),  # the guide's is Neptune's
]


@pytest.mark.parametrize(("arguments", "strategy", "processes", "nodes"), RUN)
def test_lines_of_the_guide_that_run(eight, arguments, strategy, processes, nodes):
    trainer = Trainer(**arguments)
    assert (trainer.strategy.name, trainer.world_size, trainer.num_nodes) == (strategy, processes, nodes)
    if "precision" in arguments:
        assert trainer.precision == "16-mixed"


REFUSED = [({"amp_backend": "apex", "precision": 16}, "apex")]
PACKAGES = [  # engines that are packages: they run, or say what to install
    ({"accelerator": "horovod"}, "horovod", "horovod"),
    ({"accelerator": "horovod", "gpus": 1}, "horovod", "horovod"),
    ({"accelerator": "gpu", "strategy": "horovod"}, "horovod", "horovod"),
    ({"accelerator": "gpu", "strategy": "horovod", "devices": 1}, "horovod", "horovod"),
    ({"accelerator": "gpu", "strategy": "ddp_sharded"}, "ddp_sharded", "fairscale"),
    ({"accelerator": "ddp", "plugins": "ddp_sharded"}, "ddp_sharded", "fairscale"),
    ({"gpus": 8, "accelerator": "horovod"}, "horovod", "horovod"),
    ({"gpus": 8, "num_nodes": 10, "accelerator": "horovod"}, "horovod", "horovod"),
    ({"gpus": 4, "plugins": "deepspeed", "precision": 16}, "deepspeed", "deepspeed"),
    ({"gpus": 4, "plugins": DeepSpeedPlugin({"zero_optimization": {"stage": 2}})}, "deepspeed", "deepspeed"),
    (
        {"gpus": 4, "plugins": DeepSpeedPlugin(allgather_bucket_size=5e8, reduce_bucket_size=5e8)},
        "deepspeed",
        "deepspeed",
    ),
]


@pytest.mark.parametrize(("arguments", "named", "package"), PACKAGES)
def test_lines_of_the_guide_for_engines_that_are_packages(eight, monkeypatch, arguments, named, package):
    monkeypatch.setattr("ptmigrate.runtime.strategies.needs.installed", lambda module: module != package)
    with pytest.raises(ConfigurationError, match=f"'{named}'"):
        Trainer(**arguments)


@pytest.mark.parametrize(("arguments", "named"), REFUSED)
def test_lines_of_the_guide_that_are_refused(eight, arguments, named):
    with pytest.raises(ConfigurationError, match=f"'{named}'"):
        Trainer(**arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"max_epoch": 3}, "did you mean 'max_epochs'"),
        ({"strategy": "dpp"}, "did you mean 'dp'|did you mean 'ddp'"),
        ({"accelerator": "cpus"}, "did you mean 'cpu'"),
        ({"precision": 17}, "did you mean '16'"),
        ({"limit_val_batches": 1.5}, "limit_val_batches=1.5"),
        ({"accumulate_grad_batches": 0}, "accumulate_grad_batches=0"),
        ({"gradient_clip_algorithm": "size"}, "'norm' or 'value'"),
        ({"accelerator": "ddp", "strategy": "ddp"}, "two strategies"),
        ({"num_nodes": 0}, "num_nodes=0"),
        ({"logger": 3}, "logger=3"),
        ({"auto_lr_find": True}, "short fits"),
        ({"truncated_bptt_steps": 3}, "optimize manually"),
        ({"accelerator": "gpu", "devices": 99}, "99"),
    ],
)
def test_refused_with_the_reason(arguments, says):
    with pytest.raises(ConfigurationError, match=says):
        Trainer(**arguments)


# Every argument that Lightning's Trainer has had from 1.2 to 2.6, with a value that asks for something.
ARGUMENTS = {
    "accelerator": "cpu",
    "accumulate_grad_batches": 2,
    "amp_backend": "native",
    "amp_level": "O2",
    "auto_lr_find": True,
    "auto_scale_batch_size": True,
    "auto_select_gpus": True,
    "automatic_optimization": False,
    "barebones": True,
    "benchmark": True,
    "callbacks": [],
    "check_val_every_n_epoch": 2,
    "default_root_dir": ".",
    "checkpoint_callback": True,
    "detect_anomaly": True,
    "deterministic": True,
    "devices": 1,
    "gpus": 0,
    "distributed_backend": "ddp",
    "enable_autolog_hparams": False,
    "enable_checkpointing": True,
    "enable_model_summary": True,
    "enable_pl_optimizer": True,
    "enable_progress_bar": False,
    "fast_dev_run": True,
    "flush_logs_every_n_steps": 5,
    "gradient_clip_algorithm": "value",
    "gradient_clip_val": 0.5,
    "hpus": 1,
    "inference_mode": True,
    "ipus": 1,
    "limit_predict_batches": 2,
    "limit_test_batches": 2,
    "num_nodes": 1,
    "limit_train_batches": 2,
    "limit_val_batches": 2,
    "log_every_n_steps": 5,
    "log_gpu_memory": "all",
    "logger": False,
    "max_epochs": 1,
    "max_steps": 1,
    "max_time": "00:00:01:00",
    "min_epochs": 1,
    "min_steps": 1,
    "model_registry": "x",
    "move_metrics_to_cpu": True,
    "multiple_trainloader_mode": "min_size",
    "num_processes": 1,
    "num_sanity_val_steps": 1,
    "overfit_batches": 1,
    "plugins": [],
    "precision": 32,
    "prepare_data_per_node": False,
    "process_position": 1,
    "profiler": "simple",
    "progress_bar_refresh_rate": 5,
    "reload_dataloaders_every_epoch": True,
    "reload_dataloaders_every_n_epochs": 1,
    "replace_sampler_ddp": False,
    "resume_from_checkpoint": "x.ckpt",
    "stochastic_weight_avg": True,
    "strategy": "auto",
    "sync_batchnorm": True,
    "terminate_on_nan": True,
    "tpu_cores": 8,
    "track_grad_norm": 2,
    "truncated_bptt_steps": 3,
    "use_distributed_sampler": False,
    "val_check_interval": 0.5,
    "weights_save_path": ".",
    "weights_summary": "top",
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_argument_works_or_is_refused_by_name(name):
    try:
        Trainer(**{name: ARGUMENTS[name]})
    except ConfigurationError as refusal:
        assert name in str(refusal) or name == "tpu_cores", refusal


def test_no_argument_of_the_installed_lightning_is_missing():
    lightning = pytest.importorskip("lightning")
    theirs = inspect.signature(lightning.Trainer.__init__).parameters
    assert set(theirs) - {"self"} <= set(ARGUMENTS)


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ({"num_processes": 2, "accelerator": "ddp_cpu"}, {"world_size": 2, "accelerator": "cpu"}),
        ({"num_processes": 3}, {"world_size": 3}),
        ({"gpus": 2, "distributed_backend": "ddp"}, {"world_size": 2}),
        ({"fast_dev_run": 3}, {"max_steps": 3, "max_epochs": 1, "limit_val_batches": 3}),
        ({"max_time": {"minutes": 2}}, {"max_time": 120.0, "max_epochs": -1}),
        ({"overfit_batches": 2}, {"limit_train_batches": 2}),
        ({"reload_dataloaders_every_epoch": True}, {"reload_dataloaders_every_n_epochs": 1}),
        ({"accumulate_grad_batches": {2: 4}}, {"accumulate_grad_batches": 1, "accumulation_table": {0: 1, 2: 4}}),
        ({"min_steps": 4}, {"min_epochs": 1}),
        ({"progress_bar_refresh_rate": 0}, {"progress": None}),
    ],
)
def test_older_names_mean_todays(eight, given, means):
    trainer = Trainer(**given)
    assert {name: getattr(trainer, name) for name in means} == means


def test_gpus_that_nobody_uses(eight, monkeypatch):
    monkeypatch.setattr(accelerators.machine, "is_free", lambda number: number not in (0, 3))
    monkeypatch.delenv("PTMIGRATE_PICKED_GPUS", raising=False)
    trainer = Trainer(gpus=3, auto_select_gpus=True)
    assert trainer.device_ids == [1, 2, 4]
    with pytest.raises(ConfigurationError, match="6 of 8 GPUs are free"):
        Trainer(gpus=7, auto_select_gpus=True)


@pytest.mark.parametrize(
    ("name", "full"),
    [(16, "16-mixed"), ("bf16", "bf16-mixed"), (32, "32-true"), ("64", "64-true"), ("16-true", "16-true")],
)
def test_precision_names(name, full):
    assert choose_precision(name, "cpu").name == full


class Evaluated(Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def validation_step(self, batch, batch_idx):
        self.log("value", batch.sum())

    test_step = validation_step


@pytest.mark.parametrize(("stage", "old"), [("validate", "val_dataloaders"), ("test", "test_dataloaders")])
def test_arguments_of_evaluation(stage, old):
    run = getattr(Trainer(accelerator="cpu"), stage)
    for given in ({old: [torch.ones(3)]}, {"dataloaders": [torch.ones(3)], "verbose": False, "weights_only": None}):
        assert run(Evaluated(), **given) == [{"value": 3.0}]
    with pytest.raises(ConfigurationError, match=f"argument of Trainer.{stage} .dataloader.; did you mean"):
        run(Evaluated(), dataloader=[torch.ones(3)])
