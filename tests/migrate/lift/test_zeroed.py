"""Sums that a script sets to zero in place, `total.zero_()`: they begin anew as `total = 0` does."""

import re

import pytest
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.lift.zeros import zeroed
from ptmigrate.migrate.migrate import migrate_text

from tests import forked
from tests.migrate.lift.test_printed_by_two import EPOCHS, EVALUATION, HEAD
from tests.migrate.running import check_same

NUMPY = "import numpy as np\nrun = np.zeros(2)"
TENSOR = "run = torch.zeros(1)"
NUMBER = "run += loss.item()"
EACH = "run += loss.detach()"
NOW_AND_THEN = "run += loss.detach()\n        if i % 2 == 1:\n            print(run.item())\n            "
# above the epochs, before the batches, in each step, after them
PIECES = {
    "zero_": (TENSOR, "run.zero_()", EACH, "print(run.item())"),
    "fill_": (TENSOR, "run.fill_(0)", EACH, "print(run.item() / len(train))"),
    "a slice": (TENSOR, "run[:] = 0", EACH, "print(run.item())"),
    "times zero": (TENSOR, "run *= 0", EACH, "print(run.item())"),
    "below what shows it": (TENSOR, "pass", EACH, "print(run.item()); run.zero_()"),
    "before an evaluation": (TENSOR, "run.zero_()", EACH, f"{EVALUATION}\n    print(run.item(), hits)"),
    "in every other epoch": (TENSOR, "if epoch % 2 == 0:\n        run.zero_()", EACH, "print(run.item())"),
    "numpy": (NUMPY, "run.fill(0)", NUMBER, "print(run[0])"),
    "elements": (NUMPY, "run[...] = 0", "run[0] += loss.item(); run[1] += len(x)", "print(run[0], run[1])"),
    "zero_ in the step": (TENSOR, "pass", NOW_AND_THEN + "run.zero_()", "print(run.item())"),
    "torch.zero_ in the step": (TENSOR, "pass", NOW_AND_THEN + "torch.zero_(run)", "print(run.item())"),
    "a number times zero": ("run = 0.0", "pass", NUMBER + "\n        if i == 2:\n            run *= 0", "print(run)"),
}  # fmt: skip


def script(above: str, before: str, each: str, after: str) -> str:
    epochs = EPOCHS.replace("BEFORE", before).replace("EACH", each).replace("AFTER", after).replace("LAST", "")
    return HEAD + above + epochs


def numbers(text: str) -> list[float]:
    lines = (line for line in text.splitlines() if not line.startswith(("ptmigrate", "ddp")))
    return [float(n) for line in lines for n in re.findall(r"[-\d.]+(?:e-?\d+)?", line)]


@pytest.mark.parametrize("name", PIECES)
def test_they_are_summed_over_the_processes(name, tmp_path):
    text = script(*PIECES[name])
    result = check_same(text, "module")
    assert "divide_batches" not in result and "all_reduce(self.run)" in result
    assert not any("what the process sees" in n.message for n in migrate_text(text).attention)


def test_two_processes_print_what_one_printed(tmp_path):
    loop = "import runpy\nfor i in range({}):\n    runpy.run_path(f'{}_{{i}}.py')\n"
    for i, name in enumerate(PIECES):
        (tmp_path / f"old_{i}.py").write_text(script(*PIECES[name]))
        (tmp_path / f"new_{i}.py").write_text(migrate_text(script(*PIECES[name])).text)
    for which in ("old", "new"):
        (tmp_path / f"all_{which}.py").write_text(loop.format(len(PIECES), which))
    old = forked.run("all_old.py", cwd=tmp_path, limit=100)
    options = ("--accelerator", "cpu", "--devices", "2", "--global-batch")
    new = forked.ptrun(*options, "all_new.py", cwd=tmp_path, limit=100)
    assert old.returncode == new.returncode == 0, old.stderr + new.stderr
    assert numbers(old.stdout) and numbers(new.stdout) == pytest.approx(numbers(old.stdout), rel=1e-5)


@pytest.mark.parametrize(
    ("before", "each", "after", "says"),
    [
        ("pass", f"run.mul_(0.9); {EACH}", "print(run)", "changed in the step by more than what is added"),
        ("run.zero_(); run.fill_(5)", EACH, "print(run)", "does not begin at zero"),
        ("pass", EACH, "run.div_(2); print(run)", "is changed in between"),
        ("pass", f"{EACH}\n        if loss.item() > 1:\n            run.zero_()", "print(run)", "begins again where"),
        ("pass", f"{EACH}\n        if loss.item() > 1:\n            run = 0.0", "print(run)", "begins again where"),
    ],
)
def test_what_changes_otherwise_needs_whole_batches(before, each, after, says):
    text = script(TENSOR, before, each, after)
    assert "divide_batches = False" in check_same(text, "module")
    assert any(says in n.message for n in migrate_text(text).attention)


@pytest.mark.parametrize(
    "source",
    ["x.zero_()", "x.fill_(0.0)", "x.fill(0)", "x[:] = 0", "x[..., :] = torch.zeros(2)", "x *= 0", "torch.zero_(x)",
     "x.copy_(torch.zeros_like(y))", "np.copyto(x, 0)", "torch.nn.init.zeros_(x)"],
)  # fmt: skip
def test_zeros_in_place(source):
    facts = Facts(f"import torch\nimport numpy as np\n{source}\n")
    assert getattr(zeroed(facts, facts.tree.body[-1]), "id", None) == "x"


@pytest.mark.parametrize(
    "source",
    ["x = 0", "x.fill_(1)", "x[0] = 0", "x[1:] = 0", "x[:] = y", "x *= 2", "x += 0", "x.add_(0)", "torch.zeros(x)",
     "x.y.zero_()", "x.zero_grad()", "x.zero_(y)", "np.copyto(x, y)"],
)  # fmt: skip
def test_others(source):
    facts = Facts(f"import torch\nimport numpy as np\n{source}\n")
    assert zeroed(facts, facts.tree.body[-1]) is None
