"""Of a tensor `out[0]` is a sample, of several outputs one of them; a network may give either."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_printed_by_two import EPOCHS, HEAD
from tests.migrate.running import check_same

# what a step makes of `out = model(x)`
SAMPLES = (
    "loss = criterion(out, y) + 0.1 * out[0].mean()",
    "z = torch.relu(out); loss = criterion(out, y) + 0.1 * z[-1].mean()",
    "loss = F.cross_entropy(out, y) + 0.1 * (out[0] * out).mean()",
    "loss = criterion(out, y); p = out.softmax(1); loss = loss + 0.1 * (p[0] - 1).pow(2).mean()",
    "h = model(x); loss = (out - h.detach()).abs().mean() + criterion(h, y) + h[0].pow(2).mean()",
)
# what it makes of `out = several(x)`
OUTPUTS = (
    "loss = criterion(out[0], y)",
    "loss = criterion(out[0] if isinstance(out, tuple) else out, y)",
    "out = out[0]; loss = criterion(out, y)",
    "loss = criterion(out[0], y) + 0.1 * (out[0] - out[1].detach()).mean()",
    "loss = criterion(out[0].relu(), y); loss = loss + 0 * out[0].mean()",
)
SEVERAL = "import torch.nn.functional as F\ndef several(x):\n    return model(x), model(x)\n"


def step(made, loss):
    text = HEAD + SEVERAL + EPOCHS.replace("out = model(x)", made).replace("loss = criterion(out, y)", loss)
    for piece in ("BEFORE", "EACH", "AFTER"):
        text = text.replace(piece, "pass")
    return text.replace("LAST", "print(loss.item())")


@pytest.mark.parametrize("loss", SAMPLES)
def test_a_sample_is_another_one_in_each_share(loss):
    text = step("out = model(x)", loss)
    assert "divide_batches = False" in check_same(text, "module")
    assert any("mixes the samples" in n.message for n in migrate_text(text).attention)


@pytest.mark.parametrize("loss", OUTPUTS)
def test_one_of_several_outputs_has_all_samples(loss):
    assert "divide_batches" not in check_same(step("out = several(x)", loss), "module")


@pytest.mark.parametrize(
    "loss", [*OUTPUTS[:3], "if len(x): loss = criterion(out[0], y)\n        else: loss = criterion(out, y)"]
)
def test_what_another_file_gives_shows_by_its_uses_in_any_case(loss):
    text = step("out = several(x)", loss).replace(
        SEVERAL, "import torch.nn.functional as F\nfrom other import several\n"
    )
    assert "divide_batches" not in migrate_text(text).text
