"""TPU cores through torch_xla, on PJRT's CPU device: the run that it is on the CPU. `make xla` has torch_xla."""

import ast
import importlib.metadata
import importlib.util
import json
import subprocess
import sys

import pytest
import torch
from launching import SCRIPTS, ptrun, run
from ptmigrate.runtime import Trainer, XLAStrategy, arguments
from ptmigrate.runtime.accelerators import tpu
from ptmigrate.runtime.errors import ConfigurationError
from ptmigrate.runtime.strategies import choose_strategy, registry

INSTALLED = importlib.util.find_spec("torch_xla") is not None
needs_xla = pytest.mark.skipif(not INSTALLED, reason="torch_xla is not installed; make xla has an environment with it")
without_xla = pytest.mark.skipif(INSTALLED, reason="torch_xla is installed here")
PJRT = {"PJRT_DEVICE": "CPU"}
PAIR = ("--accelerator", "tpu", "--devices", "2", "--global-batch")
CASES = ("clip-value", "groups", "branches", "zeroed", "accumulate+resume", "evaluate", "own-step")


# -- names and numbers, said before anything starts -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "devices"), [(8, 8), (1, 1), ("8", 8), ([1], [0]), ([5], [4]), ((2,), [1]), ("5,", [4])]
)
def test_tpu_cores(given, devices):
    assert arguments.todays({"tpu_cores": given}, ["accelerator", "devices"]) == {
        "accelerator": "tpu",
        "devices": devices,
    }


@pytest.mark.parametrize("given", [0, -1, [0], [1, 2], [], "x", True, 1.5, ["1"]])
def test_no_number_of_cores(given):
    with pytest.raises(ConfigurationError, match=r"tpu_cores=.*\[1\] up"):
        Trainer(tpu_cores=given)


def test_no_cores_asked_for():
    assert Trainer(tpu_cores=None).accelerator == "cpu"


@without_xla
@pytest.mark.parametrize(
    "given", [{"tpu_cores": 8}, {"accelerator": "tpu", "devices": 2}, {"strategy": "xla"}, {"strategy": "tpu_spawn"}]
)
def test_what_to_install(given):
    with pytest.raises(ConfigurationError, match=r"torch_xla is not installed.*pip install torch==\S+ torch_xla==\S+"):
        Trainer(**given)


def test_a_finder_that_will_not_look_for_it(monkeypatch):
    class Raises:
        @staticmethod
        def find_spec(name, *more):
            if name == "torch_xla":
                raise ModuleNotFoundError(name)

    monkeypatch.setattr("sys.meta_path", [Raises])
    assert tpu.absent.__wrapped__().startswith("torch_xla is not installed")


@without_xla
def test_ptrun_says_what_to_install(tmp_path):
    script = tmp_path / "never.py"
    script.write_text("print('started')")
    done = ptrun("--accelerator", "tpu", str(script))
    assert done.returncode == 2 and "pip install torch==" in done.stderr and "started" not in done.stdout


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("xla", "cpu", "strategy 'xla' runs on accelerator 'tpu', and 'cpu' was asked for"),
        ("tpu_spawn", "cuda", "runs on accelerator 'tpu', and 'cuda'"),
        ("ddp", "tpu", "accelerator 'tpu' runs strategy 'xla' or 'tpu_spawn', and 'ddp' was asked for"),
        ("single", "tpu", "'single' was asked for"),
        ("xla_fsdp", "tpu", "not in this version.*'fsdp'"),
        ("xla_debug", "tpu", "PT_XLA_DEBUG=1"),
        ("tpu_spawn_debug", "tpu", "PT_XLA_DEBUG=1"),
    ],
)
def test_names_that_do_not_go_together(monkeypatch, name, kind, says):
    monkeypatch.setattr(registry, "require", lambda *_: None)
    with pytest.raises(ConfigurationError, match=says):
        choose_strategy(name, 2, kind=kind)


@pytest.mark.parametrize("name", [None, "auto", "xla", "tpu", "single_tpu", "single_xla", "single", XLAStrategy])
def test_one_core_by_any_name(monkeypatch, name):
    monkeypatch.setattr(registry, "require", lambda *_: None)
    assert choose_strategy(name, 1, kind="tpu").name == "xla"
    assert choose_strategy("ddp", 2, kind="cpu").name == "ddp"


def test_precision_16_is_refused():
    with pytest.raises(ConfigurationError, match="use precision='bf16'"):
        XLAStrategy().check({"16": True})


@needs_xla
def test_a_machine_without_tpus_says_how_else(monkeypatch):
    monkeypatch.delenv("PJRT_DEVICE")
    tpu.absent.cache_clear()
    with pytest.raises(ConfigurationError, match=r"this machine has no TPU.*PJRT_DEVICE=CPU"):
        Trainer(accelerator="tpu")
    tpu.absent.cache_clear()


@needs_xla
def test_doctor_names_it():
    found = ptrun("--doctor", **PJRT).stdout
    assert f"torch_xla: {importlib.metadata.version('torch_xla')}" in found and "tpu: PJRT's CPU device" in found


@pytest.mark.slow
def test_doctor_says_what_is_missing():
    if INSTALLED:
        pytest.skip("torch_xla is installed here")
    assert "tpu: torch_xla is not installed; " in ptrun("--doctor").stdout


# -- the same run ---------------------------------------------------------------------------------------------------


def close(found: list, expected: list) -> None:
    assert found == pytest.approx(expected, abs=1e-6)


@needs_xla
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_processes_train_as_one_on_the_cpu():
    script = str(SCRIPTS / "engine_cases.py")
    one = ptrun("--accelerator", "cpu", script, *CASES)
    two = ptrun(*PAIR, script, *CASES, limit=500, **PJRT)
    assert two.returncode == 0, two.stderr[-3000:]
    expected, found = (json.loads(done.stdout.splitlines()[-1]) for done in (one, two))
    for case in CASES:
        close(found[case]["losses"], expected[case]["losses"])
        assert found[case]["weights"] == pytest.approx(expected[case]["weights"], abs=1e-6), case
        assert found[case].get("same", True) and found[case].get("steps") == expected[case].get("steps")


@needs_xla
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_batch_norm_and_a_rank_without_a_loss():
    script = str(SCRIPTS / "batch_norm.py")
    one = ptrun("--accelerator", "cpu", script, "few")
    two = ptrun(*PAIR, script, "few", "skips", limit=500, **PJRT)
    assert two.returncode == 0, two.stderr[-3000:]
    expected, found = (json.loads(done.stdout.splitlines()[-1]) for done in (one, two))
    assert found["few"]["losses"] == pytest.approx(expected["few"]["losses"], rel=2e-5, abs=2e-5)  # as without XLA
    assert found["few"]["weights"] == pytest.approx(expected["few"]["weights"], rel=2e-4, abs=2e-4)
    assert found["skips"]["val"] > 0


@needs_xla
@pytest.mark.slow
@pytest.mark.parametrize("script", ["xla_kept.py", "xla_divided.py"])
@pytest.mark.parametrize("processes", ["1", "2"])
def test_kept_loops(tmp_path, script, processes):
    path = str(SCRIPTS / script)
    one = run(path, str(tmp_path / "one.pt"))
    found = ptrun("--accelerator", "tpu", "--devices", processes, path, str(tmp_path / "xla.pt"), **PJRT)
    assert found.returncode == 0, found.stderr[-3000:]
    kinds, numbers = zip(*(line.stdout.splitlines()[-1].split(" ", 1) for line in (one, found)), strict=True)
    assert kinds == ("cpu", "xla")
    first, second = (ast.literal_eval(text[: text.index("]") + 1]) for text in numbers)
    close(second, first)


@needs_xla
@pytest.mark.slow
def test_a_kept_loop_saves_what_loads_without_torch_xla(tmp_path):
    path = tmp_path / "kept.pt"
    ptrun("--accelerator", "tpu", str(SCRIPTS / "xla_kept.py"), str(path), **PJRT)
    program = f"import sys, torch; sys.modules['torch_xla'] = None; print(len(torch.load({str(path)!r})['model']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "6", done.stderr


@needs_xla
@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 2])
def test_spawned(tmp_path, devices):
    script, file = str(SCRIPTS / "xla_spawned.py"), str(tmp_path / "end.ckpt")
    one = run(script, "accelerator='cpu'", file)
    found = run(script, f"strategy='tpu_spawn', devices={devices}", file, **PJRT)
    assert found.returncode == 0, found.stderr[-3000:]
    told, numbers = (ast.literal_eval(line) for line in found.stdout.splitlines()[-2:])
    assert told == [True, True, False]
    close(numbers, ast.literal_eval(one.stdout.splitlines()[-1]))


@needs_xla
@pytest.mark.slow
def test_the_script_starts_its_processes(tmp_path):
    script, file = str(SCRIPTS / "xla_spawned.py"), str(tmp_path / "end.ckpt")
    one = run(script, "accelerator='cpu'", file)
    found = run(script, "tpu_cores=2", file, **PJRT)
    assert found.returncode == 0 and "xla on 2 processes" in found.stderr, found.stderr[-3000:]
    lines = [ast.literal_eval(line) for line in found.stdout.splitlines() if line[:1] == "[" and line[1:2].isdigit()]
    expected = ast.literal_eval(one.stdout.splitlines()[-1])
    assert lines
    for numbers in lines:
        close(numbers, expected)


@needs_xla
@pytest.mark.slow
def test_dropout_draws_otherwise_by_seed_and_alike_by_the_same():
    program = (
        "import torch; from ptmigrate.runtime import Runtime, seed_everything; r = Runtime(); r.connect()\n"
        "ones = torch.ones(64, device=r.device); drop = torch.nn.functional.dropout\n"
        "def draw(seed): seed_everything(seed); return drop(ones).cpu()\n"
        "print(torch.equal(draw(1), draw(1)), torch.equal(draw(1), draw(2)))"
    )
    done = run("-c", program, PTMIGRATE_ACCELERATOR="tpu", **PJRT)
    assert done.stdout.split()[-2:] == ["True", "False"], done.stderr[-2000:]


@needs_xla
@pytest.mark.slow
def test_an_optimizer_of_other_parameters_is_refused():
    program = (
        "import torch; from ptmigrate.runtime import Runtime; r = Runtime(); m = torch.nn.Linear(2, 2)\n"
        "o = torch.optim.SGD(m.parameters(), 0.1); r.connect(); m.to(r.device); r.setup_optimizer(o, m)"
    )
    done = run("-c", program, PTMIGRATE_ACCELERATOR="tpu", **PJRT)
    assert done.returncode and "make the optimizer afterwards" in done.stderr, done.stderr[-2000:]


@needs_xla
def test_torch_is_the_one_that_torch_xla_is_built_for():
    assert torch.__version__.split("+")[0] == importlib.metadata.version("torch_xla")
