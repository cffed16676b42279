"""Every engine on a GPU: the numbers are those of one CPU process, on one GPU, on two nodes that share it, and on two
GPUs where there are two.
"""

import json

import pytest
from engine_matrix import CELLS, SCRIPT, judged, one_process, skip_without

from tests.gpus import count, needs_gpu, on_two_nodes, run

NAMES = [name for name in CELLS if name not in ("save", "adopt", "fail")]
HERE = ["ddp", "ddp_spawn", "ddp_fork", "dp", "bagua", "ddp_sharded", "fsdp", "deepspeed", "pipeline"]
ON_NODES = ["ddp", "ddp2", "bagua", "ddp_sharded", "fsdp", "deepspeed"]
HALF = SCRIPT.replace("cells.py", "half.py")


def check(engine, done):
    answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert answers, f"{done.stdout[-500:]}\n{done.stderr[-4000:]}"
    found = json.loads(answers[-1])
    for name in found:
        judged(engine, name, found[name], one_process()["resume" if name == "adopt" else name])


@needs_gpu
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("engine", ["single", *HERE])
def test_on_one_node(tmp_path, engine, devices):
    """Those that start their processes themselves are asked by the environment."""
    if devices > (1 if engine == "single" else count()):
        pytest.skip(f"{engine} is not for {devices}, or there are fewer GPUs")
    skip_without(engine)
    if engine.endswith(("single", "spawn", "fork")):
        options = {"ACCELERATOR": "gpu", "DEVICES": str(devices), "GLOBAL_BATCH": "1"}
        done = run(tmp_path, SCRIPT, engine, *NAMES, **{f"PTMIGRATE_{k}": v for k, v in options.items()})
    else:
        command = ["-m", "ptmigrate.runtime.cli", "--accelerator", "gpu", "--devices", devices, "--global-batch"]
        done = run(tmp_path, *command, "--strategy", engine, SCRIPT, engine, *NAMES)
    check(engine, done)


@needs_gpu
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ON_NODES)
def test_on_two_nodes(tmp_path, engine):
    skip_without(engine)
    cells = [*NAMES, f"adopt:{one_process()['path']}"]
    check(engine, on_two_nodes(tmp_path, "--accelerator", "gpu", "--strategy", engine, SCRIPT, engine, *cells))


@needs_gpu
@pytest.mark.slow
def test_precision_16_leaves_the_same_steps_out(tmp_path):
    one = run(tmp_path, "-m", "ptmigrate.runtime.cli", "--accelerator", "gpu", "--devices", 1, HALF, "one.ckpt")
    two = on_two_nodes(tmp_path, "--accelerator", "gpu", HALF, "two.ckpt")
    first, second = (json.loads(done.stdout.splitlines()[-1]) for done in (one, two))
    assert second["scale"] == first["scale"] / 2 and second["saved"] == first["saved"] < 2**16
    for mine, wanted in zip(second["weights"], first["weights"], strict=True):
        assert mine[0] == pytest.approx(wanted[0], abs=1e-3)
