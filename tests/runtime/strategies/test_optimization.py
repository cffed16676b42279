"""Manual and automatic optimization, accumulation, clipping and loss scaling: 2 processes train as 1 does."""

import pytest

from tests.forked import answers


@pytest.mark.parametrize("case", ["automatic", pytest.param("manual", marks=pytest.mark.slow)])
def test_two_processes_as_one(case):
    one, two = answers("manual.py", 1)[case], answers("manual.py", 2)[case]
    assert two["losses"] == pytest.approx(one["losses"], rel=2e-6, abs=2e-6)
    assert two["weights"] == pytest.approx(one["weights"], rel=1e-5, abs=1e-5)
    assert two["steps"] == one["steps"]


def test_half_precision_scales_the_loss_and_clips_what_it_means():
    half, full = answers("manual.py", 1)["half"], answers("manual.py", 2)["half"]
    assert half["losses"][0] > 1000, "the loss that goes backward is scaled"
    assert half["weights"] == pytest.approx(full["weights"], rel=0.05, abs=0.02)
