"""What the report says of a loop that is kept names what keeps it."""

import pytest
from ptmigrate.migrate.migrate import migrate_text

SCRIPT = """
import torch

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4)), batch_size=4)


def train(epoch):
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()


"""
LOOPS = {
    "for epoch in range(2):\n    if flags.train:\n        train(epoch)\n    print(epoch)\n": (
        "train() is called within another statement of the epoch loop"
    ),
    "for epoch in range(2):\n    for each in [train(epoch)]:\n        print(each)\n": (
        "train() is called within another statement of the epoch loop"
    ),
    "for s['n'] in range(2):\n    train(s['n'])\n": "counts in `s['n']`, which is no plain name",
    "from tqdm import trange\nfor epoch in trange(0, 4, 2):\n    train(epoch)\n": (
        "the epoch loop does not count up by one"
    ),
    "for epoch in names:\n    train(epoch)\n": "the epoch loop does not count with range()",
}


@pytest.mark.parametrize("loop", LOOPS)
def test_why_the_loop_is_kept(loop):
    result = migrate_text(SCRIPT + loop)
    assert result.plan in ("loop", "none")
    assert any(LOOPS[loop] in note.message for note in result.attention), result.attention


def test_a_loop_over_losses_has_no_step():
    script = SCRIPT.replace(
        "model(x).sum().backward()", "for loss in (model(x).sum(), model(x * x).sum()):\n            loss.backward()"
    )
    assert "        optimizer.step()\n" in script
    called = (
        "def update(x, y):\n    for loss in (model(x).sum(), model(y).sum()):\n"
        "        loss.backward()\n    optimizer.step()\n"
    )
    result = migrate_text(SCRIPT[: SCRIPT.index("def train")] + called)
    assert result.plan == "loop"
    assert any("its losses are computed before the loop" in note.message for note in result.attention)
    assert migrate_text(script + "for epoch in range(2):\n    train(epoch)\n").plan == "manual"


def test_a_loop_that_is_lifted_has_no_reason():
    result = migrate_text(SCRIPT + "for epoch in range(2):\n    train(epoch)\n")
    assert result.plan == "module"
    assert not any("the loop is kept" in note.message for note in result.attention)


OTHERS = {
    "train = [1, 2]\nprint(train)\n": (
        "for epoch in range(2):\n    train(epoch)\n",
        "`train` is more than this function",
    ),
    "kept = {'sgd': optimizer}\n": (
        "for epoch in range(2):\n    train(epoch)\n",
        "`optimizer` gets its value inside the training pass",
    ),
}


@pytest.mark.parametrize("above", OTHERS)
def test_names_of_two_things_and_what_a_pass_takes_out(above):
    loop, why = OTHERS[above]
    head, _, rest = SCRIPT.partition("\n\ndef train")
    if "kept" in above:
        rest = rest.replace("(epoch):\n", "(epoch):\n    optimizer = kept['sgd']\n", 1)
    result = migrate_text(f"{head}\n{above}\n\ndef train{rest}{loop}")
    assert result.plan == "loop" and any(why in note.message for note in result.attention), result.attention


def test_a_scaler_that_the_script_reads_makes_the_step_a_manual_one():
    script = SCRIPT.replace("model(x).sum().backward()", "scaler.scale(model(x).sum()).backward()")
    script = script.replace("        optimizer.step()\n", "        scaler.step(optimizer)\n        scaler.update()\n")
    script = script.replace("loader =", "scaler = torch.amp.GradScaler('cuda')\nloader =")
    result = migrate_text(script + "for epoch in range(2):\n    train(epoch)\n    print(scaler.get_scale())\n")
    assert result.plan == "manual"
    said = "`scaler.step(optimizer)` steps with a scaler that the script has other uses for"
    assert any(said in edit.message for edit in result.edits)
