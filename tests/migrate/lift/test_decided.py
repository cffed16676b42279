"""What is differentiated may be chosen by a test of all samples together: a share would choose otherwise."""

import pytest
from ptmigrate.migrate.lift.mixes import MAY_MIX
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.lift.test_mixes import in_a_network
from tests.migrate.lift.test_same_run import NESTED

LOSS = "        loss = criterion(out, y)\n"
HELPER = """
def halved(z, y):
    l = F.cross_entropy(z, y)
    if l > 1.1:
        return l / 2
    return l

for epoch in"""


def step(lines):
    return NESTED.replace(LOSS, LOSS + "".join(f"        {line}\n" for line in lines.split("\n")))


DECIDED = {
    "if": step("if loss.item() > 1:\n    loss = loss / 2"),
    "else": step("if loss < 1:\n    pass\nelse:\n    loss *= 0.5"),
    "an expression": step("loss = loss * (0.5 if loss.item() > 1 else 1.0)"),
    "by a weight": step("w = 1.0\nif loss.item() > 1:\n    w = 0.5\nloss = loss * w"),
    "by a name": step("far = loss.item() > 1\nif far:\n    loss = loss / 2"),
    "while": step("n = 0\nwhile loss > 1 and n < 3:\n    loss, n = loss * 0.9, n + 1"),
    "of the outputs": NESTED.replace(LOSS, f"        if out.mean() > 0:\n            out = out / 2\n{LOSS}"),
    "in a function": NESTED.replace("\nfor epoch in", HELPER).replace("criterion(out, y)\n", "halved(out, y)\n"),
    "in a network": in_a_network("h / 2 if h.mean() > 0 else h"),
    "in a network, by a statement": in_a_network("h").replace(
        "        return h\n", "        if h.mean() > 0:\n            h = h / 2\n        return h\n"
    ),
}
NOT = {
    "plain": NESTED,
    "by the epoch": step("if epoch > 0:\n    loss = loss / 2"),
    "by the number of dimensions": NESTED.replace(
        LOSS, f"        if out.dim() == 1:\n            out = out[None]\n{LOSS}"
    ),
    "by the shape": NESTED.replace(
        LOSS, f"        if out.shape[-1] > 3 or len(out.shape) > 2:\n            out = out[:, :3]\n{LOSS}"
    ),
    "by two shapes": NESTED.replace(LOSS, f"        if out.shape != y.shape:\n            out = out * 1\n{LOSS}"),
    "by a kind": NESTED.replace(LOSS, f"        if isinstance(out, tuple):\n            out = out[0]\n{LOSS}"),
    "by what is there": NESTED.replace(LOSS, f"        if out is None:\n            out = x\n{LOSS}"),
    "what is shown": step("if loss.item() > 1:\n    far = 1"),
    "in training": in_a_network("h / 2 if self.training else h"),
}


@pytest.mark.parametrize("text", DECIDED.values(), ids=DECIDED)
def test_batches_are_whole(text):
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches = False" in result.text, result.attention
    assert any("decides by the values of the batch what is differentiated" in n.message for n in result.attention)


@pytest.mark.parametrize("text", NOT.values(), ids=NOT)
def test_others_are_divided(text):
    result = migrate_text(text)
    assert result.plan == "module" and "divide_batches" not in result.text, result.attention


@pytest.mark.parametrize("test, whole", [("l > 1.1", True), ("l.dim() > 1", False)])
def test_a_function_of_another_file(tmp_path, test, whole):
    helper = HELPER.replace("l > 1.1", test).replace("\nfor epoch in", "")
    (tmp_path / "losses.py").write_text(f"import torch.nn.functional as F\n\n{helper}")
    text = "from losses import halved\n" + NESTED.replace("criterion(out, y)\n", "halved(out, y)\n")
    (tmp_path / "train.py").write_text(text)
    done = {m.path.name: m for m in migrate_all(collect([tmp_path / "train.py"]), Options())}["train.py"]
    assert ("divide_batches = False" in done.result.text) is whole
    assert any("in halved() of losses.py" in n.message for n in done.report.attention) is whole


def test_a_network_that_has_no_other_word_of_what_mixes():
    text = (
        in_a_network("h / 2 if h.mean() > 1 else h")
        .replace("torch.manual_seed(0)", "torch.manual_seed(3)")
        .replace("loss.item()", "loss")
    )
    result = migrate_text(text)
    assert "divide_batches = False" in result.text and [w for w in MAY_MIX if w in text] == ["mean()"]
