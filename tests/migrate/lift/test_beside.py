"""What a step computes under a condition and shows there: `if i % 2 == 0: l = loss.item(); print(l)`."""

import re

import pytest
from ptmigrate.migrate.migrate import migrate_text

from tests.migrate.lift.test_printed_by_two import EPOCHS, HEAD
from tests.migrate.printed_on_two import by_originals, by_results
from tests.migrate.running import check_same


def script(*lines):
    each = "\n            ".join(("if i % 2 == 0:", *lines))
    return HEAD + EPOCHS.replace("EACH", each).replace("BEFORE", "pass").replace("AFTER", "pass").replace("LAST", "")


BROUGHT = {
    "two names": (("l, n = loss.item(), (i + 1) * len(x)", "print(f'{l:>7f} {n:>5d}')"), "{self.batch_mean(l):>7f}"),
    "a size": (("l, n = loss.item(), (i + 1) * len(x)", "print(n)"), "print(self.batch_sum(n))"),
    "its own name": (("loss = loss.item()", "print(loss)"), "print(self.batch_mean(loss))"),
    "its own name, of two": (("loss, n = loss.item(), len(x)", "print(loss)"), "print(self.batch_mean(loss))"),
    "scaled": (("l = loss.item() * 4", "print(l)"), "print(self.batch_mean(l))"),
    "computed there": (("a = (out.argmax(1) == y).float().mean()", "print(a)"), "print(self.batch_mean(a))"),
    "one further out": (("l = loss.item()", "if i:", "    print(l)"), "print(self.batch_mean(l))"),
    "one above the step's end": (("if i:", "    print(loss.item())", "loss = None"), "self.batch_mean(loss.item())"),
}
OWN = {
    "a maximum": ("l = out.max().item()", "print(l)"),
    "changed since": ("l = loss.item()", "l += out.max().item()", "print(l)"),
    "of a loop": ("l = loss.item()", "for v in (1, 2):", "    l = out.max().item() + v", "print(l)"),
    "in a loop, of the time before": (
        "l = loss.item()",
        "for v in (1, 2):",
        "    print(l)",
        "    l = out.max().item()",
    ),
    "of one branch": ("l = loss.item()", "if i > 2:", "    l = out.max().item()", "print(l)"),
    "asked for at the head": ("l = loss.item()", "if (l := out.max().item()) > -9:", "    print(l)"),
    "of a try": ("try:", "    l = out.max().item()", "except ValueError:", "    l = loss.item()", "print(l)"),
    "the loss, changed": ("loss = out[0, 0].item()", "print(loss)"),
    "exchanged": ("l, m = loss.item(), out.max().item()", "l, m = m, l", "print(l)"),
}


@pytest.mark.parametrize("name", BROUGHT)
def test_it_is_brought_together(name):
    lines, becomes = BROUGHT[name]
    assert becomes in check_same(script(*lines), "module")
    assert not any("shows what the process sees" in n.message for n in migrate_text(script(*lines)).attention)


@pytest.mark.parametrize("name", OWN)
def test_what_is_no_mean_or_sum_is_told(name):
    assert "self.batch_" not in check_same(script(*OWN[name]), "module")
    assert any(n.code == "PTM703" for n in migrate_text(script(*OWN[name])).attention)


def test_a_pair_beside_the_step():
    text = script("pass").replace(
        "if i % 2 == 0:", "l, n = loss.item(), len(x)\n        print(l)\n        if i % 2 == 0:"
    )
    assert "self.print(self.batch_mean(l))" in check_same(text, "module")


DRAWN = ("x, y = next(iter(valid))", "out = model(x)", "loss = criterion(out, y)", "right = hits(out, y)")
WHOLE = {
    "what is made of it": (*DRAWN, "print(loss.item(), right)"),
    "through other names": (*DRAWN, "said = loss.item() * 2", "print(f'{said:.4f} {right / 8:.4f}')"),
    "by its number": ("j, (x, y) = next(enumerate(valid))", "l = criterion(model(x), y)", "print(f'{l.item():.4f}')"),
}
MIXED = {
    "with the step's": ("x2, y2 = next(iter(valid))", "both = hits(model(x2), y2) + hits(out, y)", "print(both)"),
    "in one value": ("both = torch.cat([next(iter(valid))[0], x])", "print(f'{model(both).mean().item():.4f}')"),
    "one of both": ("if i > 2:", "    x, y = next(iter(valid))", "right = hits(model(x), y)", "print(right)"),
    "of the step's network output": (
        "x, _ = next(iter(valid))",
        "out = out[:2] + model(x)[:2]",
        "print(hits(out, y[:2]))",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_drawn_by_hand_every_process_has_whole(name):
    assert "self.batch_" not in check_same(script(*WHOLE[name]), "manual")
    assert not any("shows what the process sees" in n.message for n in migrate_text(script(*WHOLE[name])).attention)


def test_what_the_step_shows_above_it_is_of_its_own_batch():
    text = script(*WHOLE["what is made of it"]).replace(
        "if i % 2", "print(f'{loss.item():.6f} {hits(out, y)}')\n        if i % 2"
    )
    assert "{self.batch_mean(loss.item()):.6f} {self.batch_sum(hits(out, y))}" in check_same(text, "manual")


@pytest.mark.parametrize("name", MIXED)
def test_what_is_also_of_the_batch_is_told_or_brought_together(name):
    result = migrate_text(script(*MIXED[name]))
    told = any("shows what the process sees" in n.message for n in result.attention)
    assert told or "self.batch_" in result.text or "divide_batches = False" in result.text


@pytest.mark.slow
def test_two_processes_print_what_one_printed(tmp_path):
    texts = [script(*lines) for lines in (*(lines for lines, _ in BROUGHT.values()), *WHOLE.values())]
    for before, after in zip(by_originals(tmp_path, texts), by_results(tmp_path, texts), strict=True):
        numbers = [[float(n) for n in re.findall(r"[-\d.]+(?:e-?\d+)?", each)] for each in (before, after)]
        assert numbers[0] and numbers[1] == pytest.approx(numbers[0], rel=1e-5)
