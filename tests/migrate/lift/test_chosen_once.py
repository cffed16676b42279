"""Names that ifs give a value by options alone are set anew in every batch; others may be carried on."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_printed_by_two import EPOCHS, HEAD
from tests.migrate.running import check_same

LOSS = "loss = criterion(model(x + noise), y)"


def script(loss: str) -> str:
    text = HEAD + "kind, sigma = 'gauss', 0.1" + EPOCHS.replace("loss = criterion(out, y)", loss)
    for piece in ("BEFORE", "EACH", "AFTER"):
        text = text.replace(piece, "pass")
    return text.replace("LAST", "print(loss.item())")


GAUSS = "if kind == 'gauss':\n            noise = x * sigma\n        "
UNIFORM = "if kind == 'uniform':\n            noise = x - sigma\n        "


@pytest.mark.parametrize("loss", [GAUSS + UNIFORM + LOSS, GAUSS + "el" + UNIFORM + LOSS, UNIFORM + GAUSS + LOSS])
def test_by_options_it_is_set_anew(loss):
    assert "divide_batches" not in check_same(script(loss), "module")
    assert not [n for n in migrate_text(script(loss)).attention if n.code == "PTM703"]


@pytest.mark.parametrize(
    "loss",
    [
        GAUSS + "x = x + noise\n        " + UNIFORM + LOSS,
        GAUSS + "if kind == 'more':\n            noise = noise + x\n        " + LOSS,
        "if i == 0:\n            noise = x[:1]\n        " + UNIFORM + LOSS,
    ],
)
def test_what_a_batch_may_have_of_another_needs_it_whole(loss):
    assert "divide_batches = False" in check_same(script(loss), "module")
