"""Sums that a step adds to under a condition, or in a loop over its samples: exact over ranks, or of whole batches."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_printed_by_two import EPOCHS, HEAD
from tests.migrate.running import check_same


def script(each: str) -> str:
    epochs = EPOCHS.replace("BEFORE", "n = 0").replace("EACH", each).replace("AFTER", "print(n)")
    return HEAD + epochs.replace("LAST", "")


@pytest.mark.parametrize(
    "each",
    [
        "for o, t in zip(out, y):\n            if o.argmax() == t:\n                n += 1",
        "for j in range(len(y)):\n            if out[j].argmax() == y[j]:\n                n += 1",
        "for j, t in enumerate(y):\n            g = out[j].argmax()\n            if g == t:\n                n += 1",
        "for o in out:\n            n += 1",
    ],
)
def test_what_is_added_for_a_sample_is_summed_over_the_ranks(each):
    result = check_same(script(each), "module")
    assert "divide_batches" not in result and "n = self.all_reduce(self.n)" in result


@pytest.mark.parametrize(
    "each",
    [
        "if i % 2 == 0:\n            n += 1",
        "for k in range(3):\n            n += 1",
        "for k in range(x.size(1)):\n            n += 1",
        "if x.dim() == 2:\n            n += 1",
    ],
)
def test_what_every_rank_adds_alike_is_not(each):
    result = check_same(script(each), "module")
    assert "divide_batches" not in result and "all_reduce" not in result


@pytest.mark.parametrize(
    "each",
    [
        "if (out.argmax(1) == y).float().mean() > 0.5:\n            n += len(x)",
        "k = 0\n        while k < len(x):\n            k += 1; n += 1",
        "for o in out:\n            if o.max() > out.max() - 1:\n                n += 1",
        "for j in range(len(y)):\n            if j % 2 == 0:\n                n += 1",
    ],
)
def test_what_goes_by_the_whole_batch_needs_it(each):
    assert "divide_batches = False" in check_same(script(each), "module")
    assert any("`n +=" in n.message for n in migrate_text(script(each)).attention)
