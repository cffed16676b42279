"""Promise 6: each sample once, the same values on any number of processes, an error where ranks log different names."""

import json
import time

import pytest
from launching import MANY, SCRIPTS

from tests.forked import answers, ptrun

ALIKE = [f"{what}-{samples}" for what in ("validate", "several", "predict", "limited") for samples in (103, 8, 1)]


@pytest.mark.parametrize("processes", [2, *MANY])
def test_same_values(processes):
    one, many = answers("evaluation.py", 1), answers("evaluation.py", processes, "--")
    for name in ALIKE:
        assert flat(many[name]) == pytest.approx(flat(one[name]), rel=1e-6), name
        assert shape(many[name]) == shape(one[name]), name


@pytest.mark.parametrize("processes", [2, *MANY])
def test_counts_are_exact(processes):
    one, many = answers("evaluation.py", 1), answers("evaluation.py", processes, "--")
    for name in ALIKE:
        if not name.startswith("predict"):
            hits = [[value for key, value in metrics.items() if "hits" in key] for metrics in one[name]]
            assert hits == [[value for key, value in m.items() if "hits" in key] for m in many[name]]
    assert many["order"] == one["order"], "no batch twice, none left out"


def test_ranks_evaluate_the_same_model():
    """After training with batch norm, every rank has rank 0's statistics."""
    many = answers("evaluation.py", 2, "--")
    assert many["after"][0]["hits"] >= 0


def test_different_names_are_an_error():
    start = time.monotonic()
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(SCRIPTS / "mismatch.py"))
    assert done.returncode == 1 and time.monotonic() - start < 30
    assert "'usual' was logged on ranks [0] and not on ranks [1]" in done.stderr


def test_different_names_at_a_step_are_an_error():
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(SCRIPTS / "mismatch.py"), "steps")
    assert done.returncode == 1
    assert "at the same place the ranks logged ['usual', 'extra'], in the order of ranks" in done.stderr


def flat(value):
    return [float(x) for x in json.dumps(value).translate(str.maketrans("[]{},:", "      ")).split() if number(x)]


def number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def shape(value):
    if isinstance(value, dict):
        return sorted(value)
    return [shape(item) for item in value] if isinstance(value, list) else None


@pytest.mark.slow
def test_metric_objects():
    pytest.importorskip("torchmetrics")
    assert answers("metric_objects.py", 2) == answers("metric_objects.py", 1)
