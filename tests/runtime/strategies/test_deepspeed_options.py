"""DeepSpeed's offloading, configs with an optimizer, and its own checkpoint: the weights of one process."""

import importlib.util
from functools import cache

import pytest
from engine_matrix import numbers
from launching import answers
from ptmigrate.runtime import DeepSpeedStrategy
from ptmigrate.runtime.errors import ConfigurationError

CASES = "offload_2 offload_3 cpu_offload config_adam config_offload manual_offload whole_2 whole_3".split()
pytestmark = pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed")


@cache
def two():
    return answers("deepspeed_options.py", 2)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_processes_train_as_one(case):
    one = answers("cells.py", 1, "single", "fit")["fit"]
    assert numbers(two()[case]["weights"]) == pytest.approx(numbers(one["weights"]), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["whole_2", "whole_3"])
def test_its_own_checkpoint_has_a_file_of_optimizer_states_a_process(case):
    assert two()[case]["files"] >= 3


def test_a_folder_without_a_checkpoint_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=f"no checkpoint of DeepSpeed's in '{tmp_path}'"):
        DeepSpeedStrategy.consolidate(tmp_path, tmp_path / "whole.ckpt")
