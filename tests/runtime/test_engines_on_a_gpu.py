"""Every engine on a GPU: the numbers are those of one CPU process, on one GPU and on two nodes that share it.

Where there are two GPUs they are taken too.
"""

import json

import pytest
from engine_matrix import CELLS, SCRIPT, judged, missing, one_process
from launching import free_port

from tests.gpus import count, needs_gpu, on_two_nodes, run

NAMES = [name for name in CELLS if name not in ("save", "adopt", "fail")]
ON_ONE = ["single", "ddp", "ddp_spawn", "ddp_fork", "dp", "bagua", "ddp_sharded", "fsdp", "deepspeed", "pipeline"]
ON_NODES = ["ddp", "ddp2", "bagua", "ddp_sharded", "fsdp", "deepspeed"]
ON_TWO = [name for name in ON_ONE if name != "single"]


def check(engine, done, names=NAMES):
    answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert answers, f"{done.stdout[-500:]}\n{done.stderr[-4000:]}"
    found, expected = json.loads(answers[-1]), one_process()
    for name in names:
        judged(engine, name, found[name], expected["resume" if name.startswith("adopt") else name])


def skip_without(engine):
    what = None if engine == "single" else missing(engine)
    if what is not None:
        pytest.skip(f"{engine}: {what}")


def start(engine, devices, folder):
    """Those that start their processes themselves are asked by the environment."""
    if engine.endswith(("single", "spawn", "fork")):
        options = {"ACCELERATOR": "gpu", "DEVICES": str(devices), "GLOBAL_BATCH": "1"}
        return run(folder, SCRIPT, engine, *NAMES, **{f"PTMIGRATE_{k}": v for k, v in options.items()})
    command = ["-m", "ptmigrate.runtime.cli", "--accelerator", "gpu", "--devices", devices, "--global-batch"]
    return run(folder, *command, "--strategy", engine, SCRIPT, engine, *NAMES)


@needs_gpu
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ON_ONE)
def test_on_one(engine, tmp_path):
    skip_without(engine)
    check(engine, start(engine, 1, tmp_path))


@needs_gpu
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ON_NODES)
def test_on_two_nodes(engine, tmp_path):
    skip_without(engine)
    adopt = f"adopt:{one_process()['path']}"
    check(engine, on_two_nodes(tmp_path, free_port(), "--strategy", engine, SCRIPT, engine, *NAMES, adopt))


@pytest.mark.skipif(count() < 2, reason="no two GPUs")
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ON_TWO)
def test_on_two(engine, tmp_path):
    skip_without(engine)
    check(engine, start(engine, 2, tmp_path))


HALF = SCRIPT.replace("cells.py", "half.py")


@needs_gpu
@pytest.mark.slow
def test_precision_16_leaves_the_same_steps_out(tmp_path):
    one = run(tmp_path, "-m", "ptmigrate.runtime.cli", "--accelerator", "gpu", "--devices", 1, HALF)
    two = on_two_nodes(tmp_path, free_port(), HALF)
    first, second = (json.loads(done.stdout.splitlines()[-1]) for done in (one, two))
    assert second["scale"] == first["scale"] / 2 and second["saved"] == first["saved"] < 2**16
    for mine, wanted in zip(second["weights"], first["weights"], strict=True):
        assert mine[0] == pytest.approx(wanted[0], abs=1e-3)
