"""Steps and evaluations that a share of a batch would get wrong: they take whole batches, or are told of."""

import pytest
from ptmigrate.migrate.migrate import Options, migrate_text
from ptmigrate.migrate.project import collect, migrate_all

from tests.migrate.lift.test_same_run import FUNCTIONS, NESTED
from tests.migrate.running import check_same

WHOLE = {
    "carried state": (
        NESTED.replace(
            "out = model(x)", "h = 0.5 * h + x.mean() if i else x.mean()\n        out = model(x) + h.detach()"
        ),
        "module",
    ),
    "the batch size by name": (
        NESTED.replace("batch_size=8", "batch_size=args.epochs").replace(
            "        loss =", "        out = out[:args.epochs]\n        loss ="
        ),
        "module",
    ),
}


@pytest.mark.parametrize(("text", "plan"), WHOLE.values(), ids=WHOLE.keys())
def test_what_needs_whole_batches_says_so(text, plan):
    result = check_same(text, plan)
    assert "divide_batches = False" in result and ".share" not in result


LIST_OF_OUTPUTS = (
    FUNCTIONS.replace("loss, right = 0., 0", "loss, right, all_ = 0., 0, []")
    .replace("            right +=", "            all_ = [*all_, out]\n            right +=")
    .replace("    loss /= len", "    print(len(all_))\n    loss /= len")
)


def test_an_evaluation_that_cannot_be_added_up_is_not_divided():
    result = check_same(LIST_OF_OUTPUTS, "module")
    assert "divide_validation = False" in result and "divide_batches" not in result


COLLECTS = FUNCTIONS.replace(
    "    total = 0\n    for batch", "    total, losses, rights = 0, [], []\n    for batch"
).replace(
    "        total += loss.item()\n",
    "        total += loss.item()\n        losses.append(loss.item())\n        rights.append(int(loss.argmax()))\n",
)


def test_a_list_of_losses_gets_those_of_whole_batches():
    result = check_same(COLLECTS, "module")
    assert "self.losses.append(self.batch_mean(loss.item()))" in result
    assert "divide_batches" not in result


def test_a_list_of_other_values_that_decides_something_needs_whole_batches():
    text = COLLECTS.replace("    return total", "    total = total if sum(rights) > 3 else total + 1\n    return total")
    result = check_same(text, "module")
    assert "divide_batches = False" in result


def test_a_list_of_other_values_that_is_only_shown_is_told_of():
    result = migrate_text(COLLECTS.replace("    return total", "    print(rights)\n    return total"))
    assert "divide_batches" not in result.text
    assert any(n.code == "PTM703" and "`rights`" in n.message for n in result.attention)


CONTRASTS = NESTED.replace(
    "loss = criterion(out, y)",
    "sim = out @ out.T\n        loss = criterion(sim, torch.arange(len(x))) + criterion(out, y)",
)


def test_a_loss_that_compares_samples_gets_whole_batches():
    assert "divide_batches = False" in check_same(CONTRASTS, "module")


def test_batch_norm_on_shares_is_told_of():
    result = migrate_text(NESTED.replace("nn.ReLU(),", "nn.ReLU(), nn.BatchNorm1d(7),"))
    assert any("batch norm" in n.message for n in result.attention)


def test_a_loss_of_another_file_that_compares_samples_gets_whole_batches():
    text = NESTED.replace("import time\n", "import time\nfrom losses import SupConLoss\n").replace(
        "nn.CrossEntropyLoss().to(device)", "SupConLoss(temperature=0.1)"
    )
    assert "divide_batches = False" in migrate_text(text).text


@pytest.mark.parametrize("name", ["TransformsSimCLR", "SimCLRTransform", "ContrastiveDataset", "SupConSampler"])
def test_what_makes_its_samples_compares_none(name):
    text = NESTED.replace("import time\n", f"import time\nfrom views import {name}\n{name}(size=8)\n")
    assert "divide_batches = False" not in migrate_text(text).text


@pytest.mark.parametrize(
    ("more", "mixes"),
    [
        ("torch.svd(out)[1].mean()", True),  # out may be a matrix a sample, and nothing shows it
        ("torch.linalg.matrix_norm(out)", True),
        ("torch.linalg.qr(out)[1].abs().mean()", True),
        ("torch.linalg.inv(out[:, :, None] @ out[:, None] + torch.eye(3)).mean()", False),
        ("compared(*(out, out * 2))", True),
        ("compared(*[out, out * 2])", True),
        ("apart(*(out, out * 2))", False),
    ],
)
def test_matrices_and_what_is_given_by_a_star(more, mixes):
    text = NESTED.replace("loss = criterion(out, y)", f"loss = criterion(out, y) + {more}")
    helpers = "def compared(a, b):\n    return (a @ b.T).softmax(1).pow(2).mean()\n\n\n"
    helpers += "def apart(a, b):\n    return (a - b).pow(2).mean()\n\n\n"
    assert more in text
    text = text.replace("\nfor epoch in", f"\n{helpers}for epoch in", 1)
    result = migrate_text(text)
    assert result.plan == "module" and ("divide_batches = False" in result.text) is mixes


@pytest.mark.parametrize("body", ["(a @ b.T).softmax(1).pow(2).mean()", "(a - b).pow(2).mean()"])
def test_what_is_given_by_a_star_to_a_function_of_another_file(tmp_path, body):
    (tmp_path / "losses.py").write_text(f"import torch\n\n\ndef compared(a, b):\n    return {body}\n")
    text = NESTED.replace("import time\n", "import time\nfrom losses import compared\n")
    text = text.replace("loss = criterion(out, y)", "loss = criterion(out, y) + compared(*(out, out * 2))")
    (tmp_path / "main.py").write_text(text)
    done = {m.path.stem: m.data.decode() for m in migrate_all(collect([tmp_path / "main.py"]), Options())}
    assert ("divide_batches = False" in done["main"]) is ("@" in body)
